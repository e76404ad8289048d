UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
SET m.lock = true
REMOVE m.lock
WITH m, row WHERE m.status IN row.statuses
SET m.reinforced = coalesce(m.reinforced, 0) + row.times
RETURN row.key AS key
