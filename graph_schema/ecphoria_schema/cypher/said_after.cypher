UNWIND $keys AS k
MATCH (f:Memory {key: k}) WHERE f.session_key IS NOT NULL
CALL (f) {
  MATCH (m:Memory {session_key: f.session_key})
  WHERE m.occurred_at > f.occurred_at OR (m.occurred_at = f.occurred_at AND m.key > f.key)
  RETURN m.key AS key
  ORDER BY m.occurred_at, m.key LIMIT $limit
}
RETURN DISTINCT key
