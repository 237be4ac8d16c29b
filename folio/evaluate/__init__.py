"""How good search and answers are: sets of questions, a run over them, metrics, reports, comparisons.

In: a set of questions and an app. Out: figures with their intervals.
May import everything below it, but neither the web server nor the terminal.
"""
