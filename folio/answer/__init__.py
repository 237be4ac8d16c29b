"""Evidence to an answer: prompts, a chat model's answer and the extractive one, follow-ups, the chain, citations.

In: a question and its hits. Out: an answer whose sentences all cite a page of the evidence.
May import models, store, search and grounding.
"""
