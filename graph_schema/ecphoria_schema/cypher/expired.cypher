MATCH (m:Memory) WHERE m.expires_at <= $now
RETURN m.key AS key LIMIT $limit
