"""The GraphQL API of ecphoria: Strawberry types over the engine, served by FastAPI."""
