UNWIND $rows AS row
MATCH (m:Memory {key: row.memory})
MATCH (e:__LABEL__ {key: row.entity})
MERGE (m)-[:ABOUT]->(e)
