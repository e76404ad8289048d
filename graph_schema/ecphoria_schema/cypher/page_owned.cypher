MATCH (b:__FROM__ {owner_key: $owner})-[:__TYPE__]->(a:__TO__)
WHERE b.key > $after AND a.key IN $keys
WITH a.key AS key, b ORDER BY b.key
RETURN key, collect(properties(b))[..$limit] AS others
