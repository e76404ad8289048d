UNWIND $rows AS row
MERGE (m:Memory {key: row.key})
ON CREATE SET m += row.props, m += __TIMES__, m.write_token = $token
RETURN m.key AS key, m.content_hash AS content_hash, m.user_id AS user_id, m.status AS status,
  m.index_state AS index_state, m.write_token = $token AS created
