-- Keep a turn; see SessionStore.append.
-- KEYS: head, turns, ids, entities, index
-- ARGV: member of the index, now, ttl, physical life (all ms), series, turn id, its fingerprint,
--       the turn, then type and id of each entity it names
-- Returns {1, number}, or {0} when the id belongs to another turn.
local head, turns, ids, entities, index = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local member, now, ttl, life = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local series, id, fingerprint, turn = ARGV[5], ARGV[6], ARGV[7], ARGV[8]

local kept = redis.call('HMGET', head, 'first', 'start', 'last', 'last_at')
local first, start = tonumber(kept[1]), tonumber(kept[2])
local last, last_at = tonumber(kept[3]), tonumber(kept[4])

if not first then
  first, start, last, last_at = 1, 1, 0, now
  redis.call('DEL', turns, ids, entities)
  redis.call('HSET', head, 'series', series, 'first', 1, 'start', 1)
elseif now >= last_at + ttl then
  start = last + 1
  redis.call('HSET', head, 'start', start)
  redis.call('HDEL', head, 'summary', 'summary_upto', 'summary_at')
  redis.call('DEL', ids, entities)
end

local known = redis.call('HGET', ids, id)
if known then
  local number, before = string.match(known, '^(%d+):(.*)$')
  if before ~= fingerprint then
    return {0}
  end
  return {1, number}
end

last = last + 1
last_at = math.max(last_at, now)
redis.call('RPUSH', turns, turn)
redis.call('HSET', ids, id, string.format('%d:%s', last, fingerprint))
redis.call('HSET', head, 'last', last, 'last_at', string.format('%d', last_at))
for place = 9, #ARGV, 2 do
  redis.call('HSET', entities, ARGV[place],
    string.format('%d:%d:%s', last, place, ARGV[place + 1]))
end
-- while a conversation that is over waits to be flushed, the session counts as silent since then
if start == first then
  redis.call('ZADD', index, string.format('%d', last_at), member)
end
for _, key in ipairs({head, turns, ids, entities}) do
  redis.call('PEXPIRE', key, life)
end
return {1, tostring(last)}
