UNWIND $keys AS k
MERGE (p:Pending {key: k})
SET p.token = $token
REMOVE p.leased_until, p.leased_by
