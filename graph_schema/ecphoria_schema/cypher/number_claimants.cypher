UNWIND $rows AS row
MATCH (m:Memory {key: row.memory})
MATCH (c:Claim {key: row.claim})
SET m.claim_number = row.number, c.count = row.number
