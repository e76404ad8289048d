"""The operations of the client, as text."""

from typing import Final

RECALL: Final = """
query Recall($input: RecallInput!, $maxTokens: Int!) {
  recall(input: $input) {
    action
    advisory
    topics
    degradations
    contextBlock(maxTokens: $maxTokens)
    confidence { overall }
    memories {
      relevance
      confidence { overall }
      because { path }
      memory { id userId kind topic text source validFrom validUntil status }
    }
    entities { id type name }
  }
}
"""

MEMORY: Final = """
query Memory($userId: ID!, $id: ID!) {
  memory(userId: $userId, id: $id) {
    id userId kind topic text source validFrom validUntil status
  }
}
"""

REMEMBER: Final = """
mutation Remember($items: [MemoryInput!]!, $key: ID) {
  rememberBatch(input: {items: $items}, idempotencyKey: $key) {
    receipts {
      index status id indexed supersedes conflictsWith possibleUpdateOf waitingFor notes
      error { code message path }
    }
    error { code message path }
  }
}
"""

FORGET: Final = """
mutation Forget($userId: ID!, $ids: [ID!]!, $reason: String!, $key: ID) {
  forget(userId: $userId, ids: $ids, reason: $reason, idempotencyKey: $key) {
    forgotten unknown error { code message path }
  }
}
"""
