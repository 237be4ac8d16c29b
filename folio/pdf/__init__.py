"""Reads PDF files: the text of their pages, metadata, and pictures of pages.

In: the path of a file. Out: the text that a reader can see, page by page in reading order, and the paper's metadata.
Only mupdf.py imports PyMuPDF. May import only the root modules.
"""
