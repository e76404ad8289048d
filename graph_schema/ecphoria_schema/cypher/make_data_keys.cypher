MERGE (m:MasterKey {key: $master})
ON CREATE SET m.check = $check
WITH m
UNWIND $rows AS row
MERGE (d:DataKey {key: row.key})
ON CREATE SET d += row.props
RETURN properties(d) AS props
