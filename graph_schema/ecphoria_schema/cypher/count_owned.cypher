MATCH (n:__LABEL__ {owner_key: $owner})
RETURN count(n) AS count
