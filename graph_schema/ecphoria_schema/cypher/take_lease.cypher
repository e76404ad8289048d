MERGE (l:Lease {key: $key})
SET l.token = $token
WITH l WHERE l.until IS NULL OR l.until <= $now OR l.worker = $worker
SET l.worker = $worker, l.until = $until
RETURN l.key AS key
