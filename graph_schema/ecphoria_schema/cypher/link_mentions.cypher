UNWIND $keys AS k
MATCH (n:Mention {key: k})
MATCH (m:Memory {key: n.memory})
MATCH (e:__LABEL__ {key: n.entity}) WHERE $shared OR e.owner_key = n.owner
MERGE (m)-[a:ABOUT]->(e)
SET a.certainty = n.certainty, a.how = 'arrived'
DELETE n
