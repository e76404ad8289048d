// en: Memories by confidence
// en: The least trusted current memories of one __ROOT__ first: 0.40 timeliness, 0.35 source, 0.25 consistency, as of now. Only values of one attribute are compared here; recall also compares what the texts say.
// zh: 按置信度排列记忆
// zh: 一位__ROOT__的现行记忆，最不可信的在前：0.40 时效性、0.35 来源、0.25 一致性，按当前时间计算。此处只比较同一属性的值；召回时还会比较文字内容。
MATCH (m:Memory {user_id: $userId})
WHERE m.tenant = $tenant AND __HOLDS__
OPTIONAL MATCH (m)-[:FROM_SOURCE]->(s:Source)
WITH m, CASE WHEN s IS NULL OR s.disabled THEN 0.0 ELSE s.reliability END AS source,
  __HALFLIFE__ AS half_life,
  (datetime().epochMillis - m.occurred_at.epochMillis) / 86400000.0 AS age,
  (m.valid_until.epochMillis - datetime().epochMillis) / 86400000.0 AS left_days
OPTIONAL MATCH (o:Memory {claim: m.claim})
WHERE o.key <> m.key AND __OTHERHOLDS__
WITH m, source, half_life, age, left_days, max(o.reliability) AS best
OPTIONAL MATCH (o:Memory {claim: m.claim})
WHERE o.key <> m.key AND o.reliability = best AND __OTHERHOLDS__
WITH m, source, half_life, age, left_days, best, collect(o.key) AS others
WITH m, source, half_life, age, left_days, size(others) AS others,
  CASE WHEN best < m.reliability THEN toFloat(best) / m.reliability ELSE 1.0 END AS worth,
  size([k IN [(m)-[:CONFLICTS_WITH]-(c:Memory) | c.key] WHERE k IN others]) AS against
WITH m,
  CASE WHEN source > coalesce(m.doubt, 0.0) THEN source - coalesce(m.doubt, 0.0) ELSE 0.0 END
    AS source,
  CASE WHEN left_days >= 90 THEN 1.0 WHEN left_days IS NOT NULL THEN left_days / 90.0
    WHEN age <= 0 THEN 1.0 ELSE 0.5 ^ (age / half_life) END AS timeliness,
  CASE WHEN others = 0 THEN 1.0 ELSE 1.0 - worth * against / others END AS consistency
WITH m, timeliness, source, consistency,
  0.40 * timeliness + 0.35 * source + 0.25 * consistency AS confidence
RETURN toInteger(round(confidence * 100)) / 100.0 AS confidence,
  __TEXT__ AS text,
  toInteger(round(timeliness * 100)) / 100.0 AS timeliness, source,
  toInteger(round(consistency * 100)) / 100.0 AS consistency,
  m.topic AS topic, toString(date(m.occurred_at)) AS day, m.source_id AS from_source,
  m.id AS memory
ORDER BY confidence, memory
LIMIT 100
