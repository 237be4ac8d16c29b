"""Evidence as numbered sentences and table rows, each on one page, and citations that are slices of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer_types import Evidence
from folio.grounding.sentences import citation, citations, neighbours, number_sentences
from folio.papers.model import PageMap
from tests.helpers.factories import evidence_of, evidence_on, hit_on, hits_on

pytestmark = pytest.mark.fast


def test_sentences_are_numbered_over_all_evidence() -> None:
    found = number_sentences(evidence_on("Otters float. They eat 25 urchins.", "The glacier is long."))
    assert [(s.number, s.evidence.number, s.text) for s in found] == [
        (1, 1, "Otters float."),
        (2, 1, "They eat 25 urchins."),
        (3, 2, "The glacier is long."),
    ]


def test_each_row_of_a_table_is_one() -> None:
    table = "Model  F1  Recall\nOtter  93.1  90.0\nSeal  88.0  85.5\n\nThat is\nall."
    rows = ["Model  F1  Recall", "Otter  93.1  90.0", "Seal  88.0  85.5"]
    assert [s.text for s in number_sentences(evidence_on(table))] == [*rows, "That is\nall."]


def test_a_sentence_ends_with_its_page_and_has_neighbours() -> None:
    found = number_sentences(evidence_of([hit_on("Otters float and they", "eat 25 urchins. More.")]))
    assert [s.text for s in found] == ["Otters float and they", "eat 25 urchins.", "More."]
    every = number_sentences(evidence_on("One is. Two is. Three is. Four is.", "Five is. Six is."))
    assert [s.number for s in neighbours([every[1]], every)] == [1, 2, 3]
    assert [s.number for s in neighbours([every[3], every[5]], every)] == [3, 4, 5, 6]


def test_a_span_is_cited_by_its_longest_page() -> None:
    (piece,) = evidence_of(hits_on("Otters.", "They float in kelp.", "So."))
    found = citation(piece, 0, len(piece.text), 0.5)
    assert (found.page, found.quote, found.support, found.evidence) == (2, "They float in kelp.", 0.5, 1)
    assert [(quote.page, quote.quote) for quote in citations(piece, 0, len(piece.text), 0.5)] == [
        (1, "Otters."),
        (2, "They float in kelp."),
        (3, "So."),
    ]
    assert citations(piece, 7, 9, 0.5) == []  # white space
    with pytest.raises(ValueError, match="empty"):
        citation(piece, 7, 9, 0.5)


_WORDS = "The cat Fig. sat. on 3 2. 4.5 mats. Why? not A  b  c 文 Otter\n \n\n • | \ud800 \u202e".split(" ")
TEXTS = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=30).map(" ".join).filter(str.strip)


@st.composite
def evidence_anywhere(draw: st.DrawFn) -> Evidence:
    """A text cut into pages anywhere, empty pages among them, and evidence anywhere in it."""
    text = draw(TEXTS)
    starts = (0, *sorted(draw(st.lists(st.integers(0, len(text)), max_size=6))))
    (piece,) = evidence_of(hits_on(text))
    paper = replace(piece.paper, pages=PageMap(starts, ("",) * len(starts)))
    start = draw(st.integers(0, len(text) - 1))
    end = draw(st.integers(start + 1, len(text)))
    return replace(piece, paper=paper, start=start, end=end, text=text[start:end])


@given(evidence_anywhere())
def test_a_citation_is_a_slice_of_its_page(piece: Evidence) -> None:
    for sentence in number_sentences([piece]):
        quotes = citations(piece, sentence.start, sentence.end, 0.5)
        for found in quotes:
            first, last = piece.paper.pages.bounds(found.page, piece.paper.length)
            assert first <= found.start < found.end <= last
            assert found.quote == piece.text[found.start - piece.start : found.end - piece.start]
            assert found.quote == found.quote.strip()
        assert "".join("".join(found.quote.split()) for found in quotes) == "".join(sentence.text.split())
