MATCH (n:__LABEL__ {key: $owner})
SET n.key = $hidden
RETURN count(n) AS count
