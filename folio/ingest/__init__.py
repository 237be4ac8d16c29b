"""Files to a store: which files there are, their text cleaned and split into chunks, the pipeline, rebuilds.

In: PDF files and an embedder. Out: papers in the library, and an outcome for each file.
May import pdf and store.
"""
