MATCH (n:__LABEL__) WHERE n.tenant = $tenant
RETURN count(n) AS count
