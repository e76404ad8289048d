UNWIND $keys AS k
MATCH (n:__LABEL__ {key: k})
DETACH DELETE n
