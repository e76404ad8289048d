UNWIND $keys AS k
MATCH (m:Memory {key: k}) WHERE m.status <> 'forgotten'
RETURN __MEMORY__ AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
