MATCH (m:Memory {key: $key})
SET m.ended_at = $ended_at
