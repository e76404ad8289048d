MATCH (p:Pending {token: $token})
OPTIONAL MATCH (m:Memory {key: p.key})
RETURN p.key AS key, p.token AS token, properties(m) AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
