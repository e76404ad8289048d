UNWIND $keys AS k
MATCH (a:__FROM__ {key: k})-[:__TYPE__]->(b)
WITH a, count(b) AS ends WHERE ends > 1
RETURN a.key AS key LIMIT 1
