MATCH (d:DataKey)
RETURN d.master_id AS master, count(*) AS count
