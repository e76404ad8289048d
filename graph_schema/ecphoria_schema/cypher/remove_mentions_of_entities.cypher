UNWIND $keys AS k
MATCH (n:Mention {entity: k})
DELETE n
