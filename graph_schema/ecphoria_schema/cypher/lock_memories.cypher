UNWIND $keys AS k
MATCH (m:Memory {key: k})
SET m.lock = true
REMOVE m.lock
