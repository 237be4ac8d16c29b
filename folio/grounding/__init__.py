"""Checks whether evidence supports a sentence: numbers, names, negation, wording and meaning.

In: a sentence and the evidence. Out: a verdict with quotes, or the reason why the sentence is rejected.
May import only the root modules.
"""
