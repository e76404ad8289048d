UNWIND $keys AS k
MATCH (b:__TO__ {key: k}) WHERE b.owner_key IS NOT NULL
MATCH (b)-[:__OWNING__*1..8]->(c)
RETURN DISTINCT c.key AS key
