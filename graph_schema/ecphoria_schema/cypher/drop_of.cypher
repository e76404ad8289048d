UNWIND $keys AS k
MATCH (n:__LABEL__ {__OF__: k})
DETACH DELETE n
