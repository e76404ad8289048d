MATCH (m:Memory) WHERE m.archive_at <= $now
WITH m LIMIT $limit
SET m.tier = 'archive', m.index_state = 'stale'
REMOVE m.archive_at
RETURN m.key AS key, m.tenant AS tenant, m.id AS id, m.user_id AS user_id
