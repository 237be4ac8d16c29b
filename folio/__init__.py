"""Folio: ask a folder of PDF papers, offline, and get answers in which every sentence cites its page."""

__version__ = "0.4.0"
