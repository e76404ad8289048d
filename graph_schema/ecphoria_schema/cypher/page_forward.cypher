UNWIND $keys AS k
MATCH (a:__FROM__ {key: k}) WHERE $start_shared OR a.owner_key = $owner
CALL (a) {
  MATCH (a)-[:__TYPE__]->(b:__TO__)
  WHERE b.key > $after AND ($shared OR b.owner_key = $owner)
  RETURN b ORDER BY b.key LIMIT $limit
}
RETURN k AS key, collect(properties(b)) AS others
