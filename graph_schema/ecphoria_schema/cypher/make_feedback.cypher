MATCH (m:Memory {key: $memory})
MERGE (f:Feedback {key: $key})
ON CREATE SET f += $props
MERGE (f)-[:JUDGES]->(m)
