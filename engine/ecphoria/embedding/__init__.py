"""Texts to vectors: the port, its adapters, and what every text and vector goes through."""
