UNWIND $rows AS row
MATCH (:Memory {key: row.newer})-[c:CONFLICTS_WITH]->(:Memory {key: row.older})
DELETE c
