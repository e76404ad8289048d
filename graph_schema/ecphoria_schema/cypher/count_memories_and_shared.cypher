CALL () {
  UNWIND [$p.user] AS u
  MATCH (m:Memory {user_id: u})
  RETURN m
  UNION ALL
  UNWIND [$p.tenant] AS t
  MATCH (m:Memory {tenant: t}) WHERE m.user_id IS NULL
  RETURN m
}
WITH m WHERE __LISTED__
RETURN count(m) AS count
