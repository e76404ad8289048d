UNWIND $keys AS k
MATCH (n:__LABEL__ {key: k})
RETURN properties(n) AS props
