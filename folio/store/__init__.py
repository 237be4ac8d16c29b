"""Storage: the SQLite library, the FAISS and BM25 indexes derived from it, the query log and conversations.

In: papers with their chunks and vectors. Out: candidates with scores, and text by span. SQLite, FAISS and tantivy are
each imported by one module here. May import only the root modules.
"""
