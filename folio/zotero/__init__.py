"""A Zotero library, read where it lies."""
