"""Reads and embeds papers in workers of Ray, on this computer or others, for `folio ingest --on ray`.

In: PDF files and an embedder. Out: papers with their vectors, as an ingest without Ray reads them.
Imported only with `--on ray`. Ray is the extra `cluster`.
"""
