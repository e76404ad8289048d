UNWIND $keys AS k
OPTIONAL MATCH (m:Memory {key: k})
OPTIONAL MATCH (p:Pending {key: k})
RETURN k AS key, p IS NOT NULL AS pending,
  CASE WHEN m.status = 'forgotten' THEN null ELSE __MEMORY__ END AS props,
  [(m)-[:ABOUT]->(e) | e.key] AS about
