MATCH (p:Pending)
WHERE p.key > $after
  AND (p.leased_until IS NULL OR p.leased_until <= $now OR p.leased_by = $worker)
WITH p ORDER BY p.key LIMIT $limit
SET p.leased_until = $until, p.leased_by = $worker
WITH p.key AS key, p.token AS token WHERE key IS NOT NULL
OPTIONAL MATCH (m:Memory {key: key})
RETURN key, token,
  CASE WHEN m.status = 'forgotten' THEN null ELSE __MEMORY__ END AS props,
  [(m)-[:ABOUT]->(e) | e.key] AS about
