// en: Memories about one thing
// en: What is remembered about one thing, how each memory came to be linked, and the way that leads there from the __ROOT__.
// zh: 关于某一事物的记忆
// zh: 关于某一事物记住了什么、每条记忆如何关联，以及从__ROOT__到达它的路径。
MATCH (e:__ENTITIES__ {key: $tenant + '|' + $entityType + '|' + $entityId})
__WAY__
WITH e, head(collect(way)) AS way
MATCH (e)<-[a:ABOUT]-(m:Memory)
WHERE m.tenant = $tenant AND m.status <> 'forgotten'
RETURN toString(date(m.occurred_at)) AS day,
  __TEXT__ AS text,
  way, a.how AS linked_by, a.certainty AS certainty, m.kind AS kind, m.topic AS topic,
  m.status AS status, m.importance AS importance, toString(date(m.expires_at)) AS expires,
  m.source_id AS source, m.id AS memory
ORDER BY day DESC, memory
LIMIT 100
