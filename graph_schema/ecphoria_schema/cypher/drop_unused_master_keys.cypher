MATCH (m:MasterKey) WHERE m.key <> $current
OPTIONAL MATCH (d:DataKey {master_id: m.key})
WITH m, count(d) AS uses WHERE uses = 0
DELETE m
