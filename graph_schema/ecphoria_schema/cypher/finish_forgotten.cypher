MATCH (f:ForgottenUser {key: $key}) WHERE f.lifted_at IS NULL
SET f.finished_at = $now
REMOVE f.user_id, f.touched_at
