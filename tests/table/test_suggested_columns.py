"""Columns are suggested from what the papers' headings and captions share."""

from __future__ import annotations

from itertools import accumulate

import pytest

from folio.papers.metadata import simple_metadata
from folio.papers.model import PageMap, Paper
from folio.papers.sections import Kind, PaperSection, SectionMap
from folio.table.cell import Column
from folio.table.suggested import suggested_columns

pytestmark = pytest.mark.fast
TEXTS: dict[str, str] = {}


def paper(id: str, *sections: tuple[Kind, str, str]) -> Paper:
    texts = [text + "\n\n" for _, _, text in sections]
    ends = list(accumulate(map(len, texts)))
    listed = [
        PaperSection(end - len(text), end, 0 if kind == "caption" else 1, "", title, kind)
        for (kind, title, _), text, end in zip(sections, texts, ends, strict=True)
    ]
    TEXTS[id] = "".join(texts)
    return Paper(id, id, simple_metadata(id), PageMap((0,), ("",)), ends[-1], 0, sections=SectionMap(tuple(listed)))


def read(id: str, start: int, end: int) -> str:
    return TEXTS[id][start:end]


OBJECTIVES: tuple[Kind, str, str] = ("other", "Learning objectives", "x")
RELATED: tuple[Kind, str, str] = ("other", "Related work", "x")
BOAT: tuple[Kind, str, str] = ("caption", "Figure 1", "Figure 1. A boat")
REFERENCES: tuple[Kind, str, str] = ("references", "References", "x")
OF_PATIENTS = "Table 1. Baseline characteristics of the patients."
BY_GROUP = "Table 3: Baseline characteristics by group"
PAPERS = [
    paper("a", ("methods", "Patients", "x"), OBJECTIVES, REFERENCES, ("caption", "Table 1", OF_PATIENTS)),
    paper("b", ("methods", "METHODS", "x"), OBJECTIVES, REFERENCES, ("caption", "Table 3", BY_GROUP)),
    paper("c", ("methods", "Methods", "x"), RELATED, BOAT),
    paper("d", RELATED, ("introduction", "Introduction", "x"), BOAT),
]


def test_shared_headings_and_captions_of_tables_are_suggested() -> None:
    found = [(one.column.name, one.papers) for one in suggested_columns(PAPERS, read)]
    assert found == [("Method", 3), ("Baseline characteristics", 2), ("Learning objectives", 2)]


def test_what_the_table_has_is_not_suggested_again() -> None:
    found = [one.column.name for one in suggested_columns(PAPERS, read, [Column("method"), Column("Dose")])]
    assert found == ["Baseline characteristics", "Learning objectives"]
    assert suggested_columns(PAPERS[:1], read) == ()
