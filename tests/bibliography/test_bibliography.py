"""Cited pages and references."""

from __future__ import annotations

from dataclasses import replace

import pytest

from folio.bibliography.export import CitedPage, cited_pages, merge_by_page, reference
from folio.papers.metadata import Field
from folio.papers.model import Paper
from tests.helpers.answers import ICE_PAPER, MELT_PAPER, REPORT, paper_of


def test_every_cited_page_once_with_all_of_its_quotes() -> None:
    assert [(source.file, source.where, len(source.quotes)) for source in cited_pages(REPORT.citations)] == [
        ("alps/ice.pdf", "p. 1 (printed iv)", 2),
        ("alps/ice.pdf", "p. 2", 1),
        ("melt.pdf", "p. 1", 1),
    ]


def test_pages_are_joined_wherever_they_come_from() -> None:
    assert merge_by_page(
        [
            CitedPage("a", "a.pdf", "", 1, "", (("one", 1.0),)),
            CitedPage("b", "b.pdf", "", 1, "", (("two", 1.0),)),
            CitedPage("a", "a.pdf", "", 1, "", (("three", 0.5), ("one", 1.0))),
        ]
    ) == (
        CitedPage("a", "a.pdf", "", 1, "", (("one", 1.0), ("three", 0.5))),
        CitedPage("b", "b.pdf", "", 1, "", (("two", 1.0),)),
    )


@pytest.mark.parametrize(
    ("pages", "line"),
    [
        ((), "Ada Ice and Bo Berg (2021). Ice of the Alps. alps/ice.pdf"),
        ((2,), "Ada Ice and Bo Berg (2021). Ice of the Alps. alps/ice.pdf, p. 2"),
        ((1, 2), "Ada Ice and Bo Berg (2021). Ice of the Alps. alps/ice.pdf, pp. 1, 2"),
    ],
)
def test_a_reference_names_pages_where_there_are_some(pages: tuple[int, ...], line: str) -> None:
    assert reference(ICE_PAPER, pages) == line


def test_a_reference_is_one_line_with_an_arxiv_number() -> None:
    assert reference(MELT_PAPER, [1]) == "Cy Melt. Melt. arXiv:2301.01234v2, p. 1"
    paper, _ = paper_of("x\n.pdf", "Words.", title="A\n\nB ", authors=(" C\tD",))
    assert reference(paper, [1]) == "C D. A B. x .pdf, p. 1"


def with_venue(venue: str, *, sure: bool = True) -> Paper:
    known = replace(ICE_PAPER.metadata, venue=Field(venue, "crossref", sure), year=Field(2021, "crossref", True))
    return replace(ICE_PAPER, metadata=known)


def test_venue_and_year_are_shown_where_they_are_sure() -> None:
    line = "Ada Ice and Bo Berg (2021). Ice of the Alps. Journal of Ice. alps/ice.pdf, p. 2"
    assert reference(with_venue("Journal of Ice"), [2]) == line
    assert reference(with_venue("Journal of Ice", sure=False), [2]) == line.replace("Journal of Ice. ", "")
    for venue, sure, shown in (("Journal of\nIce", True, "Journal of Ice, 2021"), ("J", False, ""), ("", True, "")):
        cited = [replace(one, paper=with_venue(venue, sure=sure)) for one in REPORT.citations[:1]]
        assert [source.published for source in cited_pages(cited)] == [shown]
