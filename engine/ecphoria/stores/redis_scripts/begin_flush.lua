-- Take or prolong the lease for flushing; see SessionStore.begin_flush.
-- KEYS: head, index
-- ARGV: member of the index, token, now, end of the lease (ms), idle before (ms, or '')
-- Returns {} , or {series, first, upto, last}; {'gone'} when the turns are no longer there.
local head = redis.call('HMGET', KEYS[1],
  'series', 'first', 'start', 'last', 'last_at', 'flush_upto', 'lease_token', 'lease_until')
local first, start, last = tonumber(head[2]), tonumber(head[3]), tonumber(head[4])
if not first then
  if redis.call('ZREM', KEYS[2], ARGV[1]) == 1 then
    return {'gone'}
  end
  return {}
end
if head[7] and head[7] ~= ARGV[2] and tonumber(head[8]) > tonumber(ARGV[3]) then
  return {}
end
local upto = tonumber(head[6])
if not upto then
  if start > first then
    upto = start - 1
  elseif ARGV[5] == '' or tonumber(head[5]) <= tonumber(ARGV[5]) then
    upto = last
  else
    return {}
  end
end
redis.call('HSET', KEYS[1],
  'flush_upto', upto, 'lease_token', ARGV[2], 'lease_until', ARGV[4])
return {head[1], head[2], tostring(upto), head[4]}
