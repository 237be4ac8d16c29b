"""Lists of papers: their order, counts, and what nobody is sure of."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from folio.papers.lists import BY, Sort, count_by, sort_papers, unsure_fields
from folio.papers.metadata import Field, Metadata, PersonName
from folio.papers.model import Paper
from folio.papers.sections import Kind, PaperSection, SectionMap
from tests.helpers.known_papers import known_paper


def paper(file: str, id: str, problems: tuple[str, ...] = (), kinds: tuple[Kind, ...] = (), **values: Any) -> Paper:
    sections = SectionMap(tuple(PaperSection(n, n + 1, 1, "", kind, kind) for n, kind in enumerate(kinds)))
    return known_paper(file, id * 64, problems, sections, **values)


RAFT = paper(
    "raft.pdf", "a", title="In Search of an Understandable Consensus Algorithm", year=2014, venue="USENIX ATC",
    authors=(PersonName("Ongaro", "Diego"), PersonName("Ousterhout", "John")), citation_key="ongaro2014search",
    kinds=("methods", "results", "methods"), problems=("pp. 2-4, 9: no text", "p. 5: read by OCR"),
)  # fmt: skip
PAXOS = paper(
    "old/paxos.pdf", "b", title=Field("The Part-Time Parliament", "pdf metadata"), year=Field(1998, "cited works"),
    authors=(PersonName("Lamport", "Leslie"),), problems=("p. 1: no text",),
)  # fmt: skip
ATTENTION = paper("1706.03762v5.pdf", "c", title="Attention Is All You Need", year=2017, arxiv="1706.03762v5")
RAFTS = paper("rafts-of-otters.pdf", "d", title="Rafts of Ottérs", year=2020, kinds=("results",))
EMPTY = paper("scan.pdf", "e")
PAPERS = [RAFT, PAXOS, ATTENTION, RAFTS, EMPTY]


def test_only_what_is_shown_can_be_unsure() -> None:
    assert unsure_fields(PAXOS.metadata) == ("title",)
    assert unsure_fields(Metadata(year=Field(2014, "file date"), doi=Field("10.1/a", "page"))) == ("year", "doi")
    assert unsure_fields(Metadata(title=Field("", "person", True))) == ()


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("file", [ATTENTION, PAXOS, RAFT, RAFTS, EMPTY]),
        ("title", [ATTENTION, RAFT, RAFTS, PAXOS, EMPTY]),
        ("author", [PAXOS, RAFT, ATTENTION, RAFTS, EMPTY]),
        ("year", [RAFTS, ATTENTION, RAFT, PAXOS, EMPTY]),
        ("venue", [RAFT, ATTENTION, PAXOS, RAFTS, EMPTY]),
    ],
)
def test_the_order(by: Any, order: list[Paper]) -> None:
    assert by in get_args(Sort)
    assert [each.file for each in sort_papers(reversed(PAPERS), by)] == [each.file for each in order]


@pytest.mark.parametrize(
    ("by", "counts"),
    [
        ("author", [("Diego Ongaro", 1), ("John Ousterhout", 1), ("Leslie Lamport", 1), ("", 3)]),
        ("year", [("2020", 1), ("2017", 1), ("2014", 1), ("", 2)]),
        ("venue", [("USENIX ATC", 1), ("", 4)]),
        ("section", [("results", 2), ("methods", 1), ("", 3)]),
        ("warning", [("no text", 2), ("read by OCR", 1), ("", 3)]),
    ],
)
def test_papers_are_counted(by: Any, counts: list[tuple[str, int]]) -> None:
    assert by in BY
    assert count_by(PAPERS, by) == counts
