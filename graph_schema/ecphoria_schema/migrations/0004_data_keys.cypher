CREATE CONSTRAINT data_key_key IF NOT EXISTS FOR (n:DataKey) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT master_key_key IF NOT EXISTS FOR (n:MasterKey) REQUIRE n.key IS UNIQUE;
CREATE INDEX data_key_master_id IF NOT EXISTS FOR (n:DataKey) ON (n.master_id);
