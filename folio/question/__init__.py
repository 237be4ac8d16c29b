"""A question: its kind, its parts, its spelling, its place in a conversation."""
