UNWIND $keys AS k
MATCH (m:Memory {key: k})-[r]-()
DELETE r
