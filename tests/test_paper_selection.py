"""Which papers a name, a filter or a count means."""

from __future__ import annotations

from typing import Any

import pytest

from folio.errors import NotKnown, UsageError
from folio.paper_metadata import Field, Metadata, PersonName
from folio.paper_selection import (
    BY,
    SORTS,
    PaperFilter,
    Years,
    count_by,
    papers_named,
    parse_years,
    require_kind,
    sort_papers,
    the_paper,
    unsure_fields,
)
from folio.sections import Kind, PaperSection, SectionMap
from folio.types import PageMap, Paper


def paper(file: str, id: str, problems: tuple[str, ...] = (), kinds: tuple[Kind, ...] = (), **values: Any) -> Paper:
    fields = {name: each if isinstance(each, Field) else Field(each, "page", True) for name, each in values.items()}
    made = Metadata(**fields)
    sections = SectionMap(tuple(PaperSection(n, n + 1, 1, "", kind, kind) for n, kind in enumerate(kinds)))
    return Paper(id * 64, file, made, PageMap((0,), ("",)), 10, 1, problems, sections)


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
FILES = {each.id: [each.file] for each in PAPERS} | {RAFT.id: ["raft.pdf", "copies/consensus.pdf"]}


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("2014", Years(2014, 2014)),
        ("2010-2015", Years(2010, 2015)),
        ("2015-2010", Years(2010, 2015)),
        ("2020-", Years(2020, None)),
        ("-1999", Years(None, 1999)),
    ],
)
def test_years(text: str, years: Years) -> None:
    assert parse_years(text) == years


@pytest.mark.parametrize("text", ["", "-", "14", "2014-15", "2014--2015", "20144", "٢٠١٤", "2014 "])
def test_what_is_no_range_of_years(text: str) -> None:
    with pytest.raises(UsageError, match="is not a year or a range of years"):
        parse_years(text)


def test_ends_of_a_range_belong_to_it_and_no_year_is_in_none() -> None:
    assert [year for year in (2009, 2010, 2015, 2016, None) if Years(2010, 2015).has(year)] == [2010, 2015]
    assert [year for year in (2019, 2020, 2021, None) if Years(2020, None).has(year)] == [2020, 2021]
    assert not Years(None, None).has(None)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (PaperFilter(), PAPERS),
        (PaperFilter(author="ongaro"), [RAFT]),
        (PaperFilter(author="J. Ousterhout"), [RAFT]),
        (PaperFilter(author="Diego Ousterhout"), []),  # no one has both names
        (PaperFilter(author="ousterhoutx"), []),
        (PaperFilter(years=Years(1990, 2014)), [RAFT]),  # the year of Paxos is only guessed
        (PaperFilter(venue="usenix"), [RAFT]),
        (PaperFilter(section="results"), [RAFT, RAFTS]),
        (PaperFilter(warnings=True), [RAFT, PAXOS]),
        (PaperFilter(warnings=False), [ATTENTION, RAFTS, EMPTY]),
        (PaperFilter(unsure=True), [PAXOS]),
        (PaperFilter(years=Years(2014, None), section="results", warnings=False), [RAFTS]),
    ],
)
def test_a_filter(wanted: PaperFilter, found: list[Paper]) -> None:
    assert list(filter(wanted.fits, PAPERS)) == found


def test_a_kind_of_section_that_does_not_exist_is_refused() -> None:
    assert require_kind("methods") == "methods"
    with pytest.raises(UsageError, match="is not a kind of section"):
        require_kind("method")


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
    assert by in SORTS
    assert [each.file for each in sort_papers(reversed(PAPERS), by)] == [each.file for each in order]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("raft", [RAFT]),  # its key, although another's title has the word too
        ("RAFT.pdf", [RAFT]),
        ("consensus", [RAFT]),  # its other file
        ("copies/consensus.pdf", [RAFT]),
        ("ongaro2014search", [RAFT]),
        ("paxos.pdf", [PAXOS]),
        ("arXiv:1706.03762", [ATTENTION]),
        ("1706.03762v5", [ATTENTION]),
        ("attention is all you need", [ATTENTION]),
        ("Rafts of Otters", [RAFTS]),
        ("dddddd", [RAFTS]),
        ("d" * 64, [RAFTS]),
        ("ddddd", []),
        ("otter", [RAFTS]),
        ("understand consensus", [RAFT]),
        ("raf", [RAFT, RAFTS]),
        ("ousterhout", []),
        ("", []),
        ("?!", []),
    ],
)
def test_a_name_means_papers(name: str, found: list[Paper]) -> None:
    assert papers_named(PAPERS, FILES, name) == found


def test_a_name_must_mean_one_paper() -> None:
    assert the_paper(PAPERS, FILES, "raft") == RAFT
    with pytest.raises(NotKnown, match="No paper in the index is called “quorums”"):
        the_paper(PAPERS, FILES, "quorums")
    with pytest.raises(UsageError) as refused:
        the_paper(PAPERS, FILES, "raf")
    assert refused.value.happened == (
        "“raf” fits 2 papers: raft.pdf (aaaaaaaaaaaa); rafts-of-otters.pdf (dddddddddddd)."
    )


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
