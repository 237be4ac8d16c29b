"""Turns evidence into an answer: prompts, the model and the extractive answerer, follow-ups, citations.

In: a question and its hits. Out: an answer in which every sentence cites a page of the evidence.
May import models, store, search and grounding.
"""
