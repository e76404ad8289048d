"""Short-term context: the turns of a conversation under way, until they are long-term memory."""
