UNWIND $ends AS end
MATCH (n:__LABEL__ {owner_key: $owner}) WHERE n.id ENDS WITH end
RETURN DISTINCT n.id AS id ORDER BY id LIMIT $limit
