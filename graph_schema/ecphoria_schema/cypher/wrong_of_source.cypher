MATCH (f:Feedback {source: $source}) WHERE f.standing AND f.verdict = $verdict
RETURN f.by AS by, count(f) AS count
