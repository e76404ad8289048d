MERGE (v:SchemaVersion {key: $key})
ON CREATE SET v.checksum = $checksum, v.name = $name, v.applied_at = $now
RETURN v.checksum AS checksum
