"""The domain: what exists in a business and how it is connected.

Imports nothing of ecphoria's engine or API.
"""
