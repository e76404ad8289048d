MATCH (s:Source {key: $key})
SET s.declared = coalesce(s.declared, s.reliability), s.lock = true
REMOVE s.lock
RETURN s.declared AS declared, s.reliability AS reliability
