MATCH (f:Feedback {key: $key}) WHERE f.standing
SET f.standing = false, f.undone_at = $now, f.undone_by = $by
RETURN properties(f) AS props
