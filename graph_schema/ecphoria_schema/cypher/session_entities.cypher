MATCH (m:Memory {session_key: $session}) WHERE m.status <> 'forgotten'
WITH m ORDER BY m.occurred_at DESC, m.key DESC LIMIT $limit
RETURN m.key AS key, [(m)-[:ABOUT]->(e) | e.key] AS about
