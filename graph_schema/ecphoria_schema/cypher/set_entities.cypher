UNWIND $rows AS row
MATCH (n:__LABEL__ {key: row.key})
SET n += row.props
