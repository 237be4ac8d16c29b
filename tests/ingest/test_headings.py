"""The headings of a paper: found in its lines, placed in its cleaned text, and made into a tree."""

from __future__ import annotations

import time
from pathlib import Path

import pymupdf
import pytest

from folio.ingest.cleaning import clean
from folio.ingest.sections import find_headings, sections
from folio.papers.model import PageMap
from folio.papers.sections import HeadingLine, HeadingLines, OutlineEntry, PaperSection, SectionMap, Style
from folio.pdf import limits
from folio.pdf.reader import read_pdf

BODY = Style(10, "Times", False, False, False)
BOLD, SMALL_BOLD = Style(12, "Times-Bold", True, False, False), Style(10, "Times-Bold", True, False, False)
ITALIC, CAPITALS = Style(10, "Times-Italic", False, True, False), Style(10, "Times", False, False, True)


def lines(*set_: tuple[Style, str], outline: tuple[tuple[int, str], ...] = (), page: int = 1) -> HeadingLines:
    entries = tuple(OutlineEntry(level, title) for level, title in outline)
    return HeadingLines(tuple(HeadingLine(page, text, style, True) for style, text in set_), entries, 10, "Times")


def found(headings: HeadingLines) -> list[tuple[int, str, str]]:
    return [(heading.level, heading.number, heading.title) for heading in find_headings(headings)]


def test_an_outline_names_appendices_with_the_word() -> None:
    headings = lines(
        (BOLD, "References"), (ITALIC, "Appendix A — Loop Bounds"), (ITALIC, "Appendix B — Zetas"),
        outline=((2, "References"), (2, "Appendix A — Loop Bounds"), (2, "Appendix B — Zetas")),
    )  # fmt: skip
    assert found(headings) == [(1, "", "References"), (1, "A", "Loop Bounds"), (1, "B", "Zetas")]


def test_numbers_give_the_levels() -> None:
    headings = lines(
        (BOLD, "Abstract"), (BOLD, "1 Introduction"), (BOLD, "2. The Raft algorithm"), (SMALL_BOLD, "2.1 Basics"),
        (SMALL_BOLD, "2.2 Leader election"), (BOLD, "3 Evaluation"), (BOLD, "References"),
    )  # fmt: skip
    assert found(headings) == [
        (1, "", "Abstract"), (1, "1", "Introduction"), (1, "2", "The Raft algorithm"), (2, "2.1", "Basics"),
        (2, "2.2", "Leader election"), (1, "3", "Evaluation"), (1, "", "References"),
    ]  # fmt: skip


def test_roman_numbers_have_letters_below_them() -> None:
    headings = lines(
        (CAPITALS, "I. INTRODUCTION"), (CAPITALS, "II. MEMORY SAFETY"), (ITALIC, "A. Bounds"),
        (ITALIC, "1) Fat pointers"), (ITALIC, "2) Shadow memory"), (ITALIC, "B. Lifetimes"),
        (CAPITALS, "III. DISCUSSION"),
    )  # fmt: skip
    assert [(level, number) for level, number, _ in found(headings)] == [
        (1, "I"), (1, "II"), (2, "A"), (3, "1"), (3, "2"), (2, "B"), (1, "III"),
    ]  # fmt: skip


def test_a_list_is_no_sequence_of_sections() -> None:
    headings = lines((BOLD, "1 Introduction"), (BODY, "1. Never trust a paper."), (BODY, "2. Never trust a clock."),
                     (BOLD, "2 Design"), (SMALL_BOLD, "Theorem 2.1 It holds"), (BOLD, "3 End"))  # fmt: skip
    assert [title for _, _, title in found(headings)] == ["Introduction", "Design", "End"]


def test_headings_without_numbers_are_ranked_by_how_they_are_set() -> None:
    headings = lines((BOLD, "Introduction"), (SMALL_BOLD, "End-to-end caretaking"), (SMALL_BOLD, "A too-real example"),
                     (BOLD, "Identifying the ends"), (BOLD, "References"))  # fmt: skip
    assert [(level, title) for level, _, title in found(headings)] == [
        (1, "Introduction"), (2, "End-to-end caretaking"), (2, "A too-real example"), (1, "Identifying the ends"),
        (1, "References"),
    ]  # fmt: skip


def test_an_outline_is_believed_only_where_the_pages_agree() -> None:
    told = ((1, "Melt rates"), (2, "Ice cores"), (1, "Outlook"))
    set_ = (SMALL_BOLD, "Melt rates"), (SMALL_BOLD, "Ice cores"), (SMALL_BOLD, "Outlook")
    assert [level for level, _, _ in found(lines(*set_, outline=told))] == [1, 2, 1]
    false = tuple((3, f"Slide {number}") for number in range(9))
    assert [level for level, _, _ in found(lines(*set_, outline=false, page=2))] == [1, 1, 1]


def test_running_heads_and_contents_are_no_headings() -> None:
    contents = [HeadingLine(1, f"{number} Part {number} {number + 2}", BODY, False) for number in range(1, 6)]
    pages = [HeadingLine(page, "Otters at sea", ITALIC, True) for page in range(2, 6)]
    real = [HeadingLine(2, "1 Introduction", BOLD, True), HeadingLine(3, "2 Otters", BOLD, True)]
    assert [title for _, _, title in found(HeadingLines((*contents, *pages, *real), (), 10, "Times"))] == [
        "Introduction",
        "Otters",
    ]


def drawn(path: Path) -> Path:
    """A paper of two pages with headings in bold, an italic paragraph head, and an outline that loops."""
    document = pymupdf.open()
    body = "We measured the thickness of the ice at forty stations for ten years."
    for page_lines in (
        [
            ("hebo", 18, "Melting Ice"),
            ("hebo", 12, "Abstract"),
            ("helv", 10, body),
            ("hebo", 12, "1"),
            ("helv", 10, body),
        ],
        [("hebo", 12, "2 Methods"), ("helv", 10, body), ("hebo", 10, "2.1 Ice cores"), ("helv", 10, body)],
        [("hebo", 12, "3 Results"), ("helv", 10, body), ("hebo", 12, "References"), ("helv", 10, body)],
    ):
        page = document.new_page()
        for place, (font, size, text) in enumerate(page_lines):
            page.insert_text((72, 90 + 30 * place), text, fontname=font, fontsize=size)
            if text == "1":  # a number is often set apart
                page.insert_text((90, 90 + 30 * place), "Introduction", fontname=font, fontsize=size)
    document.save(path)
    document.close()
    return path


def test_sections_are_spans_of_the_cleaned_text(tmp_path: Path) -> None:
    parsed = read_pdf(drawn(tmp_path / "ice.pdf"))
    text, pages = clean(parsed.pages)
    made = sections(parsed.headings, text, pages)
    assert [(each.level, each.number, each.title, each.kind) for each in made] == [
        (1, "", "Abstract", "abstract"), (1, "1", "Introduction", "introduction"), (1, "2", "Methods", "methods"),
        (2, "2.1", "Ice cores", "methods"), (1, "3", "Results", "results"), (1, "", "References", "references"),
    ]  # fmt: skip
    for each in made:
        assert text[each.start :].startswith(each.number or each.title)
    assert [each.end for each in made] == [made[1].start, made[2].start, made[4].start, made[4].start, made[5].start,
                                           len(text)]  # fmt: skip


def test_an_outline_that_refers_to_itself_ends(tmp_path: Path) -> None:
    path = drawn(tmp_path / "ice.pdf")
    document = pymupdf.open(path)
    document.set_toc([[1, "Methods", 2], [2, "Ice cores", 2], [1, "Results", 3]])
    root = int(document.xref_get_key(document.pdf_catalog(), "Outlines")[1].split()[0])
    first = document.xref_get_key(root, "First")[1]
    last = int(document.xref_get_key(root, "Last")[1].split()[0])
    document.xref_set_key(last, "Next", first)
    document.xref_set_key(last, "First", first)
    document.saveIncr()
    document.close()
    assert [(each.level, each.title) for each in read_pdf(path).headings.outline] == [
        (1, "Methods"),
        (2, "Ice cores"),
        (1, "Results"),
    ]


def test_the_lines_of_a_file_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.HEADINGS >= 1000
    monkeypatch.setattr(limits, "HEADINGS", 200)
    document = pymupdf.open()
    for _ in range(6):
        page = document.new_page()
        for number in range(60):  # one in five is as large as the text, and no heading
            page.insert_text(
                (60 + 250 * (number % 2), 60 + 12 * number), "Heading", fontname="hebo", fontsize=8 + number % 5
            )
    document.save(tmp_path / "many.pdf")
    document.close()
    assert len(read_pdf(tmp_path / "many.pdf").headings.lines) == 200


def test_a_page_of_one_heading_is_searched_once() -> None:
    count = 5_000
    same = lines(*[(BOLD, "Otters at sea")] * count, outline=((1, "Otters at sea"),) * count, page=2)
    text = "\n".join(["Otters at sea"] * count)
    began = time.process_time()
    made = sections(same, text, PageMap((0, 0), ("", "")))
    assert (len(made), made[-1].end) == (count, len(text))
    assert time.process_time() - began < 5


def test_a_span_belongs_to_the_sections_of_its_text() -> None:
    made = SectionMap((
        PaperSection(10, 50, 1, "1", "Ice", "other"),
        PaperSection(20, 40, 2, "1.1", "Cores", "other"),
        PaperSection(50, 90, 1, "2", "Sea", "other"),
    ))  # fmt: skip
    spans = {(0, 5): "", (10, 15): "§1 Ice", (25, 30): "§1.1 Cores", (41, 45): "§1 Ice", (42, 60): "§1 Ice – §2 Sea",
             (0, 12): "§1 Ice", (39, 52): "§1.1 Cores – §2 Sea", (90, 95): ""}  # fmt: skip
    assert {span: made.shown(*span) for span in spans} == spans
