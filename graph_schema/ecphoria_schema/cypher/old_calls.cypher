MATCH (c:KeyedCall)
WHERE c.begun_at <= $oldest
RETURN c.key AS key
LIMIT $limit
