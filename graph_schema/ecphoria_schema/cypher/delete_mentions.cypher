UNWIND $keys AS k
MATCH (n:Mention {memory: k})
DELETE n
