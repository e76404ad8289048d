MATCH (p:Pending) WHERE p.key STARTS WITH $prefix
RETURN count(p) AS count
