UNWIND $keys AS k
MATCH (m:Memory {key: k}) WHERE m.status <> 'forgotten'
RETURN m.key AS key, m.kind AS kind, m.tier AS tier, m.access_count AS access_count,
  m.freshness AS freshness, m.freshness_at.epochMillis AS freshness_at, m.recorded_at.epochMillis AS recorded_at
