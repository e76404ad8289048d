UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
SET m.access_count = row.access_count, m.freshness = row.freshness, m.tier = 'hot',
  m.last_accessed_at = datetime({epochMillis: row.last_accessed_at}),
  m.freshness_at = datetime({epochMillis: row.freshness_at}),
  m.archive_at = CASE WHEN row.archive_at IS NULL THEN null
    ELSE datetime({epochMillis: row.archive_at}) END
