"""The version of Folio, for packages that may not import all of it."""

__version__ = "0.4.0"
