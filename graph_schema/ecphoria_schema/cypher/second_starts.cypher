UNWIND $keys AS k
MATCH (b:__TO__ {key: k})<-[:__TYPE__]-(a)
WITH b, count(a) AS starts WHERE starts > 1
RETURN b.key AS key LIMIT 1
