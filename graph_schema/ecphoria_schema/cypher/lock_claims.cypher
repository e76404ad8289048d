UNWIND $keys AS k
MERGE (c:Claim {key: k})
ON CREATE SET c.count = 0
SET c.token = $token
WITH collect(c) AS claims, max(c.at) AS last
WITH claims, CASE WHEN last IS NULL OR last < $now THEN $now ELSE last END AS at
UNWIND claims AS c
SET c.at = at
RETURN c.key AS key, c.count AS count, at
