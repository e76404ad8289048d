"""From a text to atomic facts: by the domain's rules, or by a chat model."""
