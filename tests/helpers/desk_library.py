"""The library of a command's folder, looked at or prepared by a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from folio.papers.metadata import Field, Metadata
from folio.papers.model import Paper
from folio.store.indexes import LIBRARY
from folio.store.library import Library
from tests.helpers.cli_runner import CliRunner
from tests.helpers.libraries import set_pdf_metadata


@contextmanager
def opened(desk: CliRunner) -> Iterator[Library]:
    """The library, open."""
    with closing(Library(desk.store / LIBRARY)) as library:
        yield library


def papers_of(desk: CliRunner) -> dict[str, Paper]:
    """File -> paper."""
    with opened(desk) as library:
        return {paper.file: paper for paper in library.papers()}


def describe(desk: CliRunner, file: str, **fields: Any) -> None:
    """Have a PDF say these things of itself, for sure."""
    about = Metadata(**{name: Field(value, "page", True) for name, value in fields.items()})
    with opened(desk) as library:
        set_pdf_metadata(library, papers_of(desk)[file].id, about)
