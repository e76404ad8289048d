MATCH (f:ForgottenUser {key: $key})
SET f.token = $token
RETURN f.counts AS counts
