MATCH (m:Memory {key: $key})
RETURN m.kind AS kind, m.tier AS tier, m.access_count AS access_count,
  m.last_accessed_at.epochMillis AS last_accessed_at, m.freshness AS freshness,
  m.freshness_at.epochMillis AS freshness_at, m.recorded_at.epochMillis AS recorded_at,
  m.archive_at.epochMillis AS archive_at, m.reinforced AS reinforced
