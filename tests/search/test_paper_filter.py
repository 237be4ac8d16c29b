"""Which papers and sections to search, from what a person writes."""

from __future__ import annotations

import pytest

from folio.errors import UsageError
from folio.paper_metadata import Field, Metadata, PersonName
from folio.search.paper_filter import PaperFilter, PaperTest, YearRange
from folio.sections import PaperSection, SectionMap
from folio.types import PageMap, Paper, SourceFile


def paper(
    file: str, title: str, *names: PersonName, year: int | None = None, venue: str = "", key: str = "", arxiv: str = ""
) -> Paper:
    metadata = Metadata(
        title=Field(title, "page"),
        authors=Field(names, "page"),
        year=Field(year, "page" if year else ""),
        venue=Field(venue, "page"),
        citation_key=Field(key, "bibliography"),
        arxiv=Field(arxiv, "page"),
    )
    sections = SectionMap((
        PaperSection(0, 40, 1, "1", "Introduction", "introduction"),
        PaperSection(40, 80, 1, "2", *(("Methods", "methods") if year == 2014 else ("Our Design", "other"))),
    ))  # fmt: skip
    return Paper(file, file, metadata, PageMap((0,), ("",)), 100, 1, (), sections)


RAFT = paper(
    "raft.pdf", "In Search of an Understandable Consensus Algorithm", PersonName("Ongaro", "Diego"),
    PersonName("Ousterhout", "John"), year=2014, venue="USENIX Annual Technical Conference", key="ongaro2014",
)  # fmt: skip
THESIS = paper("raft-thesis.pdf", "Consensus: Bridging Theory and Practice", PersonName("Ongaro", "Diego"), year=2015)
GODEL = paper("logic/goedel.pdf", "Über formal unentscheidbare Sätze", PersonName("Gödel", "Kurt"), year=1931)
ARXIV = paper("x.pdf", "Paxos in an Otter's Mind", PersonName("Müller-Lüdenscheidt", "Jürgen"), arxiv="2301.01234v2")
PAPERS = [GODEL, RAFT, THESIS, ARXIV]
FILES = [SourceFile(f"/papers/{one.file}", one.file, one.id) for one in PAPERS]


def chosen(**given: list[str]) -> list[str]:
    papers = PaperFilter.parse(**given).select(PAPERS, FILES).papers  # type: ignore[arg-type]
    return [one.file for one in (PAPERS if papers is None else papers)]


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (["raft"], ["raft.pdf"]),  # exactly, though the other has the word too
        (["RAFT.pdf"], ["raft.pdf"]),
        (["ongaro2014"], ["raft.pdf"]),
        (["raf"], ["raft.pdf", "raft-thesis.pdf"]),
        (["consensus"], ["raft-thesis.pdf"]),  # its short title
        (["consensus algorithm"], ["raft.pdf"]),
        (["algorithm understandable"], ["raft.pdf"]),
        (["uber formal"], ["logic/goedel.pdf"]),
        (["logic/goedel"], ["logic/goedel.pdf"]),
        (["arXiv:2301.01234"], ["x.pdf"]),
        (["2301.01234v2"], ["x.pdf"]),
        (["raft", "goedel.pdf"], ["logic/goedel.pdf", "raft.pdf"]),
    ],
)
def test_papers_by_name_exactly_first_then_by_words(names: list[str], files: list[str]) -> None:
    assert chosen(papers=names) == files


@pytest.mark.parametrize(
    ("years", "files"),
    [
        (["2014"], ["raft.pdf"]),
        (["2015-2014"], ["raft.pdf", "raft-thesis.pdf"]),
        (["2014-"], ["raft.pdf", "raft-thesis.pdf"]),
        (["-1999"], ["logic/goedel.pdf"]),
        (["1930-1940", "2015"], ["logic/goedel.pdf", "raft-thesis.pdf"]),
        (["1931, 2015–2020"], ["logic/goedel.pdf", "raft-thesis.pdf"]),
    ],
)
def test_years(years: list[str], files: list[str]) -> None:
    assert chosen(years=years) == files


@pytest.mark.parametrize("written", ["", "-", "20", "last year", "2010 2014", "2010-2014-"])
def test_what_is_no_range_of_years_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="is no year"):
        YearRange.parse(written)


@pytest.mark.parametrize(
    ("authors", "files"),
    [
        (["Ongaro"], ["raft.pdf", "raft-thesis.pdf"]),
        (["diego ongaro"], ["raft.pdf", "raft-thesis.pdf"]),
        (["Ongaro, D."], ["raft.pdf", "raft-thesis.pdf"]),
        (["J. Ousterhout"], ["raft.pdf"]),
        (["godel"], ["logic/goedel.pdf"]),
        (["GÖDEL"], ["logic/goedel.pdf"]),
        (["Jurgen Muller-Ludenscheidt"], ["x.pdf"]),
        (["Muller"], ["x.pdf"]),
        (["Gödel", "Ousterhout"], ["logic/goedel.pdf", "raft.pdf"]),
    ],
)
def test_authors_without_regard_to_accents(authors: list[str], files: list[str]) -> None:
    assert chosen(authors=authors) == files


def test_a_given_name_alone_and_a_part_of_a_name_are_no_author() -> None:
    for name in ("Diego", "Onga", "X. Ongaro"):
        with pytest.raises(UsageError, match=r"No paper fits the author\."):
            chosen(authors=[name])


def test_every_field_must_fit() -> None:
    assert chosen(authors=["Ongaro"], years=["2015-"]) == ["raft-thesis.pdf"]
    assert chosen(venues=["usenix conference"]) == ["raft.pdf"]
    assert chosen() == [one.file for one in PAPERS]
    with pytest.raises(UsageError, match=r"fits the author, of those that fit the rest\. Similar names: Kurt"):
        chosen(authors=["Kort Gödel"], years=["-1999"])


def test_nothing_that_fits_names_what_is_near() -> None:
    with pytest.raises(UsageError, match=r"is called rafft\. Similar names: raft\.pdf"):
        chosen(papers=["rafft"])
    with pytest.raises(UsageError, match="Similar names: Diego Ongaro"):
        chosen(authors=["Ungaro"])
    with pytest.raises(UsageError, match="Similar names: USENIX Annual"):
        chosen(venues=["Usenix annual tecnical"])
    with pytest.raises(UsageError, match=r"No section fits our desing\. Similar names: Our Design\.") as error:
        chosen(sections=["our desing"])
    assert error.value.remedy == "Give words of a section's title, or a kind: introduction, methods, other."
    with pytest.raises(UsageError, match=r"'--' is no paper\."):
        chosen(papers=["--"])


def test_sections_leave_the_papers_that_have_them() -> None:
    wanted = PaperFilter.parse(sections=["method", "Design"], years=["2014-"])
    selected = wanted.select(PAPERS, FILES)
    assert [one.file for one in selected.papers or []] == ["raft.pdf", "raft-thesis.pdf"]
    assert selected.sections is not None
    titles = [one.title for one in RAFT.sections.sections if selected.sections.chooses(one)]
    assert titles == ["Methods"]


def test_other_conditions() -> None:
    tagged = PaperTest("the tag otters", lambda one: "Otter" in one.title)
    assert [one.file for one in PaperFilter(tests=(tagged,)).select(PAPERS, FILES).papers or []] == ["x.pdf"]
    with pytest.raises(UsageError, match="No paper fits the tag otters, of those that fit the rest"):
        PaperFilter(papers=("raft",), tests=(tagged,)).select(PAPERS, FILES)
    with pytest.raises(UsageError, match=r"No paper fits the year\. The papers are from 1931 to 2015\."):
        chosen(years=["1999"])
