MATCH (m:Memory {key: $memory})
MERGE (t:CompletionTask {key: $key})
ON CREATE SET t += $props
MERGE (t)-[:COMPLETES]->(m)
