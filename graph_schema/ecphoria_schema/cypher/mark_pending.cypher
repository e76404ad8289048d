UNWIND $keys AS k
MERGE (p:Pending {key: k})
SET p.token = $token
