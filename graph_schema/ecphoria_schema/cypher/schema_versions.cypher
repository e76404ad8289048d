MATCH (v:SchemaVersion)
RETURN v.key AS key, v.checksum AS checksum ORDER BY v.key
