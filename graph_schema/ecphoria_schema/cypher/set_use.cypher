MATCH (m:Memory {key: $key})
SET m.access_count = $access_count, m.reinforced = $reinforced, m.tier = $tier,
  m.freshness = $freshness, m.freshness_at = $freshness_at,
  m.last_accessed_at = $last_accessed_at, m.archive_at = $archive_at
