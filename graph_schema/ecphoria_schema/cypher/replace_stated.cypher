UNWIND $rows AS row
MATCH (newer:Memory {key: row.newer})
MATCH (older:Memory {key: row.older})
WHERE older.status <> 'forgotten'
  AND (newer.user_id = older.user_id OR (newer.user_id IS NULL AND older.user_id IS NULL))
RETURN newer.key AS newer, older.key AS older, newer.reliability AS newer_reliability,
  older.reliability AS older_reliability
