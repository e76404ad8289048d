UNWIND $rows AS row
MATCH (newer:Memory {key: row.newer})
MATCH (older:Memory {key: row.older})
MERGE (newer)-[s:SUPERSEDES]->(older)
SET s.how = row.how, s.reason = row.reason, s.by = row.by, s.at = $now
