"""Reading: from a question to a joined, structured context. A file a stage."""
