"""A PDF file to pages of text, metadata and pictures of its pages.

In: the path of a file. Out: pages with what a reader can see on them, in reading order, and the paper's own data.
Only mupdf.py imports PyMuPDF. May import the root modules alone.
"""
