CREATE CONSTRAINT memory_key IF NOT EXISTS FOR (n:Memory) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT source_key IF NOT EXISTS FOR (n:Source) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT pending_key IF NOT EXISTS FOR (n:Pending) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT api_key_key IF NOT EXISTS FOR (n:ApiKey) REQUIRE n.key IS UNIQUE;
CREATE INDEX pending_token IF NOT EXISTS FOR (n:Pending) ON (n.token);
CREATE INDEX memory_supersedes_key IF NOT EXISTS FOR (n:Memory) ON (n.supersedes_key);
CREATE INDEX memory_tenant IF NOT EXISTS FOR (n:Memory) ON (n.tenant);
CREATE INDEX source_tenant IF NOT EXISTS FOR (n:Source) ON (n.tenant);
CREATE INDEX api_key_tenant IF NOT EXISTS FOR (n:ApiKey) ON (n.tenant);
