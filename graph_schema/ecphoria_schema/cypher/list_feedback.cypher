MATCH (f:Feedback {owner: $p.owner})
WHERE f.key < $p.before
  AND ($p.any_memory OR f.memory = $p.memory)
  AND ($p.any_verdict OR f.verdict = $p.verdict)
  AND ($p.any_standing OR f.standing = $p.standing)
WITH f ORDER BY f.key DESC LIMIT $p.limit
RETURN properties(f) AS props ORDER BY f.key DESC
