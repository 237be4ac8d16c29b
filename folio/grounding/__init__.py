"""A statement and its evidence -> a verdict: supported, reworded or left out."""
