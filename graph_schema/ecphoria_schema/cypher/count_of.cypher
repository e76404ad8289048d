UNWIND $keys AS k
MATCH (n:__LABEL__ {__OF__: k})
RETURN count(n) AS count
