MATCH (s:Source) WHERE s.tenant = $tenant
RETURN properties(s) AS props ORDER BY s.id
