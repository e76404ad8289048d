CREATE INDEX memory_user_id IF NOT EXISTS FOR (n:Memory) ON (n.user_id);
