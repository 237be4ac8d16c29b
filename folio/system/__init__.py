"""Files, guarded worker processes, threads, and what may reach a network."""
