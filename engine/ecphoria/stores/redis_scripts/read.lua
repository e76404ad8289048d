-- Return the present conversation; see SessionStore.read.
-- KEYS: head, turns, entities
-- ARGV: now, ttl (ms)
-- Returns {} or {series, start, last, last_at, summary, its upto, its made_at, turns, entities}.
local head = redis.call('HMGET', KEYS[1],
  'series', 'first', 'start', 'last', 'last_at', 'summary', 'summary_upto', 'summary_at')
local first, start, last_at = tonumber(head[2]), tonumber(head[3]), tonumber(head[5])
if not first or tonumber(ARGV[1]) >= last_at + tonumber(ARGV[2]) then
  return {}
end
local before = tostring(start - 1)
local upto = head[7] or before
return {
  head[1], head[3], head[4], head[5], head[6] or '', upto, head[8] or before,
  redis.call('LRANGE', KEYS[2], tonumber(upto) + 1 - first, -1),
  redis.call('HGETALL', KEYS[3]),
}
