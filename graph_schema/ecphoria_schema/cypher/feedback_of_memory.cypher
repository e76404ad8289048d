MATCH (f:Feedback {memory: $memory}) WHERE f.standing AND f.verdict = $verdict
RETURN properties(f) AS props ORDER BY f.key
