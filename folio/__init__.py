"""Folio: ask a folder of PDF papers, offline, and get answers in which every sentence cites its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from folio.version import __version__ as __version__

if TYPE_CHECKING:
    from os import PathLike

    from folio.open_library import OpenLibrary


def open(index: str | PathLike[str] | None = None, **settings: object) -> OpenLibrary:
    """Open a library to ask and to search: `with folio.open() as library: library.ask("...")`.

    index: its folder (default: the setting VECTORSTORE_DIR). settings: any of docs/settings.md, which take the place of
    those in the environment: LLM="builtin", TOP_K=8. Notices become Python warnings. Raises the errors of folio.errors:
    UsageError for a bad setting, StoreMissing before the first ingest, StoreMismatch, ModelError.
    """
    from folio.open_library import open_library

    return open_library(index, settings)
