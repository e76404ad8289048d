// en: Unlinked memories
// en: Current memories that are about nothing in the graph, and the ids that they wait for. $userId may be null.
// zh: 未关联的记忆
// zh: 没有关联到任何实体的现行记忆，以及它们在等待的编号。$userId 可为 null。
MATCH (m:Memory {tenant: $tenant})
WHERE m.user_id IS NOT NULL AND ($userId IS NULL OR m.user_id = $userId)
  AND __HOLDS__
  AND NOT (m)-[:ABOUT]->()
OPTIONAL MATCH (w:Mention {memory: m.key})
WITH m, collect(w.entity) AS waits_for
RETURN m.user_id AS user,
  __TEXT__ AS text,
  m.topic AS topic, waits_for, toString(date(m.occurred_at)) AS day, m.source_id AS source,
  m.id AS memory
ORDER BY m.occurred_at DESC
LIMIT 100
