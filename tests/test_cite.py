"""Sentences, markers, support, quotes: what an answer may say, and which words of which page it stands on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from desk import hit_on, hits_on, one_page_hits
from hypothesis import given
from hypothesis import strategies as st

from folio import cite
from folio.cite import Written, check, cited, support, take_markers, written_sentences
from folio.sentences import sentence_spans
from folio.types import REFUSAL, Chunk, Hit, PageMap, Paper, Sentence


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Full stops that end nothing
        ("See Fig. 3 for it. Then go.", ["See Fig. 3 for it.", "Then go."]),
        ("Eqs. 2 and 3 hold, cf. Sec. 4. Done.", ["Eqs. 2 and 3 hold, cf. Sec. 4.", "Done."]),
        ("By Alg. 2 it halts. Thm. 1 says so.", ["By Alg. 2 it halts.", "Thm. 1 says so."]),
        ("We use it, e.g. Adam, i.e. the default. Good.", ["We use it, e.g. Adam, i.e. the default.", "Good."]),
        ("Smith et al. Report it. Then", ["Smith et al. Report it.", "Then"]),
        ("As Smith et al. (2020) show. It holds.", ["As Smith et al. (2020) show.", "It holds."]),
        ("J. R. R. Tolkien wrote. He did.", ["J. R. R. Tolkien wrote.", "He did."]),
        ("It is 3.14. Version 1.2 came.", ["It is 3.14.", "Version 1.2 came."]),
        ("The U.S. Army came. It left.", ["The U.S. Army came.", "It left."]),
        ("No. 5 is good. We agree.", ["No. 5 is good.", "We agree."]),
        ("The answer is no. He left.", ["The answer is no.", "He left."]),
        ("Open the app. Then log in.", ["Open the app.", "Then log in."]),
        ("it waits... and goes on. Now.", ["it waits... and goes on.", "Now."]),
        ("Use numpy.linalg here. See it.", ["Use numpy.linalg here.", "See it."]),
        # Full stops that do
        ("Type I. Then more.", ["Type I.", "Then more."]),
        ("Is it? Yes! Fine… Next", ["Is it?", "Yes!", "Fine…", "Next"]),
        ("It costs $5. 10 people came.", ["It costs $5.", "10 people came."]),
        ("One.\nTwo goes on\nhere. Three.", ["One.", "Two goes on\nhere.", "Three."]),
        ("He ran.[1] She sat.[2, 3]", ["He ran.[1]", "She sat.[2, 3]"]),
        # Quotes and brackets close behind the stop
        ('He said "yes." Then left.', ['He said "yes."', "Then left."]),
        ("He said “yes.” Then left.", ["He said “yes.”", "Then left."]),
        ("Elle a dit « oui. » Puis", ["Elle a dit « oui. »", "Puis"]),
        ("(It holds.) Next.", ["(It holds.)", "Next."]),
        ("It holds. “So it does.” End", ["It holds.", "“So it does.”", "End"]),
        # Lists, headings, paragraphs
        ("1. First item\n2. Second item", ["1. First item", "2. Second item"]),
        ("• one thing\n• two things", ["• one thing", "• two things"]),
        ("- one\n- two", ["- one", "- two"]),
        ("Introduction\n\nThe text goes on. End", ["Introduction", "The text goes on.", "End"]),
        ("1) alpha\n2) beta. Gamma", ["1) alpha", "2) beta.", "Gamma"]),
        # No final stop, no text, other scripts
        ("No final stop", ["No final stop"]),
        ("  \n ", []),
        ("", []),
        ("これは文です。次の文です。", ["これは文です。", "次の文です。"]),
        ("这是吗？是！好", ["这是吗？", "是！", "好"]),
        ("Это так. Да. Нет", ["Это так.", "Да.", "Нет"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


WORDS = "The cat Fig. al. 3 2. 4.5 J. end. Why? No! ... “Then ” « » ** [1] [2,3] [ (1) (2019) 。 文".split()
WORDS += ["\n\n", "\n- ", "\n"]
PROSE = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.lists(
    st.sampled_from([*WORDS, *" .[]()-1\n"]), max_size=25
).map("".join)


@given(PROSE | st.text(max_size=80))
def test_sentences_are_disjoint_in_order_trimmed_and_cover_every_letter(text: str) -> None:
    spans = sentence_spans(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ("It holds [1].", 3, ("It holds.", (1,))),
        ("It holds[1].", 3, ("It holds.", (1,))),
        ("It holds [1][3].", 3, ("It holds.", (1, 3))),
        ("It holds [1] [3].", 3, ("It holds.", (1, 3))),
        ("It holds [3, 1; 2].", 3, ("It holds.", (3, 1, 2))),
        ("It holds [1 and 2].", 3, ("It holds.", (1, 2))),
        ("It holds [1-3].", 3, ("It holds.", (1, 2, 3))),
        ("It holds [1 – 3].", 3, ("It holds.", (1, 2, 3))),
        ("It holds [2-999].", 3, ("It holds.", (2, 3))),
        ("It holds [3-1].", 3, ("It holds.", ())),
        # Written in other ways
        ("It holds [Source 1].", 3, ("It holds.", (1,))),
        ("It holds [Evidence 2, 3].", 3, ("It holds.", (2, 3))),
        ("It holds 【2】.", 3, ("It holds.", (2,))),
        ("[2] It holds.", 3, ("It holds.", (2,))),
        # Missing, repeated, nested, cut off
        ("It holds.", 3, ("It holds.", ())),
        ("It [1] holds [1].", 3, ("It holds.", (1,))),
        ("It holds [[1]].", 3, ("It holds.", (1,))),
        ("It holds ([2]).", 3, ("It holds.", (2,))),
        ("It holds (as said [2]).", 3, ("It holds (as said).", (2,))),
        ("It holds [1", 3, ("It holds", ())),
        # Invented
        ("It holds [7].", 3, ("It holds.", ())),
        ("It holds [0].", 3, ("It holds.", ())),
        ("It holds [2, 9].", 3, ("It holds.", (2,))),
        ("It holds [1].", 0, ("It holds.", ())),
        # No markers
        ("Scaled to [0, 1] it holds [2].", 3, ("Scaled to [0, 1] it holds.", (2,))),
        ("It holds [citation needed].", 3, ("It holds [citation needed].", ())),
        ("It holds [1000].", 3, ("It holds [1000].", ())),
        # Round brackets: a number of the evidence, or not
        ("It holds (1).", 3, ("It holds.", (1,))),
        ("It holds (2019).", 3, ("It holds (2019).", ())),
        ("It holds (7).", 3, ("It holds (7).", ())),
        ("It holds  (12).", 3, ("It holds (12).", ())),
        ("It holds (a).", 3, ("It holds (a).", ())),
        ("It holds (1, 9).", 3, ("It holds (1, 9).", ())),
    ],
)
def test_markers(text: str, count: int, expected: tuple[str, tuple[int, ...]]) -> None:
    assert take_markers(text, count) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A is b [1]. C is d [2].", [("A is b.", (1,)), ("C is d.", (2,))]),
        # A marker behind the full stop belongs to the sentence before it
        ("A is b. [1] C is d. [2]", [("A is b.", (1,)), ("C is d.", (2,))]),
        ("A is b.[1] C is d.[2][1]", [("A is b.", (1,)), ("C is d.", (2, 1))]),
        ("A is b.\n[1]\nC is d.", [("A is b.", (1,)), ("C is d.", ())]),
        ("A is b. (1) C is d.", [("A is b.", (1,)), ("C is d.", ())]),
        ("A is b. [1].", [("A is b.", (1,))]),
        ("[2] A is b.", [("A is b.", (2,))]),
        # Lists and marks of type
        ("- A is b [1].\n- C is d [2].", [("A is b.", (1,)), ("C is d.", (2,))]),
        ("1. A is b [1].\n2. C is d [2].", [("A is b.", (1,)), ("C is d.", (2,))]),
        ("**A** is b. [1]", [("A is b.", (1,))]),
        ("**A is b.** [1] **C.**", [("A is b.", (1,)), ("C.", ())]),
        ("# Head\n\nText [1].", [("Head", ()), ("Text.", (1,))]),
        ("-5 degrees is cold [1].", [("-5 degrees is cold.", (1,))]),
        ("3.5 is b [1].", [("3.5 is b.", (1,))]),
        # Nothing to say
        ("", []),
        (" \n[1]", []),
        ("...", []),
    ],
)
def test_written_sentences(text: str, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    assert written_sentences(text, 3, complete=True) == ([Written(*sentence) for sentence in expected], "")


def streamed(pieces: Sequence[str], count: int) -> list[Written]:
    found, rest = [], ""
    for piece in pieces:
        sentences, rest = written_sentences(rest + piece, count, complete=False)
        found += sentences
    return found + written_sentences(rest, count, complete=True)[0]


@given(PROSE, st.data())
def test_pieces_of_every_size_give_the_sentences_of_the_whole(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=len(text))))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert streamed(pieces, 3) == streamed([text], 3) == streamed(list(text), 3)


def test_a_sentence_is_told_as_soon_as_the_next_begins_and_no_sooner() -> None:
    assert written_sentences("A is b. [", 3, complete=False) == ([], "A is b. [")
    assert written_sentences("A is b. [1] [", 3, complete=False) == ([], "A is b. [1] [")
    assert written_sentences("A is b. [1] C", 3, complete=False) == ([Written("A is b.", (1,))], " C")
    assert written_sentences("A is b. C", 3, complete=False) == ([Written("A is b.", ())], "C")


@pytest.mark.parametrize(
    ("sentence", "passage", "expected"),
    [
        ("Kelp otters float.", "Otters float in kelp.", 1.0),
        ("Kelp otters fly.", "Otters float in kelp.", 2 / 3),
        ("It is what it is.", "Otters float in kelp.", 0.0),  # no telling word
        ("", "Otters float in kelp.", 0.0),
        ("", "", 0.0),
        # Each number must be there, as it is written
        ("Otters eat 25 urchins.", "Otters eat 25 urchins daily.", 1.0),
        ("Otters eat 26 urchins.", "Otters eat 25 urchins daily.", 0.0),
        ("Otters eat 2.5 urchins.", "Otters eat 25 urchins.", 0.0),
        ("Otters eat 25.", "The 25 otters eat", 1.0),
        ("Otters have 155,000 hairs.", "155,000 hairs: otters", 1.0),
    ],
)
def test_support(sentence: str, passage: str, expected: float) -> None:
    assert support(sentence, passage) == pytest.approx(expected)


OTTERS, ICE = "Otters float in rafts of kelp. They eat 25 urchins.", "The glacier is 23 kilometres long. It melts."


def quotes(sentence: Sentence | None) -> list[tuple[int, str, int, str]]:
    assert sentence is not None
    return [(c.source, c.file, c.page, c.quote) for c in sentence.citations]


def test_a_named_passage_that_holds_is_cited_with_its_nearest_sentence() -> None:
    found = cited(Written("The glacier is 23 kilometres long.", (2,)), one_page_hits(OTTERS, ICE))
    assert quotes(found) == [(2, "paper2.pdf", 1, "The glacier is 23 kilometres long.")]


def test_a_wrong_marker_is_moved_to_the_passage_that_holds() -> None:
    found = cited(Written("The glacier is 23 kilometres long.", (1,)), one_page_hits(OTTERS, ICE))
    assert quotes(found) == [(2, "paper2.pdf", 1, "The glacier is 23 kilometres long.")]


def test_of_several_markers_those_that_hold_stay_in_their_order() -> None:
    hits = one_page_hits(OTTERS, ICE, "A long glacier: 23 kilometres. More.")
    found = cited(Written("The glacier is 23 kilometres long.", (3, 1, 2)), hits)
    assert quotes(found) == [
        (3, "paper3.pdf", 1, "A long glacier: 23 kilometres."),
        (2, "paper2.pdf", 1, "The glacier is 23 kilometres long."),
    ]


def test_without_a_marker_the_passage_is_looked_up_and_the_better_ranked_wins_a_tie() -> None:
    hits = one_page_hits(OTTERS, ICE, ICE)
    assert quotes(cited(Written("The glacier melts.", ()), hits)) == [
        (2, "paper2.pdf", 1, "The glacier is 23 kilometres long."),
        (2, "paper2.pdf", 1, "It melts."),
    ]


@pytest.mark.parametrize(
    "written",
    [
        Written("Paris is the capital of France.", (1,)),
        Written("Paris is the capital of France.", ()),
        Written("They eat 26 urchins.", (1,)),  # another number
        Written("Otters float in rafts of 3 boats.", (1, 2)),
    ],
)
def test_a_sentence_that_no_passage_supports_is_none(written: Written) -> None:
    assert cited(written, one_page_hits(OTTERS, ICE)) is None
    assert cited(Written(written.text, ()), []) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (REFUSAL, True),
        (f'"{REFUSAL}"', True),
        (f"**{REFUSAL}**", True),
        ("not found in the provided papers", True),
        (f"{REFUSAL} But I know it.", True),
        ("It was not found in the provided papers.", False),
        ("", False),
    ],
)
def test_is_refusal(text: str, expected: bool) -> None:
    assert cite.is_refusal(text) is expected


def shown(text: str, hits: list[Hit]) -> list[str | None]:
    """What check makes of a text that comes word by word."""
    pieces = text.replace(" ", " \0").split("\0")
    return [sentence.text if sentence else None for sentence in check(pieces, hits)]


def test_check_shows_what_is_supported_and_counts_the_rest() -> None:
    text = "Otters float in rafts of kelp [1]. Paris is in France [2]. The glacier is 23 kilometres long. [2]"
    found = shown(text, one_page_hits(OTTERS, ICE))
    assert found == ["Otters float in rafts of kelp.", None, "The glacier is 23 kilometres long."]


@pytest.mark.parametrize("text", [REFUSAL, f"{REFUSAL} Otters float in rafts of kelp [1].", f"{REFUSAL} [1]", ""])
def test_a_refusal_ends_it(text: str) -> None:
    assert shown(text, one_page_hits(OTTERS)) == []


def test_a_refusal_behind_an_answer_ends_it_too() -> None:
    found = shown(f"Otters float in kelp [1]. {REFUSAL} Otters eat 25 urchins [1].", one_page_hits(OTTERS))
    assert found == ["Otters float in kelp."]


def test_check_goes_no_further_than_it_is_asked() -> None:
    taken = []

    def pieces() -> list[str]:
        return ["Otters float in kelp [1]. ", "They eat 25 urchins [1]. ", "The end."]

    def source() -> object:
        for piece in pieces():
            taken.append(piece)
            yield piece

    first = next(check(source(), one_page_hits(OTTERS)))  # type: ignore[arg-type]
    assert first is not None
    assert first.text == "Otters float in kelp."
    assert taken == pieces()[:2]


def test_a_sentence_over_a_pages_end_is_quoted_on_both_pages() -> None:
    hit = hit_on("Otters float in rafts of kelp and they", "eat 25 urchins. More.")
    found = cited(Written("Otters float in rafts of kelp and they eat 25 urchins.", (1,)), [hit])
    assert quotes(found) == [
        (1, "paper.pdf", 1, "Otters float in rafts of kelp and they"),
        (1, "paper.pdf", 2, "eat 25 urchins."),
    ]


def test_a_number_is_cited_on_the_page_that_it_is_on_and_not_where_the_rest_is() -> None:
    hit = hit_on("Model Otter was trained on the kelp data with great care.", "It reached 93.1 percent.")
    found = cited(Written("Model Otter, trained on the kelp data, reached 93.1 percent.", (1,)), [hit])
    assert (1, "paper.pdf", 2, "It reached 93.1 percent.") in (quotes(found) or [])
    later = hit_on("Otters", "float in rafts of kelp and they eat 25 urchins. More.")
    found = cited(Written("Otters float in rafts of kelp and they eat 25 urchins.", (1,)), [later])
    assert quotes(found) == [(1, "paper.pdf", 2, "float in rafts of kelp and they eat 25 urchins.")]


def test_a_label_that_is_printed_is_told() -> None:
    hit = hits_on("Otters float.", "They eat.")[0]
    pages = PageMap(hit.paper.pages.starts, ("iv", ""))
    paper = Paper(**{name: getattr(hit.paper, name) for name in Paper.__slots__} | {"pages": pages})
    labelled = Hit(hit.chunk, paper, hit.text, 0.5)
    assert [(c.page, c.label) for c in (cite.citation(labelled, 1, 0, 13), cite.citation(labelled, 1, 15, 24))] == [
        (1, "iv"),
        (2, "2"),
    ]


@st.composite
def hits_anywhere(draw: st.DrawFn) -> tuple[str, Hit]:
    """A text cut into pages anywhere, empty pages among them, and a hit anywhere in it."""
    text = draw(PROSE.filter(str.strip))
    starts = (0, *sorted(draw(st.lists(st.integers(0, len(text)), max_size=6))))
    start = draw(st.integers(0, len(text) - 1))
    end = draw(st.integers(start + 1, len(text)))
    paper = Paper("id", "p.pdf", "", (), None, PageMap(starts, ("",) * len(starts)), len(text), 1)
    return text, Hit(Chunk(1, "id", start, end), paper, text[start:end], 0.5)


@given(hits_anywhere(), st.data())
def test_a_quote_is_a_slice_of_the_page_that_it_claims(found: tuple[str, Hit], data: st.DataObject) -> None:
    text, hit = found
    start = data.draw(st.integers(hit.chunk.start, hit.chunk.end - 1))
    end = data.draw(st.integers(start + 1, hit.chunk.end))
    for citation in (cite.citation(hit, 3, start, end), *cite.quotes("The cat sat on 文", [(3, hit)], 0.3)):
        first, last = hit.paper.pages.bounds(citation.page, len(text))
        assert citation.quote in text[first:last]
        assert citation.quote in hit.text
        assert citation.source == 3
        assert citation.quote == citation.quote.strip()
        assert hit.pages[0] <= citation.page <= hit.pages[1]
    assert bool(cite.citation(hit, 3, start, end).quote) is bool(text[start:end].strip())


@given(hits_anywhere())
def test_every_sentence_of_a_hit_is_supported_by_it_and_quoted_from_it(found: tuple[str, Hit]) -> None:
    text, hit = found
    for sentence in check([hit.text], [hit]):
        if sentence is not None:
            (citation,) = sentence.citations
            first, last = hit.paper.pages.bounds(citation.page, len(text))
            assert citation.quote
            assert citation.quote in text[first:last]
