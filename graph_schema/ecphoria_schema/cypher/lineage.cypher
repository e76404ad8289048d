UNWIND $keys AS k
MATCH (m:Memory {key: k})-[r:SUPERSEDES|CONFLICTS_WITH|POSSIBLE_UPDATE_OF]-(o:Memory)
RETURN k AS key, type(r) AS type, startNode(r).key AS from, o.key AS other, r.how AS how,
  r.reason AS reason, r.by AS by, r.at AS at
