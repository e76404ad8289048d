UNWIND $rows AS row
MERGE (n:Mention {key: row.key})
SET n.tenant = $tenant, n.memory = row.memory, n.entity = row.entity, n.owner = row.owner,
  n.certainty = row.certainty, n.text = row.text
