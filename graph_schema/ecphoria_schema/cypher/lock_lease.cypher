MERGE (l:Lease {key: $key})
SET l.token = $token
