MATCH (m:Memory {key: $key})
SET m.doubt = $doubt
