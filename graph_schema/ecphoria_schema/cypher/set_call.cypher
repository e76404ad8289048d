MATCH (c:KeyedCall {key: $key})
WHERE c.holder = $holder
SET c += $props
