MATCH (t:CompletionTask {key: $key}) WHERE t.done_at IS NULL
SET t.done_at = $now, t.done_by = $by, t.completed_by = $memory
RETURN t.key AS key
