MATCH (m:Memory) WHERE m.key > $after AND m.status <> 'forgotten'
WITH m ORDER BY m.key LIMIT $limit
RETURN __MEMORY__ AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
