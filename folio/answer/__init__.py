"""Evidence becomes an answer."""
