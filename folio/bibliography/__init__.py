"""BibTeX and CSL-JSON, read and written."""
