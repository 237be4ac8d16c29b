"""The tests, one folder a package of folio/, and what they share in helpers/."""

from folio.pdf.mupdf import pymupdf

# Imported by Folio, PyMuPDF does not load its layout models, which takes a second and 270 MB in every process.
pymupdf()
