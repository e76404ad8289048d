MATCH (f:Feedback {key: $key}) WHERE f.memory IS NOT NULL
RETURN properties(f) AS props
