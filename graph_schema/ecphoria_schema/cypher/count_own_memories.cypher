UNWIND $users AS u
MATCH (m:Memory {user_id: u}) WHERE m.tenant = $tenant
RETURN count(m) AS count
