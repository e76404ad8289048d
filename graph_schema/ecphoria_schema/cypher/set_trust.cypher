MATCH (s:Source {key: $key})
SET s.reliability = $reliability
