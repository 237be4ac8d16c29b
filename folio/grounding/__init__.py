"""A statement and evidence become a verdict."""
