// en: What recall used
// en: Memories of one __ROOT__ that answers were made of, the last used first. $memoryIds may be null, or the ids of an answer: recall keeps no trace in the graph, only how often and when a memory was used.
// zh: 召回用过的记忆
// zh: 一位__ROOT__被用于回答的记忆，最近使用的在前。$memoryIds 可为 null，也可为某次回答中的编号：图中不保存召回过程，只保存使用次数和时间。
MATCH (m:Memory {user_id: $userId})
WHERE m.tenant = $tenant AND m.status <> 'forgotten'
  AND (m.id IN $memoryIds OR ($memoryIds IS NULL AND m.access_count > 0))
RETURN m.access_count AS used, m.last_accessed_at AS last_used,
  __TEXT__ AS text,
  [(m)-[:ABOUT]->(e) | e.name] AS about, m.kind AS kind, m.topic AS topic, m.status AS status,
  m.tier AS tier, m.freshness AS freshness_then, m.source_id AS source, m.id AS memory
ORDER BY last_used IS NULL, last_used DESC, memory
LIMIT 100
