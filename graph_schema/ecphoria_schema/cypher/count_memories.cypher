CALL () {
  UNWIND [$p.user] AS u
  MATCH (m:Memory {user_id: u})
  RETURN m
}
WITH m WHERE __LISTED__
RETURN count(m) AS count
