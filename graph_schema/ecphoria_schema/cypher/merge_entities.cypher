UNWIND $rows AS row
MERGE (n:__LABEL__ {key: row.key})
ON CREATE SET n.id = row.id, n.recorded_at = $now, n.owner_key = row.owner_key, n.user_id = row.user_id
SET n.tenant = $tenant
RETURN n.key AS key, properties(n) AS props
