"""Ingest, from files to a store: discovery, cleaning, chunking, the pipeline, rebuilds.

In: PDF files and an embedder. Out: papers in the library, and an outcome for each file.
May import pdf and store.
"""
