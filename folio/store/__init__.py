"""One truth in SQL, and the indexes derived from it."""
