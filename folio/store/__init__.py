"""What is kept: the library in SQLite, the FAISS and BM25 indexes derived from it, the query log, conversations.

In: papers with their chunks and vectors. Out: candidates with scores, and text by span. SQLite, FAISS and tantivy are
each imported by one module here. May import the root modules alone.
"""
