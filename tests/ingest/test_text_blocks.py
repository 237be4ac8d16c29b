"""Captions, footnotes, licence lines and affiliations: what is told from the text, and what is left alone."""

from __future__ import annotations

import time
from pathlib import Path

import pymupdf
import pytest

from folio.ingest.cleaning import clean
from folio.ingest.sections import blocks, sections
from folio.papers.model import PageMap
from folio.papers.sections import NO_HEADINGS, Kind, PaperSection, SectionMap
from folio.pdf.reader import read_pdf
from folio.store.rows import require_tree

TITLE = "On Otters"
PROSE = "We measured the otters at forty stations for ten years, and they slept on all of them."


def told(*paragraphs: str) -> list[tuple[str, str, str]]:
    """The blocks of these paragraphs after a title: kind, title, text."""
    text = "\n\n".join((TITLE, *paragraphs))
    found = sections(NO_HEADINGS, text, PageMap((0,), ("",)))
    require_tree(found, len(text), "the sections")
    assert all(not block.level for block in found)
    return [(block.kind, block.title, text[block.start : block.end]) for block in found]


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Figure 3: Otters asleep.", "Figure 3"),
        ("Fig. 3.  Otters\nasleep on kelp.", "Fig. 3"),
        ("FIGURE 12. Otters.", "Figure 12"),
        ("Table IV: Otters by sea", "Table IV"),
        ("Table 1 : Otters by sea", "Table 1"),
        ("Listing 2.1. A loop", "Listing 2.1"),
        ("Supplementary Figure S4. More otters", "Supplementary figure S4"),
        ("Table A1: Who did what", "Table A1"),
    ],
)
def test_captions(written: str, title: str) -> None:
    assert told(PROSE, written, PROSE) == [("caption", title, written)]


@pytest.mark.parametrize(
    "written",
    [
        "Figure 3 shows that otters sleep.",
        "Table 2 and Figure 3 are of otters.",
        "Figure 3.5 shows a signature.",
        "Figure 1: Otters ................. 12",
        "as they sleep in\nFigure 3. The next ones do not.",
    ],
)
def test_sentences_about_figures_and_lists_of_them_are_no_captions(written: str) -> None:
    assert told(PROSE, written) == []


@pytest.mark.parametrize(
    "written",
    [
        "Permission to make digital or hard copies of all or part of this work is granted\nwithout fee. Copyright ACM.",
        "License\nAuthors of papers retain copyright and release the work under a\nCreative Commons licence.",
        "Copyright © 2020 A. Otter, released under a Creative Commons Attribution 4.0 International license.",
        "© The Author(s) 2019. All rights reserved.",
        "This is an open access article distributed under the terms of the licence.",
        "The authors have declared that no competing interests exist.",
        "Conflict of interest: none.",
        "Author contributions. AO slept, BO wrote.",
        "Correspondence should be addressed to A. Otter: otter@example.org",
        "*Corresponding author: otter@example.org",
        "Submitted: 22 September 2018\nPublished: 24 October 2018",
        "Received\n18 April 2020",
        "Manuscript received May 3, 2013; accepted 7 June 2014",
    ],
)
def test_forms(written: str) -> None:
    assert told(PROSE, written, PROSE) == [("boilerplate", "", written)]


@pytest.mark.parametrize(
    "written",
    [
        "1 Department of Zoology, University of Kelp, Bay City 2 Otter Lab",
        "†Stony Brook University\n‡University of California, Berkeley",
        "otter@example.org",
        "Brown University\nana@example.org",
    ],
)
def test_affiliations_stand_below_the_title(written: str) -> None:
    assert told(written, PROSE) == [("boilerplate", "", written)]


@pytest.mark.parametrize(
    "written",
    [
        "Received signals are filtered at 4 kHz and stored.",
        "Accepted papers were read by three people in 2014.",
        "Published work on otters goes back to 1851.",
        "Copyright law protects the otter's image in most countries.",
        "Permission is checked by the server before each write.",
        "The University of Kelp has measured otters since 1962, and we use its data.",
        "Licence servers hand out tokens to clients.",
        "Conflicts of writes are resolved by the leader.",
        "The authors declare a variable for each otter.",
        PROSE,
    ],
)
def test_sentences_about_licences_and_universities_are_kept(written: str) -> None:
    assert told(written, PROSE) == []


def test_a_link_to_code_is_not_boilerplate() -> None:
    form = "Copyright © 2020 A. Otter, released under a licence.\nThe authors have declared that no interests exist."
    for code in ("Code is available at https://example.org.", "Codeisavailableathttps://example.org."):
        assert told(f"{form}\n{code}") == [("boilerplate", "", form)]


def test_an_affiliation_after_the_first_page_is_text() -> None:
    text = f"{TITLE}\n\n{PROSE}\n\n1 Department of Zoology, University of Kelp"
    assert sections(NO_HEADINGS, text, PageMap((0, len(TITLE) + 2), ("", ""))) == ()


def of(text: str, *heads: tuple[str, Kind]) -> tuple[PaperSection, ...]:
    """Sections that begin at these words, each up to the next."""
    starts = [text.index(words) for words, _ in heads]
    return tuple(
        PaperSection(start, end, 1, "", words, kind)
        for start, end, (words, kind) in zip(starts, [*starts[1:], len(text)], heads, strict=True)
    )


def apart(text: str, *heads: tuple[str, Kind]) -> list[str]:
    headed = of(text, *heads)
    found = blocks(text, PageMap((0,), ("",)), headed, ())
    tree = tuple(sorted((*headed, *found), key=lambda section: section.start))
    require_tree(tree, len(text), "the sections")
    return [words for start, end in SectionMap(tree).spans_of_kinds() if (words := text[start:end].strip())]


def test_tables_and_figures_among_references_are_evidence() -> None:
    rows = "\n\n".join(f"Station {name} had many otters and much kelp" for name in ("north", "south", "east") * 9)
    text = f"{PROSE}\n\nReferences\n\n[1] A. Otter. 2014.\n\nFigure 5. Otters.\n\n{rows}\n\n[2] B. Otter. 2015."
    kept = apart(text, ("References", "references"))
    assert kept == ["References\n\n[1] A. Otter. 2014.", "[2] B. Otter. 2015."]


def test_acknowledgements_end_where_figures_and_appendices_begin() -> None:
    thanks = "Acknowledgements\n\nWe thank the otters.\n\nThey slept well."
    figure = f"{PROSE}\n\n{thanks}\n\n0 0.2 0.4 0.6 1\n\nFigure 1. Otters."
    appendix = f"{PROSE}\n\n{thanks}\n\nAppendix 1: Who did what\n\n{PROSE}"
    assert [apart(text, ("Acknowledgements", "acknowledgements")) for text in (figure, appendix)] == [[thanks]] * 2


def test_a_block_ends_where_a_section_begins() -> None:
    text = f"{PROSE}\n\nFigure 1. Otters.\nMethods\nWe counted."
    (block,) = blocks(text, PageMap((0,), ("",)), of(text, ("Methods", "methods")), ())
    assert text[block.start : block.end] == "Figure 1. Otters."


def test_thousands_of_captions_take_no_time() -> None:
    text = "\n\n".join(f"Figure {number}. x" for number in range(1, 999)) * 20
    began = time.process_time()
    assert len(blocks(text, PageMap((0,), ("",)), (), ())) > 19_000
    assert time.process_time() - began < 10


def test_footnotes_stand_small_at_the_foot_of_a_column(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    for row in range(20):
        page.insert_text((72, 90 + 14 * row), f"Line {row}: {PROSE}"[:80], fontsize=10, fontname="tiro")
    page.insert_text((72, 640), "More of the text stands above the notes of this page.", fontsize=10, fontname="tiro")
    page.insert_text((72, 700), "1Otters of the north only, as those of the south", fontsize=7, fontname="tiro")
    page.insert_text((72, 709), "were never seen.", fontsize=7, fontname="tiro")
    page.insert_text((72, 720), "2See https://example.org/otters", fontsize=7, fontname="tiro")
    document.save(tmp_path / "notes.pdf")
    parsed = read_pdf(tmp_path / "notes.pdf")
    text, pages = clean(parsed.pages)
    (note,) = sections(parsed.headings, text, pages)
    assert (note.kind, note.level) == ("footnote", 0)
    assert text[note.start : note.end].startswith("1Otters of the north")
    assert text[note.start : note.end].endswith("https://example.org/otters")
