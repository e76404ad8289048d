CREATE CONSTRAINT keyed_call_key IF NOT EXISTS FOR (n:KeyedCall) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT keyed_call_user_key IF NOT EXISTS FOR (n:KeyedCallUser) REQUIRE n.key IS UNIQUE;
CREATE INDEX keyed_call_begun_at IF NOT EXISTS FOR (n:KeyedCall) ON (n.begun_at);
CREATE INDEX keyed_call_user_user IF NOT EXISTS FOR (n:KeyedCallUser) ON (n.user);
CREATE INDEX keyed_call_user_call IF NOT EXISTS FOR (n:KeyedCallUser) ON (n.call);
