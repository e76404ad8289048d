MERGE (f:ForgottenUser {key: $key})
SET f.token = $token
WITH f, f.receipt IS NULL OR f.lifted_at IS NOT NULL AS fresh
SET f.receipt = CASE WHEN fresh THEN $props.receipt ELSE f.receipt END,
  f.at = CASE WHEN fresh THEN $props.at ELSE f.at END,
  f.by = CASE WHEN fresh THEN $props.by ELSE f.by END,
  f.reason = CASE WHEN fresh THEN $props.reason ELSE f.reason END,
  f.counts = CASE WHEN fresh THEN '{}' ELSE f.counts END,
  f.name = 'forgotten user', f.tenant = $tenant, f.user_id = $user, f.touched_at = $props.at
REMOVE f.lifted_at, f.lifted_by, f.finished_at
