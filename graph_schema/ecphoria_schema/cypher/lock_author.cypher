MERGE (a:FeedbackAuthor {key: $key})
SET a.token = $token, a.tenant = $tenant
RETURN a.recent AS recent
