"""What can be read off a text without a model: language, topics, cues, mentions, contradiction."""
