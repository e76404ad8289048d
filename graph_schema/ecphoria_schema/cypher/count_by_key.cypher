UNWIND $keys AS k
MATCH (n:__LABEL__ {key: k})
RETURN count(n) AS count
