"""Question and memory read together: the port, its adapter, and what opens it."""
