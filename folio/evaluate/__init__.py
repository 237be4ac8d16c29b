"""Measures search and answers: evaluation sets, runs, metrics, reports, comparisons.

In: an evaluation set and an app. Out: metrics with their confidence intervals.
May import everything below it, but neither the web server nor the terminal.
"""
