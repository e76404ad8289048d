MATCH (n:__LABEL__ {owner_key: $owner})
SET n.owner_key = $hidden, n.user_id = $hidden
RETURN count(n) AS count
