"""A library on Milvus: the same papers, passages and vectors, in collections that many computers share.

In: what an ingest adds and a question asks (store/paper_store.py). Out: the same as from a library on one computer.
Imported only with STORE=milvus, and by `folio move --to milvus`. pymilvus, milvus-lite and fsspec are the extra
`cluster`.
"""
