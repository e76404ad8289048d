CALL () {
  UNWIND [$p.user] AS u
  MATCH (m:Memory {user_id: u})
  RETURN m
}
WITH m WHERE __HOLDS__
CALL (m) {
  MATCH (m)-[:CONFLICTS_WITH]->(o:Memory)
  RETURN o
}
WITH m, o WHERE __OTHERHOLDS__
RETURN m.id AS one, m.topic AS topic, m.recorded_at.epochMillis AS at,
  o.id AS other, o.topic AS other_topic, o.recorded_at.epochMillis AS other_at
