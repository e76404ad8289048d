MATCH (m:Memory {user_id: $hidden})
WITH m LIMIT $limit
RETURN m.key AS key, m.id AS id, m.claim AS claim
