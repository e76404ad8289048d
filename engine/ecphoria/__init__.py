"""ecphoria: a hybrid graph-plus-vector memory engine for AI agents."""
