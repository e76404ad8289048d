UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
SET m = row.props
