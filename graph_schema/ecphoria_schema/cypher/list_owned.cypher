MATCH (n:__LABEL__ {owner_key: $owner}) WHERE n.key > $after
WITH n ORDER BY n.key LIMIT $limit
RETURN properties(n) AS props ORDER BY n.key
