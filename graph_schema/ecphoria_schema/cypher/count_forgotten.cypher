MATCH (f:ForgottenUser {key: $key})
SET f.counts = $counts, f.touched_at = $now
