"""Chat models behind an OpenAI-compatible API, and what is asked of them."""
