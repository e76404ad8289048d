"""Writing: from texts and records to the graph and the index. A file a stage."""
