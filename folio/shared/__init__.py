"""Reads and embeds papers in workers of Ray, here or on other computers, for `folio ingest --on ray` alone.

In: PDF files and an embedder. Out: papers with their vectors, as an ingest without Ray reads them.
"""
