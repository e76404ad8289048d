UNWIND $keys AS k
MATCH (m:Memory {words_key: k}) WHERE m.status = 'active'
RETURN properties(m) AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
