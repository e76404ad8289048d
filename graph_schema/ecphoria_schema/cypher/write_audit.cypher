UNWIND $rows AS row
MERGE (a:AuditEntry {key: row.key})
ON CREATE SET a += row.props
