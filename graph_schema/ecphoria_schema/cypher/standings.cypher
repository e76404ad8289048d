UNWIND $keys AS k
MATCH (m:Memory {key: k}) WHERE m.status IN ['active', 'superseded']
RETURN m.key AS key, __MEMORY__ AS props, [(m)-[:ABOUT]->(e) | e.key] AS about,
  [(m)<-[s:SUPERSEDES]-(x) | {key: x.key, how: s.how, from: x.valid_from, status: x.status}]
    AS replaced_by,
  [(m)-[c:CONFLICTS_WITH]->(x) | {key: x.key, how: c.how}] AS against
