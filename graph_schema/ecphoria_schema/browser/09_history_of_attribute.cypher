// en: History of an attribute
// en: Every value that an attribute of one thing had: when it was true, and when that was known. $attribute may be null.
// zh: 属性的历史
// zh: 某一事物的属性曾有的每个值：何时有效，何时得知。$attribute 可为 null。
MATCH (e:__ENTITIES__ {key: $tenant + '|' + $entityType + '|' + $entityId})<-[:ABOUT]-(m:Memory)
WHERE m.tenant = $tenant AND m.attribute IS NOT NULL AND m.status <> 'forgotten'
  AND ($attribute IS NULL OR m.attribute = $attribute)
OPTIONAL MATCH (newer:Memory)-[r:SUPERSEDES]->(m)
WITH e, m, collect(newer.id) AS replaced_by, collect(r.how) AS how
RETURN e.name AS thing, m.attribute AS attribute,
  __SUBJECT__ AS subject,
  __VALUE__ AS value,
  m.valid_from AS true_from, m.valid_until AS true_until, m.recorded_at AS known_from,
  m.invalidated_at AS known_until, m.status AS status, m.source_id AS source,
  m.reliability AS reliability, m.id AS memory, replaced_by, how
ORDER BY attribute, subject, true_from, m.claim_number
LIMIT 100
