MATCH (n:__LABEL__) WHERE n.key > $after AND n.key < $before
WITH n ORDER BY n.key LIMIT $limit
RETURN properties(n) AS props ORDER BY n.key
