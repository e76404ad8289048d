UNWIND $keys AS k
MATCH (c:Claim {key: k})
WHERE NOT EXISTS { MATCH (m:Memory {claim: k}) }
DELETE c
