MERGE (m:MasterKey {key: $master})
ON CREATE SET m.check = $check
WITH m
UNWIND $rows AS row
MATCH (d:DataKey {key: row.key})
SET d.lock = true
REMOVE d.lock
WITH d, row WHERE d.wrapped = row.before
SET d.wrapped = row.wrapped, d.master_id = $master
RETURN d.key AS key
