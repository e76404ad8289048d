UNWIND $keys AS k
MATCH (f:Feedback {__OF__: k}) WHERE f.standing AND f.verdict = $verdict
REMOVE f.memory, f.memory_id, f.owner, f.user_id, f.note, f.sealed, f.before, f.privacy
RETURN f.key AS key
