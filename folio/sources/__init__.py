"""Papers and metadata from outside: bibliographies and Zotero.

In: files and databases of other programs, which are only read. Out: metadata of papers, and the PDFs that belong to it.
May import store and pdf.
"""
