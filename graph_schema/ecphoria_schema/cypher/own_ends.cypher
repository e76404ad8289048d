UNWIND $rows AS row
MATCH (a:__FROM__ {key: row.from}) WHERE a.owner_key IS NOT NULL
MATCH (b:__TO__ {key: row.to})
SET b.owner_key = a.owner_key, b.user_id = a.user_id
