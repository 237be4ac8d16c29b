"""Search in rounds: its types, steps, checkpoint, and the profile of its evidence."""
