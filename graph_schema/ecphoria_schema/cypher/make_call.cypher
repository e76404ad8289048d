MERGE (c:KeyedCall {key: $key})
SET c += $props
