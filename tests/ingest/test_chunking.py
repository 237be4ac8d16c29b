"""Chunk spans: the splitter's pieces, their positions and their pages."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from folio.ingest.chunking import SHORT, chunk_id, fine_spans, split
from folio.papers.model import PageMap
from folio.papers.sections import Kind, PaperSection, SectionMap
from folio.store.rows import require_tree

pytestmark = pytest.mark.fast

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


def _with_whole_ends(text: str, size: int) -> str:
    """The text with no separators where the first and last words stay together."""
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    whole = min(SHORT, size // 4) if last - first > 2 * min(SHORT, size // 4) else last - first
    inside = [*range(first, first + whole), *range(max(first, last - whole), last)]
    return "".join("x" if at in inside and (c.isspace() or c == ".") else c for at, c in enumerate(text))


def _reference(text: str, size: int, overlap: int) -> list[str]:
    """The pieces of LangChain's splitter, as it cuts the text with whole ends."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size,
        chunk_overlap=overlap,
        separators=["\n\n", "\n", r"\. ", " ", ""],
        is_separator_regex=True,
        keep_separator="end",
    )
    return [piece for piece in splitter.split_text(text) if piece.strip()]  # with size 1, some pieces are white space


@pytest.mark.parametrize(("size", "overlap"), [(1500, 200), (200, 40), (60, 20), (25, 0), (7, 3), (1, 0)])
def test_pieces_are_those_of_the_recursive_splitter(size: int, overlap: int) -> None:
    whole = _with_whole_ends(PROSE, size)
    assert [whole[start:end] for start, end in split(PROSE, size, overlap)] == _reference(whole, size, overlap)


def test_a_few_words_at_the_ends_stay_with_their_neighbours() -> None:
    words = "word " * 200
    text = f"Introduction\n\n{words}end.\n\nNotes:\n\n{words}end.\n\n(The last line.)"
    spans = split(text, 1200, 0)
    assert text[slice(*spans[0])].startswith("Introduction\n\nword")
    assert text[slice(*spans[-1])].endswith("end.\n\n(The last line.)")
    assert min(end - start for start, end in spans) > 100


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


def _pieces(text: str, size: int, overlap: int) -> list[str]:
    return [text[start:end] for start, end in split(text, size, overlap)]


def test_prose_is_cut_at_paragraphs_lines_sentences_words() -> None:
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
def test_a_chunk_begins_and_ends_on_its_characters_pages(pages: list[str], sizes: tuple[int, int]) -> None:
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


_KINDS: tuple[Kind, ...] = ("abstract", "introduction", "references", "other")


@st.composite
def _papers(draw: st.DrawFn) -> tuple[str, tuple[PaperSection, ...]]:
    """A text with headings, and the sections that these make: each up to the next heading that is not below it."""
    pieces = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(_KINDS), _TEXTS), max_size=6))
    text, starts, levels, kinds = draw(_TEXTS), [], [], []
    for number, (level, kind, body) in enumerate(pieces):
        text += "\n\n"
        if level:
            starts.append(len(text))
            levels.append(level)
            kinds.append(kind)
            text += f"Heading {number}\n\n"
        text += body * draw(st.integers(0, 8))
    ends = [
        next((starts[n] for n in range(i + 1, len(starts)) if levels[n] <= levels[i]), len(text))
        for i in range(len(starts))
    ]
    sections = tuple(
        PaperSection(start, end, level, "", text[start:].partition("\n")[0], kind)
        for start, end, level, kind in zip(starts, ends, levels, kinds, strict=True)
    )
    return text, sections


@given(_papers(), st.tuples(st.integers(20, 400), st.integers(0, 60)).filter(lambda sizes: sizes[1] < sizes[0]))
def test_chunks_cross_section_borders_only_to_join_short_sections(
    paper: tuple[str, tuple[PaperSection, ...]], sizes: tuple[int, int]
) -> None:
    text, sections = paper
    require_tree(sections, len(text), "the list")
    spans = split(text, *sizes, sections)
    assert all(0 <= start < end <= len(text) and end - start <= sizes[0] for start, end in spans)
    assert all(not text[start].isspace() and not text[end - 1].isspace() for start, end in spans)
    covered = {at for start, end in spans for at in range(start, end)}
    assert all(char.isspace() or at in covered for at, char in enumerate(text))
    borders = sorted({0, len(text), *(section.start for section in sections)})
    for start, end in spans:
        inside = [border for border in borders if start < border < end]
        for border in inside:
            before = text[borders[borders.index(border) - 1] : border].strip()
            after = text[border : borders[borders.index(border) + 1]].strip()
            assert min(len(before), len(after)) < SHORT
        kinds = {section.kind for section in SectionMap(sections).of(start, end)}
        bare = [s for s in sections if start <= s.start < end and _is_bare(text, s, borders)]
        assert len(kinds) < 2 or bare
    for one, other in pairwise(spans):
        if other[0] < one[1]:  # an overlap
            assert SectionMap(sections).of(*other)[:1] == SectionMap(sections).of(other[0], one[1])[:1]
            assert not any(one[0] < border <= one[1] and border > other[0] for border in borders if border < one[1])


def _is_bare(text: str, section: PaperSection, borders: list[int]) -> bool:
    following = next(border for border in borders if border > section.start)
    return text[section.start : following].strip() == section.title


def _section(text: str, title: str, level: int, kind: Kind, until: str = "") -> PaperSection:
    return PaperSection(text.index(title), text.index(until) if until else len(text), level, "", title, kind)


def test_chunks_do_not_reach_into_the_next_section() -> None:
    methods, results = "We measured it twice. " * 12, "It was seven. " * 20
    text = f"Methods\n\n{methods}\n\nResults\n\n{results}"
    sections = [_section(text, "Methods", 1, "methods", "Results"), _section(text, "Results", 1, "results")]
    pieces = [text[start:end] for start, end in split(text, 1500, 200, sections)]
    assert pieces == [f"Methods\n\n{methods}".strip(), f"Results\n\n{results}".strip()]
    assert len(split(text, 1500, 200)) == 1


def test_short_sections_are_joined_and_headings_stay_with_their_text() -> None:
    prose = "We measured it twice. " * 12
    text = f"3 Setup\n\n3.1 Tools\n\nA ruler.\n\n3.2 Places\n\n{prose}\n\nThanks\n\nTo all.\n\nReferences\n\n{prose}"
    sections = [
        _section(text, "3 Setup", 1, "other", "Thanks"),
        _section(text, "3.1 Tools", 2, "methods", "3.2 Places"),
        _section(text, "3.2 Places", 2, "methods", "Thanks"),
        _section(text, "Thanks", 1, "acknowledgements", "References"),
        _section(text, "References", 1, "references"),
    ]
    pieces = [text[start:end].strip() for start, end in split(text, 1500, 200, sections)]
    assert [piece.split("\n")[0] for piece in pieces] == ["3 Setup", "Thanks", "References"]
    assert pieces[1] == "Thanks\n\nTo all."
    # Places of another parent are not joined.
    apart = f"1 One\n\n{prose}\n\n1.1 Tools\n\nA ruler.\n\n2 Two\n\n2.1 Deep\n\n{prose}"
    tree = [
        _section(apart, "1 One", 1, "other", "2 Two"),
        _section(apart, "1.1 Tools", 2, "other", "2 Two"),
        _section(apart, "2 Two", 1, "other"),
        _section(apart, "2.1 Deep", 2, "other"),
    ]
    pieces = [apart[start:end] for start, end in split(apart, 1500, 0, tree)]
    assert [piece.split("\n")[0] for piece in pieces] == ["1 One", "2 Two"]


@given(_papers(), st.integers(20, 400), st.integers(1, 60))
def test_fine_spans_cover_their_passage_and_stay_in_it(
    paper: tuple[str, tuple[PaperSection, ...]], size: int, fine_size: int
) -> None:
    text, sections = paper
    spans = split(text, size, 0, sections)
    found = fine_spans(text, spans, fine_size)
    assert len(found) == len(spans)
    for (start, end), fine in zip(spans, found, strict=True):
        assert all(start <= first < last <= end and last - first <= fine_size for first, last in fine)
        assert all(not text[first].isspace() and not text[last - 1].isspace() for first, last in fine)
        assert all(one[1] <= other[0] for one, other in pairwise(fine))
        covered = {at for first, last in fine for at in range(first, last)}
        assert all(text[at].isspace() or at in covered for at in range(start, end))


def test_fine_spans_hold_as_many_sentences_as_fit() -> None:
    text = "Otters float. They hold hands.\nKelp holds them, e.g. at night. " + "Ice " * 20 + "melts."
    (fine,) = fine_spans(text, [(0, len(text))], 45)
    assert [text[start:end] for start, end in fine[:2]] == [
        "Otters float. They hold hands.",
        "Kelp holds them, e.g. at night.",
    ]
    assert text[slice(*fine[-1])].endswith("melts.")
