MERGE (c:KeyedCall {key: $key})
ON CREATE SET c.tenant = $tenant
SET c.token = $token
