UNWIND $keys AS k
MATCH (newer:Memory {supersedes_key: k})
RETURN newer.key AS newer, k AS older
