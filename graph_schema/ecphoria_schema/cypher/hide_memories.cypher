UNWIND [$user] AS u
MATCH (m:Memory {user_id: u}) WHERE m.tenant = $tenant
SET m.user_id = $hidden, m.status = 'forgotten', m.index_state = 'deleting'
REMOVE m.expires_at, m.archive_at
RETURN count(m) AS count
