MATCH (a:AuditEntry)
WHERE a.key > $p.low AND a.key < $p.high
  AND ($p.any_user OR a.user IN $p.users)
  AND ($p.any_principal OR a.principal = $p.principal)
  AND ($p.any_operation OR a.operation = $p.operation)
  AND ($p.any_outcome OR a.outcome = $p.outcome)
WITH a ORDER BY a.key DESC LIMIT $p.limit
RETURN properties(a) AS props ORDER BY a.key DESC
