MATCH (m:Memory {key: $key})
RETURN m.written_topics AS written
