UNWIND $keys AS k
MATCH (m:Memory {key: k}) WHERE m.status <> 'forgotten'
RETURN m.key AS key, m.kind AS kind
