MATCH (c:KeyedCall {key: $key})
RETURN properties(c) AS props
