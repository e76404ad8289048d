MATCH (n:__LABEL__ {owner_key: $hidden})
WITH n LIMIT $limit
RETURN n.key AS key, n.id AS id
