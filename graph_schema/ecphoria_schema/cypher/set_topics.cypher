MATCH (m:Memory {key: $key})
SET m.topic = $topic, m.tags = $tags, m.name = $name, m.text = $shown,
  m.written_topics = $written, m.index_state = 'stale'
