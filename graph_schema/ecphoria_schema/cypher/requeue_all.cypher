MATCH (m:Memory) WHERE m.key > $after
WITH m ORDER BY m.key LIMIT $limit
MERGE (p:Pending {key: m.key})
SET p.token = $token, m.index_state = 'stale'
RETURN m.key AS key
