MERGE (d:DataKey {key: $key})
ON CREATE SET d.tenant = $tenant, d.created_at = $now
WITH d, d.wrapped IS NOT NULL AS there
SET d.destroyed_at = coalesce(d.destroyed_at, $now)
REMOVE d.wrapped, d.master_id, d.user_id
RETURN there
