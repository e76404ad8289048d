UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
SET m.status = row.status, m.valid_until = row.valid_until, m.invalidated_at = row.invalidated_at,
  m.past = row.past, m.index_state = 'stale'
