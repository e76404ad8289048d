-- Drop a session with all that is kept of it; see SessionStore.drop_user.
-- KEYS: head, turns, ids, entities, aside, index
-- ARGV: member of the index
-- Returns how many turns were kept, refused ones included.
local count = redis.call('LLEN', KEYS[2]) + redis.call('LLEN', KEYS[5])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
redis.call('ZREM', KEYS[6], ARGV[1])
return count
