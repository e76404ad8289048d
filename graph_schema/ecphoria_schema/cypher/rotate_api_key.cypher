MATCH (k:ApiKey {key: $id})
SET k.touched = true
WITH k WHERE k.secret_hash = $expected AND k.revoked_at IS NULL
SET k += $props
RETURN k.key AS key
