"""Open questions of papers: their sentences, their place in a paper, and the questions they are shown for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from folio.deep.profile import may_be_open, open_questions, open_sentences
from folio.papers.model import Paper
from folio.papers.sections import PaperSection, SectionMap
from tests.helpers.cpu_time import assert_linear
from tests.helpers.factories import hits_on
from tests.helpers.fakes import HashingEmbedder

OPEN = [
    "Whether otters sleep in kelp to hide from sharks is unknown.",
    "The role of kelp in the sleep of otters remains poorly understood.",
    "It is unclear why otters sleep in rafts of kelp.",
    "Further studies are needed to tell how otters sleep in kelp.",
    "Little is known about the sleep of otters in the open sea.",
    "We leave the sleep of young otters for future work.",
    "An important open question is how otters sleep in storms.",
    "The effect of storms on the sleep of otters has not been studied.",
    "The main limitation of this study of sleeping otters is its small sample.",
    "How otters sleep in storms remains to be seen by somebody.",
]
CLOSED = [
    "The final destination of a packet is not known at the source.",
    "Sometimes it is not known statically how many events come.",
    "Further analysis indicated that kelp was required for sleep.",
    "The interviews included open questions on the sleep of otters.",
    "Otters sleep in rafts of kelp and open clams with stones.",
    "Little is known about otters; hence, we studied how they sleep in kelp.",
    "It remains unclear.",  # too short
    "They remain poorly understood in the whole of the open sea.",  # what are they?
    "Some limitations of this study should be noted.",
    "Where do otters sleep, and is it unknown whether they dream?",
]


@pytest.mark.parametrize("sentence", OPEN)
def test_sentences_on_open_questions(sentence: str) -> None:
    text = f"Otters float. {sentence} They eat clams."
    assert [text[start:end] for start, end in open_sentences(text)] == [sentence]


@pytest.mark.parametrize("sentence", CLOSED)
def test_sentences_on_nothing_open(sentence: str) -> None:
    assert list(open_sentences(f"Otters float. {sentence} They eat clams.")) == []


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How do otters sleep?", True), ("Why do otters sleep in kelp?", True),
        ("Does kelp help otters to sleep?", True), ("What is the role of kelp in sleep?", True),
        ("How many otters sleep in kelp?", False), ("When was the sea otter first described?", False),
        ("Who discovered the sea otter?", False), ("What is a raft?", False),
    ],
)  # fmt: skip
def test_only_questions_without_a_value_may_be_open(question: str, expected: bool) -> None:
    assert may_be_open(question) is expected


FILLER = "Otters float on the sea and eat clams all day long. " * 20
ASKED = "Why do otters sleep in rafts of kelp?"
NEAR, FAR = OPEN[2], "It is unclear why glaciers of the alps have become shorter."


def paper(*pages: str, file: str = "otters.pdf") -> tuple[Paper, str]:
    (hit,) = hits_on(*pages, file=file)
    return hit.paper, hit.text


def quoted(question: str, *papers: tuple[Paper, str]) -> list[tuple[str, int, str]]:
    texts = {one.id: text for one, text in papers}
    found = open_questions(question, [one for one, _ in papers], lambda one: texts[one.id], HashingEmbedder(256))
    assert all(texts[quote.paper.id][quote.start : quote.end] == quote.quote for quote in found)
    return [(quote.paper.file, quote.page, quote.quote) for quote in found]


def test_at_most_three_near_questions_are_quoted() -> None:
    assert quoted(ASKED, paper(FILLER, f"They rest. {NEAR} {FAR}")) == [("otters.pdf", 2, NEAR)]
    assert quoted("How many otters sleep in rafts of kelp?", paper(FILLER, NEAR)) == []
    assert quoted(ASKED, paper(FILLER, FAR)) == []
    others = [NEAR.replace("kelp", f"kelp number {n}") for n in range(5)]
    found = quoted(ASKED, paper(FILLER, *others), paper(FILLER, NEAR, NEAR, file="other.pdf"))
    assert len(found) == 3
    assert found[0] == ("other.pdf", 2, NEAR)
    assert len({text for _, _, text in found}) == 3


def test_openings_references_and_split_sentences_are_left_out() -> None:
    assert quoted(ASKED, paper(NEAR, FILLER)) == []  # no sections are known: the beginning
    both, text = paper(FILLER, NEAR)
    at = text.index(NEAR)
    for kind, shown in (("introduction", False), ("abstract", False), ("references", False), ("discussion", True)):
        section = PaperSection(at, at + len(NEAR), 1, "", "Heading", kind)  # type: ignore[arg-type]
        known = replace(both, sections=SectionMap((section,)))
        assert bool(quoted(ASKED, (known, text))) is shown, kind
    split = replace(both.pages, starts=(0, at + len(NEAR) // 2), labels=("", ""))
    assert quoted(ASKED, (replace(both, pages=split), text)) == []


@pytest.mark.parametrize(
    "piece",
    ["role ", "remains ", "further work ", "it is still ", "leave x ", "limitations of this ", "is not yet ", "a" * 9],
)
def test_long_texts_take_no_time(piece: str) -> None:
    assert_linear(lambda size: list(open_sentences((piece * (size // len(piece) + 1))[:size])), 20_000)
    sentence = (piece * 60).strip()[:2000] + ". "
    assert_linear(lambda size: list(open_sentences((sentence * (size // len(sentence) + 1))[:size])), 20_000)
