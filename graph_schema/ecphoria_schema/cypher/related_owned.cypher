MATCH (b:__FROM__ {owner_key: $owner})-[:__TYPE__]->(a:__TO__)
WHERE a.key IN $keys
WITH a.key AS key, properties(b) AS other ORDER BY other.key
RETURN key, collect(other)[..$limit] AS others
