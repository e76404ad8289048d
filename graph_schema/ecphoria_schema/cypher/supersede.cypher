UNWIND $rows AS row
MATCH (newer:Memory {key: row.newer})
MATCH (older:Memory {key: row.older})
WHERE newer.user_id = older.user_id OR (newer.user_id IS NULL AND older.user_id IS NULL)
MERGE (newer)-[:SUPERSEDES]->(older)
SET older.status = 'superseded', older.index_state = 'stale',
  older.invalidated_at = newer.recorded_at,
  older.valid_until = CASE
    WHEN newer.valid_from <= older.valid_from THEN older.valid_from
    WHEN older.valid_until IS NULL OR older.valid_until > newer.valid_from THEN newer.valid_from
    ELSE older.valid_until END
RETURN older.key AS key
