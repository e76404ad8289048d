MATCH (d:DataKey)
WHERE d.key > $after AND d.wrapped IS NOT NULL AND d.master_id <> $master
RETURN properties(d) AS props
ORDER BY d.key LIMIT $limit
