UNWIND $rows AS row
MATCH (m:Memory {key: row.memory})
MATCH (e:__LABEL__ {key: row.entity})
MERGE (m)-[a:ABOUT]->(e)
SET a.certainty = row.certainty, a.how = row.how, a.attribute = row.attribute, a.value = row.value
