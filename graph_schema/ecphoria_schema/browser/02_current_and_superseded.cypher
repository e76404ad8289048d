// en: Current against superseded facts
// en: What holds of each attribute of one __ROOT__, and what it replaced. $attribute may be null.
// zh: 现行事实与已被取代的事实
// zh: 一位__ROOT__的各项属性现在是什么、以前是什么。$attribute 可为 null。
MATCH (m:Memory {user_id: $userId})
WHERE m.tenant = $tenant AND m.status IN ['active', 'superseded']
  AND (m.claim IS NOT NULL OR (m)-[:SUPERSEDES]-(:Memory))
  AND ($attribute IS NULL OR m.attribute = $attribute)
OPTIONAL MATCH (newer:Memory)-[:SUPERSEDES]->(m)
WITH m, collect(newer.id) AS replaced_by,
  CASE WHEN m.status = 'superseded' THEN 'superseded'
    WHEN m.valid_from > datetime() THEN 'later'
    WHEN m.valid_until <= datetime() THEN 'ended'
    ELSE 'current' END AS state
RETURN m.attribute AS attribute, state,
  __VALUE__ AS value,
  __TEXT__ AS text,
  toString(date(m.valid_from)) AS since, toString(date(m.valid_until)) AS until,
  __SUBJECT__ AS subject,
  [(m)-[:ABOUT]->(e) | e.name] AS about, m.source_id AS source, m.id AS memory, replaced_by
ORDER BY attribute, m.claim, m.valid_from DESC
LIMIT 100
