"""Question sets, metrics and reports."""
