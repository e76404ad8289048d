-- Give the lease back; see SessionStore.end_flush.
-- KEYS: head
-- ARGV: token
if redis.call('HGET', KEYS[1], 'lease_token') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'lease_token', 'lease_until')
end
return 0
