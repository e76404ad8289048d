MATCH (u:KeyedCallUser {user: $user})
RETURN u.call AS call
