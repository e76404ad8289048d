CREATE CONSTRAINT feedback_key IF NOT EXISTS FOR (n:Feedback) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT completion_task_key IF NOT EXISTS FOR (n:CompletionTask) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT feedback_author_key IF NOT EXISTS FOR (n:FeedbackAuthor) REQUIRE n.key IS UNIQUE;
CREATE INDEX feedback_memory IF NOT EXISTS FOR (n:Feedback) ON (n.memory);
CREATE INDEX feedback_owner IF NOT EXISTS FOR (n:Feedback) ON (n.owner);
CREATE INDEX feedback_source IF NOT EXISTS FOR (n:Feedback) ON (n.source);
CREATE INDEX completion_task_memory IF NOT EXISTS FOR (n:CompletionTask) ON (n.memory);
CREATE INDEX completion_task_owner IF NOT EXISTS FOR (n:CompletionTask) ON (n.owner);
