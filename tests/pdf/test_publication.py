"""Venue, kind, volume and pages, from the lines of the first pages that say where a paper was published."""

from __future__ import annotations

from pathlib import Path

import pytest

from folio.bibliography.export import bibtex_type
from folio.papers.metadata import Field
from folio.pdf.publication import find_publication
from folio.pdf.reader import read_pdf
from tests.helpers.paths import ROOT
from tests.helpers.pdfs import Set, body, front

CONFERENCE, JOURNAL = "paper-conference", "article-journal"


@pytest.mark.parametrize(
    ("lines", "venue", "kind", "year"),
    [
        ("Published as a conference paper at ICLR 2024", "ICLR 2024", CONFERENCE, 2024),
        ("To appear in OSDI 2004", "OSDI 2004", CONFERENCE, 2004),
        ("37th Conference on Looms (NeurLoom 2023).", "37th Conference on Looms (NeurLoom 2023)", CONFERENCE, 2023),
        ("Proceedings of the 61st Annual Meeting of the Association for Looms\nVolume 1: Long, pages 69–70\nJuly "
         "9-14, 2023", "Proceedings of the 61st Annual Meeting of the Association for Looms", CONFERENCE, 2023),
        ("2013 USENIX Annual Technical Conference (USENIX ATC ’13)  49",
         "2013 USENIX Annual Technical Conference (USENIX ATC ’13)", CONFERENCE, 2013),
        ("Appears in Proc. of the 18th Conference on Distributed Looms Plat-\nforms (Mill 2001). Turin, "
         "Italy, November 2001.", "Proc. of the 18th Conference on Distributed Looms Platforms (Mill 2001)",
         CONFERENCE, 2001),
        ("PPoPP ’16\nMarch 12–16, 2016, Barcelona, Spain", "PPoPP ’16", CONFERENCE, 2016),
        ("In Proceedings of the Conference on Acoustics, Speech, and Looms, Turin, Italy, 1998",
         "Proceedings of the Conference on Acoustics, Speech, and Looms", CONFERENCE, 1998),
        ("ACM Transactions on Computer Systems, Vol. 3, No. 1, February 1985, Pages 63-75.",
         "ACM Transactions on Computer Systems", JOURNAL, 1985),
        ("Published in ACM Transactions in Computer Systems 2, 4, November, 1984, pages 277-288.",
         "ACM Transactions in Computer Systems", JOURNAL, 1984),
        ("Theoretical Looms 56 (1988) 3-57", "Theoretical Looms", JOURNAL, 1988),
    ],
)  # fmt: skip
def test_a_line_that_says_where(lines: str, venue: str, kind: str, year: int) -> None:
    found = find_publication(f"A Title\n{lines}\nThe text begins here.", "A Title")
    assert found.venue == Field(venue, "page", True)
    assert (found.kind, found.year) == (Field(kind, "page", True), year)


@pytest.mark.parametrize(
    "lines",
    [
        "The workshop on looms brought together leaders from the mills.",
        "We study the journal of an engineer.",
        "Transactions in Walter ensure a new property called",
        "A preliminary version of this paper appeared in the Proceedings of the 35th Symposium on Looms, 1994.",
        "A preliminary version of this paper\nappeared in Proceedings of the 35th Symposium on Looms, 1994.",
        "Under review as a conference paper at ICLR 2017",
        "A brief announcement was at the\n23rd International Symposium on Distributed Looms, DISL 2009.",
    ],
)
def test_what_says_nothing_of_this_paper(lines: str) -> None:
    assert find_publication(f"A Title\n{lines}\nThe text.", "A Title").venue == Field("")


def test_volume_issue_and_pages() -> None:
    found = find_publication("Annals of Looms, Vol. 3, No. 1, May 1985, Pages 63-75.", "A Title")
    assert (found.volume.value, found.issue.value, found.pages.value) == ("3", "1", "63–75")
    # The paper's own citation, and its running foot
    own = "Lovelace et al. (2024). A Title. Journal of Open\nLooms, 7(80), 200."
    found = find_publication(own, "A Title", ["Lovelace"])
    assert (found.venue.value, found.volume.value, found.issue.value) == ("Journal of Open Looms", "7", "80")
    foot = "ReLoom C 8.1 (#3) – Lovelace and Babbage 2022"
    assert find_publication(foot, "A Title", ["Lovelace"]).venue == Field("ReLoom C", "page", True)
    assert find_publication(foot, "A Title", ["Somerville"]).venue == Field("")


@pytest.mark.parametrize(
    ("text", "kind", "number", "genre", "venue"),
    [
        ("Technical Report UBLCS-93-1\nLaboratory for Looms\nUniversity of Bologna",
         "report", "UBLCS-93-1", None, "University of Bologna"),
        ("Carnegie Mellon University\nin partial fulﬁllment of the requirements\n"
         "for the degree of Doctor of Philosophy",
         "thesis", None, "PhD thesis", "Carnegie Mellon University"),
    ],
)  # fmt: skip
def test_reports_and_theses(text: str, kind: str, number: str | None, genre: str | None, venue: str) -> None:
    found = find_publication(text, "A Title")
    assert (found.kind.value, found.venue.value) == (kind, venue)
    assert number in (None, found.issue.value)
    assert genre in (None, found.genre.value)


def test_the_venues_year_takes_precedence_over_arxiv(tmp_path: Path) -> None:
    lines = [
        Set(40, "Published as a conference paper at ICLR 2023", 9),
        Set(80, "Weaving Patterns on Looms", 18, "hebo"),
        Set(105, "Ada Lovelace and Charles Babbage", 12),
        *body(150, 1, 10, "Abstract"),
        Set(780, "arXiv:2301.01234v3 [cs.CL] 17 Jan 2024", 8),
    ]
    found = read_pdf(front(tmp_path / "a.pdf", [lines])).metadata
    assert found.year == Field(2023, "page", True)
    assert bibtex_type(found) == "inproceedings"


TITLE = "Nesting of Marsh Terns"


@pytest.mark.parametrize(
    ("sheet", "venue", "kind", "numbers"),
    [
        ("Source: The Journal of Coastal Birds, Vol. 41, No. 3 (Autumn, 1987), pp. 211-230\nPublished by: A Press\n"
         "Stable URL: https://www.jstor.org/stable/1", "The Journal of Coastal Birds", JOURNAL,
         ("41", "3", "211–230", 1987)),
        ("Source: The Journal of Birds of the Coasts and of the Isles, Vol. 41,\nNo. 3 (Autumn, 1987), pp. 211-230\n"
         "Stable URL: https://www.jstor.org/stable/1", "The Journal of Birds of the Coasts and of the Isles", JOURNAL,
         ("41", "3", "211–230", 1987)),
        ("HAL Id: hal-1\nTo cite this version:\nAda Penrose. Nesting of Marsh\nTerns. Coastal Ecology, 2010, 12 (4),\n"
         "pp.301-318. hal-1", "Coastal Ecology", JOURNAL, ("12", "4", "301–318", 2010)),
        ("HAL Id: hal-1\nTo cite this version:\nAda Penrose. Nesting of Marsh Terns. 5th Conference on Birds, May "
         "2010, Westmere, France. pp.1-8", "5th Conference on Birds", CONFERENCE, ("", "", "1–8", 2010)),
        ("Citation for published version (APA):\nPenrose, A. (2010). Nesting of Marsh Terns. Coastal Ecology, 12(4), "
         "301-318.", "Coastal Ecology", JOURNAL, ("12", "4", "301–318", 2010)),
        ("See discussions, stats, and author profiles\nArticle in Coastal Ecology · May 2018\nDOI: 10.9999/1",
         "Coastal Ecology", JOURNAL, ("", "", "", 2018)),
    ],
)  # fmt: skip
def test_the_cover_sheet_says_where(sheet: str, venue: str, kind: str, numbers: tuple[str, str, str, int]) -> None:
    found = find_publication(f"{TITLE}\n{sheet}", TITLE)
    assert (found.venue, found.kind) == (Field(venue, "page", True), Field(kind, "page", True))
    assert (found.volume.value, found.issue.value, found.pages.value, found.year) == numbers


def test_a_reference_on_a_cover_to_another_paper_says_nothing() -> None:
    sheet = "HAL Id: hal-1\nTo cite this version:\nAda Penrose. Looms. Coastal Ecology, 2010, 12 (4), pp.301-318. hal-1"
    assert find_publication(f"{TITLE}\n{sheet}", TITLE).venue == Field("")


@pytest.mark.parametrize(
    ("case", "venue", "year"),
    [
        ("cover_hal/hal-00700001.pdf", "Coastal Ecology", 2010),
        ("cover_jstor/4400001.pdf", "The Journal of Coastal Birds", 1987),
        ("biorxiv/075000v1.full.pdf", "", 2020),
    ],
)
def test_the_venue_and_year_of_a_file(case: str, venue: str, year: int) -> None:
    found = read_pdf(ROOT / "tests" / "data" / "cases" / case).metadata
    assert (found.venue.value, found.year.value, found.year.sure) == (venue, year, True)
