-- Drop turns up to a number; see SessionStore.drop_turns.
-- KEYS: head, turns, ids, entities, set aside, index
-- ARGV: member of the index, series, upto, physical life (ms), then numbers to set aside
local head, turns, ids, entities = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local aside, index = KEYS[5], KEYS[6]
local kept = redis.call('HMGET', head, 'series', 'first', 'start', 'last', 'last_at', 'flush_upto')
if kept[1] ~= ARGV[2] then
  return 0
end
local first, start, last = tonumber(kept[2]), tonumber(kept[3]), tonumber(kept[4])
local upto = math.min(tonumber(ARGV[3]), last)
if upto < first then
  return 0
end

for place = 5, #ARGV do
  local number = tonumber(ARGV[place])
  if number >= first and number <= upto then
    redis.call('RPUSH', aside,
      string.format('%d:%s', number, redis.call('LINDEX', turns, number - first)))
    redis.call('PEXPIRE', aside, ARGV[4])
  end
end

if upto == last then
  redis.call('DEL', head, turns, ids, entities)
  redis.call('ZREM', index, ARGV[1])
  return 1
end

redis.call('LTRIM', turns, upto + 1 - first, -1)
first = upto + 1
redis.call('HSET', head, 'first', first)
local flush_upto = tonumber(kept[6])
if flush_upto and flush_upto < first then
  redis.call('HDEL', head, 'flush_upto')
end
if start < first then
  start = first
  redis.call('HSET', head, 'start', start)
  redis.call('HDEL', head, 'summary', 'summary_upto', 'summary_at')
  for _, key in ipairs({ids, entities}) do
    local all = redis.call('HGETALL', key)
    for place = 1, #all, 2 do
      if tonumber(string.match(all[place + 1], '^(%d+):')) <= upto then
        redis.call('HDEL', key, all[place])
      end
    end
  end
end
if start == first then
  redis.call('ZADD', index, kept[5], ARGV[1])
end
return 1
