-- Return kept turns of a numbering; see SessionStore.turns.
-- KEYS: head, turns
-- ARGV: series, after, limit
-- Returns {} or {number of the first one, turns}.
local head = redis.call('HMGET', KEYS[1], 'series', 'first')
if head[1] ~= ARGV[1] then
  return {}
end
local first = tonumber(head[2])
local from = math.max(0, tonumber(ARGV[2]) + 1 - first)
return {tostring(first + from),
  redis.call('LRANGE', KEYS[2], from, from + tonumber(ARGV[3]) - 1)}
