MATCH (m:Memory {claim: $claim}) WHERE m.status <> 'forgotten'
RETURN properties(m) AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
