MATCH (n:Mention {owner: $owner})
DELETE n
