"""A question becomes passages."""
