"""Looking around: lists page by page, conflicts, what is connected, what there is."""
