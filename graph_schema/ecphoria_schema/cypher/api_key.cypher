MATCH (k:ApiKey {key: $id})
RETURN properties(k) AS props
