MATCH (a:FeedbackAuthor {key: $key})
SET a.recent = $recent
