MATCH (m:Memory {claim: $claim}) WHERE m.status <> 'forgotten'
RETURN __MEMORY__ AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
