// en: What the index waits for
// en: Memories whose row in the vector index is still to be made, changed or taken away. Normally none.
// zh: 等待写入索引的记忆
// zh: 向量索引中尚待新建、修改或删除的行。通常没有。
MATCH (p:Pending) WHERE p.key STARTS WITH $tenant + '|'
OPTIONAL MATCH (m:Memory {key: p.key})
RETURN p.key AS memory, coalesce(m.index_state, 'deleting') AS state, m.user_id AS user,
  m.kind AS kind, m.recorded_at AS recorded, p.leased_by AS worker, p.leased_until AS worker_until
ORDER BY recorded IS NOT NULL, recorded
LIMIT 100
