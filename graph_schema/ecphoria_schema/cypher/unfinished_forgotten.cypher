MATCH (f:ForgottenUser) WHERE f.touched_at <= $before
RETURN properties(f) AS props ORDER BY f.key LIMIT $limit
