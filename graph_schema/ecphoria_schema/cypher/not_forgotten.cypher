UNWIND $keys AS k
MATCH (m:Memory {key: k}) WHERE m.status <> 'forgotten'
RETURN m.key AS key, m.tenant AS tenant, m.id AS id, m.user_id AS user_id, m.kind AS kind,
  m.claim AS claim, m.recorded_at AS recorded_at
