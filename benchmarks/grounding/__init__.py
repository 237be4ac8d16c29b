"""Measures the check of answers on answers and summaries that people have labelled: python -m benchmarks.grounding."""
