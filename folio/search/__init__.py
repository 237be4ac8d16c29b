"""A question to ranked passages: dense and BM25 retrieval, fusion, reranking, and a LangChain retriever.

In: a question and an opened store. Out: hits, best first, with their scores.
May import store.
"""
