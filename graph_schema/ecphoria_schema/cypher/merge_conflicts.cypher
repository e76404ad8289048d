UNWIND $rows AS row
MATCH (newer:Memory {key: row.newer})
MATCH (older:Memory {key: row.older})
MERGE (newer)-[c:CONFLICTS_WITH]->(older)
SET c.how = row.how, c.at = $now
