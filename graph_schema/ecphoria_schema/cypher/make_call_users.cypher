UNWIND $rows AS row
MERGE (u:KeyedCallUser {key: row.key})
SET u.user = row.user, u.call = $call
