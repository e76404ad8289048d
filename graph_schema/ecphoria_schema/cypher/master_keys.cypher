MATCH (m:MasterKey)
RETURN m.key AS key, m.check AS check
