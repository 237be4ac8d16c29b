"""Evidence tables: questions put to each of many papers, and answered with quotes or not at all."""
