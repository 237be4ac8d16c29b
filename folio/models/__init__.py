"""Weights and model servers."""
