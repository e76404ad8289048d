UNWIND $keys AS k
MATCH (m:Memory {key: k})-[a:ABOUT]->(e)
RETURN k AS key, e.key AS entity, a.certainty AS certainty, a.how AS how
