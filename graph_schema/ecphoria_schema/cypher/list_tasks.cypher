MATCH (t:CompletionTask {owner: $p.owner}) WHERE t.key < $p.before
OPTIONAL MATCH (m:Memory {key: t.memory})
WITH t, m, t.done_at IS NOT NULL OR m.status IN ['superseded', 'disabled'] AS done
WHERE $p.any_status OR done = $p.done
WITH t, m, done ORDER BY t.key DESC LIMIT $p.limit
RETURN properties(t) AS props, done, [(m)<-[:SUPERSEDES]-(x:Memory) | x.id] AS newer
ORDER BY t.key DESC
