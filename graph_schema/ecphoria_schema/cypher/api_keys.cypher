MATCH (k:ApiKey) WHERE k.tenant = $tenant
RETURN properties(k) AS props ORDER BY k.created_at, k.key
