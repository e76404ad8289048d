MATCH (n:Mention {owner: $owner})
RETURN count(n) AS count
