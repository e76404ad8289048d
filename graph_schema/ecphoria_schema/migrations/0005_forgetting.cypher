CREATE CONSTRAINT forgotten_user_key IF NOT EXISTS FOR (n:ForgottenUser) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT audit_entry_key IF NOT EXISTS FOR (n:AuditEntry) REQUIRE n.key IS UNIQUE;
CREATE INDEX forgotten_user_touched_at IF NOT EXISTS FOR (n:ForgottenUser) ON (n.touched_at);
CREATE INDEX mention_owner IF NOT EXISTS FOR (n:Mention) ON (n.owner);
