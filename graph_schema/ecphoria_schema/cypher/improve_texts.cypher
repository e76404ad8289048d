UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
SET m.text = row.text, m.index_state = 'stale'
