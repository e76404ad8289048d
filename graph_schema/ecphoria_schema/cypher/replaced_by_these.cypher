UNWIND $keys AS k
MATCH (m:Memory {key: k})-[:SUPERSEDES]->(o:Memory)
RETURN DISTINCT o.key AS key
