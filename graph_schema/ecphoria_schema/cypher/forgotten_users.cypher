UNWIND $keys AS k
MATCH (f:ForgottenUser {key: k})
RETURN properties(f) AS props
