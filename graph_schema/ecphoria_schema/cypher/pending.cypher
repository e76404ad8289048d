MATCH (p:Pending) WHERE p.key > $after
WITH p ORDER BY p.key LIMIT $limit
OPTIONAL MATCH (m:Memory {key: p.key})
RETURN p.key AS key, p.token AS token, properties(m) AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
