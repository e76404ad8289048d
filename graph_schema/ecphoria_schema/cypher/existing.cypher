UNWIND $keys AS k
MATCH (n:__LABEL__ {key: k})
RETURN n.key AS key, n.user_id AS user_id
