"""The graph store and the vector index: ports, adapters, embedded servers."""
