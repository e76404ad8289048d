UNWIND $keys AS k
MATCH (a:__TO__ {key: k}) WHERE $start_shared OR a.owner_key = $owner
CALL (a) {
  MATCH (a)<-[:__TYPE__]-(b:__FROM__)
  WHERE b.key > $after AND ($shared OR b.owner_key = $owner)
  RETURN b ORDER BY b.key LIMIT $limit
}
RETURN k AS key, collect(properties(b)) AS others
