UNWIND $keys AS k
MATCH (m:Memory {key: k})
RETURN properties(m) AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
