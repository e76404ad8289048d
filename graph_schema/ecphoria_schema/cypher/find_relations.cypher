UNWIND $rows AS row
OPTIONAL MATCH (a:__FROM__ {key: row.from})
OPTIONAL MATCH (b:__TO__ {key: row.to})
RETURN row.index AS index, a.key AS from, b.key AS to,
  EXISTS { MATCH (:__FROM__ {key: row.from})-[:__TYPE__]->(:__TO__ {key: row.to}) } AS there
