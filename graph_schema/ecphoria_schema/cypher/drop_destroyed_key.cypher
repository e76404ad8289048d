MATCH (d:DataKey {key: $key}) WHERE d.destroyed_at IS NOT NULL
DELETE d
