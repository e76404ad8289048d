UNWIND $keys AS k
MATCH (f:ForgottenUser {key: k}) WHERE f.lifted_at IS NULL AND f.finished_at IS NOT NULL
SET f.lifted_at = $now, f.lifted_by = $by
RETURN f.key AS key
