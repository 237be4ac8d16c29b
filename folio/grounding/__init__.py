"""Whether evidence holds a sentence up: numbers, names, negation, wording and meaning, each against its quotes.

In: a sentence and the evidence. Out: a verdict with quotes, or the reason why the sentence may not be shown.
May import the root modules alone.
"""
