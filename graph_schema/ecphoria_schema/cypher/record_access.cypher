UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
SET m.access_count = row.access_count, m.last_accessed_at = row.last_accessed_at,
  m.freshness = row.freshness, m.freshness_at = row.freshness_at, m.archive_at = row.archive_at,
  m.tier = 'hot'
