UNWIND $keys AS k
MATCH (m:Memory {key: k})-[:SUPERSEDES]->(o:Memory)
WHERE m.status <> 'disabled' AND o.valid_until IS NOT NULL
SET o.fixed_until = o.valid_until
