UNWIND $keys AS k
MATCH (m:Memory {words_key: k}) WHERE m.status = 'active'
RETURN __MEMORY__ AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
