// en: Conflicts by topic
// en: Values that contradict one another while both hold: the newer one is from a lesser source. $topic and $userId may be null.
// zh: 按主题列出矛盾
// zh: 同时有效却互相矛盾的值：较新的一条来源较不可靠。$topic 和 $userId 可为 null。
MATCH (newer:Memory)-[:CONFLICTS_WITH]->(older:Memory)
WHERE newer.tenant = $tenant AND ($userId IS NULL OR newer.user_id = $userId)
  AND ($topic IS NULL OR newer.topic = $topic OR older.topic = $topic)
  AND __NEWERHOLDS__
  AND __OLDERHOLDS__
RETURN coalesce(newer.topic, older.topic) AS topic, newer.user_id AS user,
  newer.attribute AS attribute,
  __NEWERVALUE__ AS newer_value,
  newer.source_id AS newer_source,
  __OLDERVALUE__ AS older_value,
  older.source_id AS older_source,
  __NEWERSUBJECT__ AS subject,
  newer.id AS newer_memory, older.id AS older_memory
ORDER BY topic, newer.valid_from DESC
LIMIT 100
