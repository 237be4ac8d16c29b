"""Chunk spans: the splitter's pieces, their positions and their pages."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from folio.ingest.chunking import chunk_id, split
from folio.types import PageMap

PROSE = (
    "Lattices are discrete. Their bases are many.\nA short basis is hard to find, e.g. in high dimension.\n\n"
    "The second paragraph holds one sentence only, and it is somewhat longer than those that came before it.\n\n"
    "Third. Four. Five words are in this. Six... Seven?! Yes. "
) * 5

# Words, separators and repetition, in any order
_TEXTS = st.lists(
    st.one_of(
        st.sampled_from(["\n\n", "\n", ". ", " ", "  ", "....", ".", "word ", "0 0 0\n", "\t", "\u00a0", "\u2003"]),
        st.text(max_size=12),
        st.integers(1, 70).map(lambda count: "a" * count),
    ),
    max_size=60,
).map("".join)
_SIZES = st.tuples(st.integers(1, 60), st.integers(0, 59)).filter(lambda sizes: sizes[1] < sizes[0])


def _reference(text: str, size: int, overlap: int) -> list[str]:
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size,
        chunk_overlap=overlap,
        separators=["\n\n", "\n", r"\. ", " ", ""],
        is_separator_regex=True,
        keep_separator="end",
    )
    return [piece for piece in splitter.split_text(text) if piece.strip()]  # with size 1, some pieces are white space


def _pieces(text: str, size: int, overlap: int) -> list[str]:
    return [text[start:end] for start, end in split(text, size, overlap)]


@pytest.mark.parametrize(("size", "overlap"), [(1500, 200), (200, 40), (60, 20), (25, 0), (7, 3), (1, 0)])
def test_pieces_are_those_of_the_recursive_splitter(size: int, overlap: int) -> None:
    assert _pieces(PROSE, size, overlap) == _reference(PROSE, size, overlap)


@given(_TEXTS, _SIZES)
def test_pieces_are_those_of_the_recursive_splitter_for_any_text(text: str, sizes: tuple[int, int]) -> None:
    assert _pieces(text, *sizes) == _reference(text, *sizes)


@given(_TEXTS, _SIZES)
def test_spans_are_ordered_within_bounds_and_cover_the_text(text: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    spans = split(text, size, overlap)
    assert all(0 <= start < end <= len(text) and end - start <= size for start, end in spans)
    assert all(not text[start].isspace() and not text[end - 1].isspace() for start, end in spans)
    for one, other in pairwise(spans):
        assert one < other
        assert one[1] - other[0] <= overlap
    covered = {at for start, end in spans for at in range(start, end)}
    assert all(char.isspace() or at in covered for at, char in enumerate(text))


def test_prose_is_cut_at_paragraphs_then_lines_then_sentences_then_words() -> None:
    assert _pieces("One two.\n\nThree four.", 12, 0) == ["One two.", "Three four."]
    assert _pieces("One two.\nThree four.", 12, 0) == ["One two.", "Three four."]
    assert _pieces("One two. Three four.", 12, 0) == ["One two.", "Three four."]
    assert _pieces("One two three four", 12, 0) == ["One two", "three four"]
    assert _pieces("Onetwothreefour", 12, 0) == ["Onetwothreef", "our"]


def test_neighbours_overlap() -> None:
    assert split("aa bb cc dd ee", 8, 3) == ((0, 5), (3, 8), (6, 14))


@pytest.mark.parametrize("repeated", ["0 0 0 0 0\n", "Introduction ........ 3\n", "the same line again. ", "ab" * 40])
def test_repeated_text_keeps_its_positions(repeated: str) -> None:
    text = f"Start.\n\n{repeated * 50}\n\nThe end."
    spans = split(text, 80, 20)
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    assert starts == sorted(set(starts))
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    # Gaps are no wider than the white space between lines, so no piece was matched to an earlier or later one.
    assert all(not text[end:start].strip() for end, start in zip(ends, starts[1:], strict=False) if start > end)
    assert all(end - start <= 20 for end, start in zip(ends, starts[1:], strict=False))


def test_positions_are_right_when_shadow_characters_repeat() -> None:
    line = "All work and no play makes a long text. "
    text = line * (0x80000 // len(line) + 2000) + "The end of it."
    spans = split(text, 1500, 200)
    assert spans[-1][1] == len(text)
    assert text[slice(*spans[-1])].endswith("play makes a long text. The end of it.")
    assert all(start < other for (start, _), (other, _) in pairwise(spans))


@pytest.mark.parametrize("text", ["", " ", "\n\n \t\n"])
def test_white_space_has_no_chunks(text: str) -> None:
    assert split(text, 10, 2) == ()


@given(st.lists(st.sampled_from(["", "a", "one two three. ", "a line\n", "x" * 30]), min_size=1, max_size=8), _SIZES)
def test_a_chunk_has_the_pages_of_its_first_and_last_characters(pages: list[str], sizes: tuple[int, int]) -> None:
    text = "".join(pages)
    starts = [sum(map(len, pages[:number])) for number in range(len(pages))]
    page_of = [number for number, page in enumerate(pages, 1) for _ in page]
    page_map = PageMap(tuple(starts), ("",) * len(pages))
    for start, end in split(text, *sizes):
        assert page_map.pages_of(start, end) == (page_of[start], page_of[end - 1])
        assert page_map.page_at(start) == bisect_right(starts, start)
    for number, page in enumerate(pages, 1):
        assert text[slice(*page_map.bounds(number, len(text)))] == page


def test_an_overlap_that_crosses_a_page_is_on_both() -> None:
    text = "first page ends. second page begins here"
    page_map = PageMap((0, 17), ("i", ""))
    spans = split(text, 24, 8)
    assert [(text[start:end], page_map.pages_of(start, end)) for start, end in spans] == [
        ("first page ends.", (1, 1)),
        ("second page begins here", (2, 2)),
    ]
    assert page_map.pages_of(12, 20) == (1, 2)
    assert (page_map.label(1), page_map.label(2)) == ("i", "2")


def test_an_id_depends_on_paper_span_and_kind() -> None:
    assert chunk_id("ab" * 32, 0, 1500) == 2153132373276589822
    ids = {chunk_id("ab" * 32, 0, 1500), chunk_id("ab" * 32, 0, 1501), chunk_id("ab" * 32, 1, 1500)}
    ids |= {chunk_id("cd" * 32, 0, 1500), chunk_id("ab" * 32, 0, 1500, "summary")}
    assert len(ids) == 5
    assert all(0 < number < 2**63 for number in ids)
