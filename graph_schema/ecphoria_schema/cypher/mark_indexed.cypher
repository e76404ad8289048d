UNWIND $rows AS row
MATCH (p:Pending {key: row.key}) WHERE p.token = row.token
DELETE p
WITH row
OPTIONAL MATCH (m:Memory {key: row.key})
SET m.index_state = 'indexed', m.embedding_model = $model
REMOVE m.write_token
RETURN row.key AS key
