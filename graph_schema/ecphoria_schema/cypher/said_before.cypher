UNWIND $rows AS row
CALL (row) {
  MATCH (m:Memory {session_key: row.session})
  WITH m, m.occurred_at.epochMillis AS at
  WHERE at < row.at OR (at = row.at AND m.key < row.key)
  RETURN m.text AS text, m.privacy AS privacy, at, m.key AS place
  ORDER BY at DESC, place DESC LIMIT $limit
}
RETURN row.key AS key, text, privacy
ORDER BY key, at DESC, place DESC
