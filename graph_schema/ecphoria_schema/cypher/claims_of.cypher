UNWIND $keys AS k
MATCH (m:Memory {key: k}) WHERE m.claim IS NOT NULL
RETURN DISTINCT m.claim AS claim
