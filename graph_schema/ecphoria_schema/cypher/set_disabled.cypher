UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
SET m.status = 'disabled', m.invalidated_at = $now, m.past = row.past, m.index_state = 'stale',
  m.retracted_by = row.by, m.retracted_because = row.reason
