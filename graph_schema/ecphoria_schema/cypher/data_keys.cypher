UNWIND $keys AS k
MATCH (d:DataKey {key: k})
RETURN properties(d) AS props
