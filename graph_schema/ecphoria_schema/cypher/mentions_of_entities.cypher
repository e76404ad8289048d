UNWIND $keys AS k
MATCH (n:Mention {entity: k})
RETURN n.key AS key, n.entity AS entity
