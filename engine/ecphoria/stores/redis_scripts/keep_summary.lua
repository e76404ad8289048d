-- Keep a summary unless the conversation went on to another; see SessionStore.keep_summary.
-- KEYS: head
-- ARGV: series, start, and of the summary before: upto, made_at; then text, upto, made_at
local head = redis.call('HMGET', KEYS[1], 'series', 'start', 'summary_upto', 'summary_at')
if not head[1] then
  return 0
end
local before = tostring(tonumber(head[2]) - 1)
if head[1] ~= ARGV[1] or head[2] ~= ARGV[2]
  or (head[3] or before) ~= ARGV[3] or (head[4] or before) ~= ARGV[4] then
  return 0
end
redis.call('HSET', KEYS[1], 'summary', ARGV[5], 'summary_upto', ARGV[6], 'summary_at', ARGV[7])
return 1
