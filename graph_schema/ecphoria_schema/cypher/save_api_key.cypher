MERGE (k:ApiKey {key: $id})
SET k += $props
