MATCH (t:CompletionTask {key: $key})
OPTIONAL MATCH (m:Memory {key: t.memory})
RETURN properties(t) AS props,
  t.done_at IS NOT NULL OR m.status IN ['superseded', 'disabled'] AS done,
  [(m)<-[:SUPERSEDES]-(x:Memory) | x.id] AS newer
