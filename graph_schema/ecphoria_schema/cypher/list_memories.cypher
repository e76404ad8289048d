CALL () {
  UNWIND [$p.user] AS u
  MATCH (m:Memory {user_id: u})
  RETURN m
}
WITH m
WHERE __LISTED__ AND (m.occurred_at < $p.at OR (m.occurred_at = $p.at AND m.key < $p.key))
WITH m ORDER BY m.occurred_at DESC, m.key DESC LIMIT $p.limit
RETURN __MEMORY__ AS props, [(m)-[:ABOUT]->(e) | e.key] AS about
ORDER BY m.occurred_at DESC, m.key DESC
