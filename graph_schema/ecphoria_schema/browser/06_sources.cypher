// en: Sources by reliability
// en: How far each source is trusted, and how many memories come from it.
// zh: 按可靠性排列来源
// zh: 每个来源的可信程度，以及来自它的记忆数量。
MATCH (s:Source {tenant: $tenant})
OPTIONAL MATCH (s)<-[:FROM_SOURCE]-(m:Memory) WHERE m.status <> 'forgotten'
WITH s, count(m) AS memories, max(m.recorded_at) AS newest,
  sum(CASE m.status WHEN 'active' THEN 1 ELSE 0 END) AS active,
  sum(CASE m.status WHEN 'superseded' THEN 1 ELSE 0 END) AS superseded,
  sum(CASE m.status WHEN 'disabled' THEN 1 ELSE 0 END) AS disabled
OPTIONAL MATCH (s)<-[:FROM_SOURCE]-(c:Memory)-[:CONFLICTS_WITH]->(:Memory)
WITH s, memories, newest, active, superseded, disabled, count(DISTINCT c) AS contradicting
RETURN s.id AS source, s.reliability AS reliability, s.disabled AS switched_off, memories, active,
  superseded, disabled, contradicting, toString(date(newest)) AS newest
ORDER BY reliability DESC, source
LIMIT 100
