UNWIND $rows AS row
MATCH (m:Memory {key: row.memory})
MERGE (s:Source {key: row.source_key})
ON CREATE SET s.tenant = $tenant, s.id = row.source_id, s.name = row.source_name,
  s.reliability = row.reliability, s.disabled = false, s.recorded_at = $now
MERGE (m)-[:FROM_SOURCE]->(s)
SET m.reliability = coalesce(s.declared, s.reliability)
