UNWIND $rows AS row
MATCH (a:__FROM__ {key: row.from})
MATCH (b:__TO__ {key: row.to})
MERGE (a)-[r:__TYPE__]->(b)
ON CREATE SET r.recorded_at = $now
