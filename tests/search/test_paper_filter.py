"""Which papers and sections to search, from what a person writes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from folio.errors import NotKnown, UsageError
from folio.papers.metadata import Field, PersonName
from folio.papers.model import Paper, SourceFile
from folio.papers.people import is_called
from folio.papers.sections import PaperSection, SectionMap
from folio.search.filters import YEARS, PaperFilter, YearRange
from folio.text import plain_words
from tests.helpers.known_papers import known_paper

pytestmark = pytest.mark.fast


def paper(
    file: str, title: str, *names: PersonName, year: int | None = None, problems: tuple[str, ...] = (), **values: Any
) -> Paper:
    """Of whose fields only those from Zotero are sure."""
    groups = {name: Field(value, "zotero", True) for name, value in values.items() if name in ("collections", "tags")}
    sections = SectionMap((
        PaperSection(0, 40, 1, "1", "Introduction", "introduction"),
        PaperSection(40, 80, 1, "2", *(("Methods", "methods") if year == 2014 else ("Our Design", "other"))),
    ))  # fmt: skip
    about = values | groups | ({"year": year} if year else {})
    return known_paper(file, "", problems, sections, sure=False, title=title, authors=names, **about)


RAFT = paper(
    "raft.pdf", "In Search of an Understandable Consensus Algorithm", PersonName("Ongaro", "Diego"),
    PersonName("Ousterhout", "John"), year=2014, venue="USENIX Annual Technical Conference", citation_key="ongaro2014",
    collections=("Systems/Consensus", "To do"), tags=("Raft", "★"),
)  # fmt: skip
THESIS = paper(
    "raft-thesis.pdf", "Consensus: Bridging Theory and Practice", PersonName("Ongaro", "Diego"), year=2015,
    collections=("Systems",), tags=("raft", "thesis"),
    problems=("p. 9: no text",),
)  # fmt: skip
GODEL = paper("logic/goedel.pdf", "Über formal unentscheidbare Sätze", PersonName("Gödel", "Kurt"), year=1931)
ARXIV = paper("x.pdf", "Paxos in an Otter's Mind", PersonName("Müller-Lüdenscheidt", "Jürgen"), arxiv="2301.01234v2")
PAPERS = [GODEL, RAFT, THESIS, ARXIV]
FILES = [SourceFile(f"/papers/{one.file}", one.file, one.id) for one in PAPERS]


def chosen(**given: Any) -> list[str]:
    """The files that are asked, and that are listed."""
    wanted = PaperFilter.parse(**given)
    papers = wanted.select(PAPERS, FILES).papers
    files = [one.file for one in (PAPERS if papers is None else papers)]
    assert [one.file for one in wanted.matching(PAPERS, FILES)] == files
    return files


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (["raft"], ["raft.pdf"]),  # exactly, though the other has the word too
        (["RAFT.pdf"], ["raft.pdf"]), (["ongaro2014"], ["raft.pdf"]), (["raf"], ["raft.pdf", "raft-thesis.pdf"]),
        (["consensus"], ["raft-thesis.pdf"]),  # its short title
        (["consensus algorithm"], ["raft.pdf"]), (["algorithm understandable"], ["raft.pdf"]),
        (["uber formal"], ["logic/goedel.pdf"]), (["logic/goedel"], ["logic/goedel.pdf"]),
        (["arXiv:2301.01234"], ["x.pdf"]), (["2301.01234v2"], ["x.pdf"]),
        (["raft", "goedel.pdf"], ["logic/goedel.pdf", "raft.pdf"]),
    ],
)  # fmt: skip
def test_papers_by_name_exactly_first_then_by_words(names: list[str], files: list[str]) -> None:
    assert chosen(papers=names) == files


@pytest.mark.parametrize(
    ("years", "files"),
    [
        (["2014"], ["raft.pdf"]),
        (["2014-2015"], ["raft.pdf", "raft-thesis.pdf"]),
        (["2014-"], ["raft.pdf", "raft-thesis.pdf"]),
        (["-1999"], ["logic/goedel.pdf"]),
        (["1930-1940", "2015"], ["logic/goedel.pdf", "raft-thesis.pdf"]),
        (["1931, 2015 – 2020 "], ["logic/goedel.pdf", "raft-thesis.pdf"]),
    ],
)
def test_years(years: list[str], files: list[str]) -> None:
    assert chosen(years=years) == files


@pytest.mark.parametrize(
    "written", ["", "-", "20", "last year", "2010 2014", "2010-2014-", "2014-15", "2014--2015", "20144", "٢٠١٤"]
)
def test_what_is_no_range_of_years_is_refused(written: str) -> None:
    assert not re.fullmatch(YEARS, written)
    with pytest.raises(UsageError, match="is not a year or a range of years"):
        YearRange.parse(written)


@pytest.mark.parametrize("written", ["2020-2010", " 2020 – 2010 "])
def test_a_range_that_ends_before_it_begins_is_refused(written: str) -> None:
    with pytest.raises(UsageError) as raised:
        YearRange.parse(written)
    assert raised.value.happened == f"The years “{written.strip()}” end before they begin."
    assert raised.value.remedy == "Write the earlier year first: 2010-2020."


def test_a_range_of_years_holds_its_ends() -> None:
    assert [year for year in (2009, 2010, 2015, 2016, None) if YearRange(2010, 2015).holds(year)] == [2010, 2015]
    assert [year for year in (2019, 2020, 2021, None) if YearRange(2020, None).holds(year)] == [2020, 2021]
    assert not YearRange(None, None).holds(None)


@pytest.mark.parametrize(
    ("authors", "files"),
    [
        (["Ongaro"], ["raft.pdf", "raft-thesis.pdf"]), (["diego ongaro"], ["raft.pdf", "raft-thesis.pdf"]),
        (["Ongaro, D."], ["raft.pdf", "raft-thesis.pdf"]), (["J. Ousterhout"], ["raft.pdf"]),
        (["godel"], ["logic/goedel.pdf"]), (["GÖDEL"], ["logic/goedel.pdf"]),
        (["Jurgen Muller-Ludenscheidt"], ["x.pdf"]), (["Muller"], ["x.pdf"]),
        (["Gödel", "Ousterhout"], ["logic/goedel.pdf", "raft.pdf"]),
    ],
)  # fmt: skip
def test_authors_without_regard_to_accents(authors: list[str], files: list[str]) -> None:
    assert chosen(authors=authors) == files


@pytest.mark.parametrize(
    ("person", "typed", "expected"),
    [
        (PersonName("Dean", "Jeffrey"), "Jeff Dean", True), (PersonName("Dean", "Jeff"), "jeffrey dean", True),
        (PersonName("Dean", "J."), "Jane Dean", True), (PersonName("Dean", "John"), "Jane Dean", False),
        (PersonName("Seal", "Robert"), "Bob Seal", True), (PersonName("Seal", "Bob"), "Robert Seal", True),
        (PersonName("Müller", "Meinard"), "Mueller", True), (PersonName("Altınbüken", "Deniz"), "d altinbuken", True),
        (PersonName("Lee", "Eduardo"), "Ed Lee", False), (PersonName("Rose", "Scott"), "Scott", False),
    ],
)  # fmt: skip
def test_given_names_may_be_short_or_written_out(person: PersonName, typed: str, expected: bool) -> None:
    assert is_called(person, plain_words(typed)) is expected


@pytest.mark.parametrize("name", ["Diego", "Onga", "X. Ongaro", "Diego Ousterhout", "Ousterhoutx"])
def test_a_given_name_alone_is_no_author(name: str) -> None:
    with pytest.raises(NotKnown, match=f"No paper in the index is by “{name}”"):
        chosen(authors=[name])


@pytest.mark.parametrize("venue", ["usenix conference", "USENIX", "Conf. Ann. Tech. USENIX", "UATC"])
def test_venues_by_words_and_by_abbreviations_with_a_full_stop(venue: str) -> None:
    assert chosen(venues=[venue]) == ["raft.pdf"]


def test_a_beginning_without_a_full_stop_is_no_venue() -> None:
    with pytest.raises(NotKnown, match=r"a venue called “usenix conf”\. Similar names: USENIX Annual"):
        chosen(venues=["usenix conf"])


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ({"collections": ["consensus"]}, ["raft.pdf"]),
        ({"collections": ["Systems"]}, ["raft.pdf", "raft-thesis.pdf"]),
        ({"collections": ["systems/consensus"]}, ["raft.pdf"]),
        ({"collections": ["To do", "Systems"]}, ["raft.pdf", "raft-thesis.pdf"]),
        ({"tags": ["RAFT"]}, ["raft.pdf", "raft-thesis.pdf"]),
        ({"tags": ["★"]}, ["raft.pdf"]),
        ({"tags": ["★", "thesis"]}, ["raft.pdf", "raft-thesis.pdf"]),
        ({"collections": ["Systems"], "tags": ["thesis"]}, ["raft-thesis.pdf"]),
    ],
)
def test_collections_and_tags(given: dict[str, list[str]], files: list[str]) -> None:
    assert chosen(**given) == files


def test_what_was_odd_and_what_is_not_sure() -> None:
    assert chosen(warnings=True) == ["raft-thesis.pdf"]
    assert chosen(warnings=False) == ["logic/goedel.pdf", "raft.pdf", "x.pdf"]
    assert chosen(unsure=True) == [one.file for one in PAPERS]
    assert PaperFilter(unsure=False).matching(PAPERS, FILES) == []


def test_every_field_must_fit() -> None:
    assert chosen(authors=["Ongaro"], years=["2015-"]) == ["raft-thesis.pdf"]
    assert chosen(ids=["raft.pdf", "x.pdf"], years=["1900-"]) == ["raft.pdf"]
    assert chosen() == [one.file for one in PAPERS]
    with pytest.raises(
        UsageError, match=r"No paper fits the year, of those that fit the rest\. The papers are from 2015"
    ):
        chosen(papers=["thesis"], years=["-1999"])
    with pytest.raises(UsageError, match=r"No paper fits the year\. The papers are from 1931 to 2015\."):
        chosen(years=["1999"])
    assert PaperFilter.parse(authors=["Gödel"], years=["2014"]).matching(PAPERS, FILES) == []


@pytest.mark.parametrize(
    ("given", "happened"),
    [
        ({"papers": ["rafft"]}, "No paper in the index is called “rafft”. Similar names: raft.pdf, raft-thesis.pdf."),
        ({"authors": ["Ungaro"]}, "No paper in the index is by “Ungaro”. Similar names: Diego Ongaro."),
        ({"authors": ["Ongaro", "Gödl"]}, "No paper in the index is by “Gödl”. Similar names: Kurt Gödel."),
        ({"sections": ["our desing"]}, "No section is called “our desing”. Similar names: Our Design."),
        ({"sections": ["intro"]}, "No section is called “intro”. Similar names: introduction."),
        (
            {"collections": ["Concensus"]},
            "No paper in the index is in a collection called “Concensus”. Similar names: Systems/Consensus.",
        ),
        ({"tags": ["these"]}, "No paper in the index has the tag “these”. Similar names: thesis."),
        ({"tags": ["☆"]}, "No paper in the index has the tag “☆”."),
        ({"papers": ["--"]}, "“--” is no paper."),
        ({"tags": [" "]}, "“” is no tag."),
    ],
)
def test_an_unknown_name_is_told_with_similar_ones(given: dict[str, list[str]], happened: str) -> None:
    for choose in (PaperFilter.matching, PaperFilter.select):
        with pytest.raises(NotKnown) as error:
            choose(PaperFilter.parse(**given), PAPERS, FILES)  # type: ignore[arg-type]
        assert error.value.happened == happened


def test_a_kind_that_no_paper_has_is_known() -> None:
    assert PaperFilter.parse(sections=["limitation"]).matching(PAPERS, FILES) == []
    with pytest.raises(
        NotKnown, match=r"fits the section\. The kinds of their sections are introduction, methods, other"
    ):
        chosen(sections=["limitation"])
    unread = [replace(one, sections=SectionMap()) for one in PAPERS]
    with pytest.raises(NotKnown, match=r"They have no sections yet: `python ingest.py --rebuild`"):
        PaperFilter(sections=("methods",)).select(unread, FILES)


def test_sections_leave_the_papers_that_have_them() -> None:
    wanted = PaperFilter.parse(sections=["method", "Design"], years=["2014-"])
    selected = wanted.select(PAPERS, FILES)
    assert [one.file for one in selected.papers or []] == ["raft.pdf", "raft-thesis.pdf"]
    assert selected.sections is not None
    titles = [one.title for one in RAFT.sections.sections if selected.sections.chooses(one)]
    assert titles == ["Methods"]
