UNWIND $keys AS k
MATCH (m:Memory {key: k}) WHERE m.status <> 'forgotten'
RETURN properties(m) AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
