"""Papers and metadata from outside: bibliographies and Zotero.

In: files and databases of other programs, which are only read; all of it is hostile: bounded, checked, never executed.
Out: metadata of papers, and the PDFs that belong to it. May import store and pdf.
"""
