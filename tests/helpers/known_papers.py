"""Papers of which some fields are known, and answerers over them, made for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from folio.answer.extractive import ExtractiveAnswerer
from folio.papers.metadata import AND_OTHERS, Field, Metadata, Origin, PersonName
from folio.papers.model import PageMap, Paper
from folio.papers.sections import NO_SECTIONS, SectionMap
from tests.helpers.factories import even_weights
from tests.helpers.fakes import HashingEmbedder, WordReader


def known(origin: Origin = "page", *, sure: bool = True, **values: Any) -> Metadata:
    """Metadata of one origin; a value that is a field already stays as it is."""
    fields = {name: value if isinstance(value, Field) else Field(value, origin, sure) for name, value in values.items()}
    return Metadata(**fields)


def known_paper(
    file: str, id: str = "", problems: tuple[str, ...] = (), sections: SectionMap = NO_SECTIONS, **values: Any
) -> Paper:
    """A paper of one page, whose id is its file unless it is given."""
    return Paper(id or file, file, known(**values), PageMap((0,), ("",)), 100, 1, problems, sections)


def about(families: Sequence[str] = (), year: int | None = None, title: str = "", *, sure: bool = True) -> Metadata:
    """What a label is made of: family names ("et al." among them), the year and the title, where they are given."""
    people = tuple(AND_OTHERS if family == "et al." else PersonName(family, "A.") for family in families)
    values: dict[str, Any] = {"title": title, "authors": people, "year": year}
    return known(sure=sure, **{name: value for name, value in values.items() if value})


def extractive(dimension: int = 256) -> ExtractiveAnswerer:
    """The built-in answerer over hashed words; with 4,096 dimensions, different words have nothing in common."""
    return ExtractiveAnswerer(HashingEmbedder(dimension), WordReader(), even_weights, evidence_tokens=6000)
