UNWIND $rows AS row
MATCH (:Memory {key: row.newer})-[s:SUPERSEDES]->(:Memory {key: row.older})
DELETE s
