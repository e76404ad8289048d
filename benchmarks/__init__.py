"""Speed of ecphoria against the raw parts it is made of: `python -m benchmarks`."""
