UNWIND $rows AS row
MATCH (newer:Memory {key: row.newer})
MATCH (older:Memory {key: row.older})
MERGE (newer)-[r:POSSIBLE_UPDATE_OF]->(older)
SET r.at = $now
