"""Answers in the papers' own sentences, and follow-ups to them; no model writes anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from desk import GLACIERS, OTTERS, answered, even_weights, evidence_of, evidence_on, hit_on, hits_on
from doubles import HashingEmbedder

from folio.extract import ExtractiveAnswerer, leans_back, statements
from folio.protocols import Answerer
from folio.sentences import sentence_spans
from folio.types import Answer, Evidence, PageMap, Sentence, Style

STYLES: tuple[Style, ...] = ("plain", "report")
LENGTH, LONG = "How long is the Aletsch glacier?", "The glacier is 23 kilometres long."
ALETSCH = answered(LENGTH, LONG)
RETREAT = "By how much does the Aletsch glacier retreat each year?"
IS_THICK = "At the Konkordiaplatz the ice of the Aletsch glacier has a thickness of 800 metres."


def extractive() -> ExtractiveAnswerer:
    return ExtractiveAnswerer(HashingEmbedder(256), even_weights, evidence_tokens=6000)


def papers() -> list[Evidence]:
    return evidence_of([hit_on(*OTTERS, file="otters.pdf"), hit_on(*GLACIERS, file="glaciers.pdf")])


def asked(question: str, evidence: Sequence[Evidence], style: Style = "plain") -> list[Sentence]:
    return list(extractive().sentences(question, evidence, style))


def texts(sentences: Sequence[Sentence]) -> list[str]:
    return [sentence.text for sentence in sentences]


# Quotes


def test_sentences_are_quoted_word_for_word_from_their_page() -> None:
    answerer: Answerer = extractive()
    assert (answerer.name, answerer.notice, answerer.evidence_tokens) == ("extractive (built in)", "", 6000)
    evidence = papers()
    (found,) = asked("How thick is the ice of the Aletsch glacier at the Konkordiaplatz?", evidence)
    (citation,) = found.citations
    assert (citation.paper.file, citation.page, citation.evidence) == ("glaciers.pdf", 2, 2)
    assert (found.text, citation.quote, citation.support) == (IS_THICK, IS_THICK, 1.0)
    assert (found.against, found.section) == ((), "")
    assert citation.offsets == (0, len(IS_THICK))
    for sentence in asked("What of the otter, the glacier and the ice?", evidence):
        (citation,) = sentence.citations
        source = evidence[citation.evidence - 1]
        first, last = source.paper.pages.bounds(citation.page, source.paper.length)
        assert first <= citation.start < citation.end <= last
        assert source.text[citation.start : citation.end] == citation.quote
        assert (citation.start, citation.end) in sentence_spans(source.text)


def test_a_line_break_inside_a_quote_is_a_space_in_the_answer() -> None:
    (found,) = asked("Do otters float in rafts?", evidence_on("Sea otters float\nin rafts of kelp."))
    assert found.text == "Sea otters float in rafts of kelp."
    assert found.citations[0].quote == "Sea otters float\nin rafts of kelp."


@pytest.mark.parametrize(
    ("pages", "page", "shown"),
    [
        (("The gauge of the river Massa stands at Blatten,", "built in 1922."), 1, "{} …"),
        (("The gauge of the river Massa", "stands at Blatten, where it was built in 1922."), 2, "… {}"),
    ],
)
def test_a_sentence_over_a_page_end_is_quoted_from_the_page_with_more_of_it(
    pages: tuple[str, str], page: int, shown: str
) -> None:
    text = "\n".join(pages)
    (hit,) = hits_on(text, file="gauge.pdf")
    paper = replace(hit.paper, pages=PageMap((0, len(pages[0]) + 1), ("", "")))
    evidence = Evidence(1, paper, 0, len(text), text, (replace(hit, paper=paper),))
    (found,) = asked("Where does the gauge of the river Massa stand, built in 1922?", [evidence])
    (citation,) = found.citations
    assert (citation.page, citation.quote, citation.offsets) == (page, pages[page - 1], (0, len(citation.quote)))
    assert found.text == shown.format(citation.quote)


def test_the_same_question_has_the_same_answer() -> None:
    for question in ("What does an otter eat?", "What of the glacier and the ice?"):
        for style in STYLES:
            first = asked(question, papers(), style)
            assert first
            assert asked(question, papers(), style) == first


@pytest.mark.parametrize("question", ["Who painted the ceiling of the Sistine chapel?", "xyzzy plugh?", "", "?"])
@pytest.mark.parametrize("style", STYLES)
def test_where_nothing_fits_there_is_no_sentence(question: str, style: Style) -> None:
    assert asked(question, papers(), style) == []


def test_without_evidence_or_sentences_there_is_none_either() -> None:
    assert asked("What do otters eat?", []) == []
    assert asked("What do otters eat?", evidence_on("Otters\n\nEat", "1 2 3")) == []


def test_the_same_sentence_in_two_papers_is_told_once() -> None:
    evidence = evidence_of([hit_on(OTTERS[0], file="a.pdf"), hit_on(OTTERS[0], file="b.pdf")])
    found = asked("How do sea otters sleep and float in rafts of kelp?", evidence)
    assert [sentence.citations[0].paper.file for sentence in found] == ["a.pdf"]
    assert found[0].against == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 Otters\nSea otters float in rafts of kelp.", ["2 Otters\nSea otters float in rafts of kelp."]),
        ("Otters of the sea\n\nSea otters float in rafts.", ["Sea otters float in rafts."]),  # no heading
        ("It has these parts of note:\n• the long and winding tongue",
         ["It has these parts of note:\n• the long and winding tongue"]),
        ("The gauge of the Massa . . . . . . . . 12.", []),  # a line of a table of contents
        ("Too short this.", []),
    ],
)  # fmt: skip
def test_what_can_be_quoted_as_an_answer(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in statements(text)] == expected


def test_the_score_is_bounded() -> None:
    scored = extractive()._score("What do sea otters eat?", papers())
    assert all(-0.5 <= sentence.score <= 1 + 1e-6 and math.isfinite(sentence.score) for sentence in scored)
    assert [s.score for s in scored] == sorted((s.score for s in scored), reverse=True)


# Two papers that do not agree

FORTY, FIFTY = (
    "The Aletsch glacier retreats by 40 metres each year.",
    "Each year the Aletsch glacier retreats by 50 metres.",
)


@pytest.mark.parametrize("style", STYLES)
def test_another_number_in_another_paper_is_shown_beside_the_first(style: Style) -> None:
    found = asked(RETREAT, evidence_on(f"{FORTY} It is long.", f"{FIFTY} Ice melts in the summer sun."), style)
    assert texts(found) == [FORTY]
    (against,) = found[0].against
    assert (against.paper.file, against.page, against.quote, against.evidence) == ("paper2.pdf", 1, FIFTY, 2)
    assert 0 < against.support <= 1


def test_the_same_number_or_another_thing_does_not_disagree() -> None:
    rhone = "The Rhone glacier retreats by 30 metres each year."
    assert [sentence.against for sentence in asked(RETREAT, evidence_on(FORTY, rhone))] == [()]
    again = "Each year the Aletsch glacier retreats by 40 metres."
    assert [(s.text, s.against) for s in asked(RETREAT, evidence_on(FORTY, again))] == [(FORTY, ())]


def test_one_paper_does_not_disagree_with_itself() -> None:
    found = asked(RETREAT, evidence_on(f"{FORTY} {FIFTY}"))
    assert (texts(found), [sentence.against for sentence in found]) == ([FORTY, FIFTY], [(), ()])


# Reports


def test_a_report_sums_up_and_then_tells_by_paper() -> None:
    ice = hits_on(*GLACIERS, file="glaciers.pdf", title="The Aletsch Glacier")
    sea = hits_on("The ice of the sea is no glacier, and thinner.", file="sea.pdf", title="")
    found = asked("What of the glacier and the ice?", evidence_of([*sea, *ice]), "report")
    assert [(sentence.section, sentence.citations[0].page, sentence.text) for sentence in found] == [
        ("Summary", 1, "The ice of the sea is no glacier, and thinner."),
        ("Summary", 2, IS_THICK),
        ("Analysis/The Aletsch Glacier", 1, "The Aletsch glacier is the largest glacier of the Alps."),
        ("Analysis/The Aletsch Glacier", 1,
         "The Aletsch glacier has a length of 23 kilometres and covers 82 square kilometres of the Bernese Alps."),
        ("Analysis/The Aletsch Glacier", 2,
         "The tongue of the glacier retreats by 40 metres each year, and the loss has become faster since 1980."),
    ]  # fmt: skip
    assert [s.text for s in found if s.section == "Summary"] == texts(
        asked("What of the glacier and the ice?", evidence_of([*sea, *ice]))
    )


def test_the_pieces_of_one_paper_are_told_under_one_heading_in_its_order() -> None:
    pages = (
        "The ice of the Aletsch glacier is thick. " + "Nobody knows why that should be so. " * 3,
        "The ice of the Aletsch glacier is blue in deep cracks, so people say. " + "Nobody knows why that should be. ",
        "The ice of the Aletsch glacier flows to the valley of the river Rhone. " + "Nobody knows when it began. ",
    )
    starts = [0, len(pages[0]) + 2, len(pages[0]) + len(pages[1]) + 4]
    (whole,) = hits_on(*pages, file="ice.pdf", title="Ice")
    (between,) = hits_on("The ice of the Aletsch glacier was the goal of early climbers.", file="b.pdf", title="Climbs")
    parts = [
        Evidence(number, whole.paper, starts[page], starts[page] + len(pages[page]), pages[page], (whole,))
        for number, page in ((1, 2), (3, 0), (4, 1))
    ]
    (other,) = evidence_of([between])
    other = Evidence(2, other.paper, other.start, other.end, other.text, other.hits)
    found = asked("What of the ice of the Aletsch glacier?", [parts[0], other, *parts[1:]], "report")
    details = [(s.section, s.citations[0].page) for s in found if s.section != "Summary"]
    for section in {section for section, _ in details}:
        places = [number for number, (name, _) in enumerate(details) if name == section]
        assert places == list(range(places[0], places[-1] + 1))
        pages_told = [page for name, page in details if name == section]
        assert pages_told == sorted(pages_told)


def test_a_paper_without_a_title_is_headed_by_its_file() -> None:
    evidence = evidence_of(hits_on(*GLACIERS, file="alps/glaciers.pdf", title=""))
    found = asked("What of the glacier and the ice?", evidence, "report")
    assert {sentence.section for sentence in found} == {"Summary", "Analysis/alps/glaciers.pdf"}


# Follow-ups


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # Points back
        ("How thick is it?", True),
        ("And its tongue?", True),
        ("What are they made of?", True),
        ("What about glaciers in Norway?", True),
        ("Why is that the case for glaciers?", True),
        ("Does the same hold for the Rhone glacier?", True),
        ("Which one is the largest in the Alps?", True),
        ("Who measured the ice there in winter?", True),
        ("But how thick was the ice in 1980?", True),
        ("Are such glaciers common in Norway?", True),
        ("Please explain the fifth one in detail", True),
        ("Explain number 3 in detail", True),
        # Names hardly anything
        ("Why?", True),
        ("How thick?", True),
        ("Tell me more", True),
        # Stands alone
        ("How thick is the Aletsch glacier?", False),
        ("Why do glaciers retreat faster each year?", False),
        ("Is there a gauge at the river Massa?", False),
        ("Which animals such as otters use stones as tools?", False),
        ("What is a one-time pad in cryptography?", False),
        ("Where was the gauge of the river Massa built?", False),
        ("Does butter melt faster than ice on a glacier?", False),  # no "but", no "it" inside a word
        ("What is the first step of key generation in a lattice scheme?", False),
        ("What does sentence 5 of the Antarctic treaty rule on mining?", False),
    ],
)
def test_leans_back(question: str, expected: bool) -> None:
    assert leans_back(question) is expected


def test_a_follow_up_is_joined_to_the_last_question_that_stood_alone() -> None:
    answerer = extractive()
    assert answerer.standalone("How thick is it?", []) == "How thick is it?"
    assert answerer.standalone("How thick is it?", [ALETSCH]) == f"{LENGTH} How thick is it?"
    between = answered("And its tongue?", "It retreats.")
    assert answerer.standalone("How thick is it?", [ALETSCH, between]) == f"{LENGTH} How thick is it?"
    assert answerer.standalone("Why?", [between]) == "And its tongue? Why?"
    alone = "What do sea otters eat each day?"
    assert answerer.standalone(alone, [ALETSCH]) == alone


REFUSED = answered("What do we know about glaciers of the Alps?")
LISTS = answered("What does it eat?", "The diet of the sea otter is made of urchins, clams and crabs.")
THREE = answered(
    "What do we know about glaciers of the Alps?",
    "The tongue retreats each year.",
    "The gauge of the river Massa stands at Blatten and was built there by the people of the valley.",
    "The ice is thick.",
)


@pytest.mark.parametrize(
    ("question", "last", "expected"),
    [
        # Items of a list in one sentence
        ("Explain the second one.", LISTS, "Explain clams."),
        ("How large is the third of them?", LISTS, "How large is crabs?"),
        ("What about number 1?", LISTS, "What about urchins?"),
        ("And the last one?", LISTS, "And crabs?"),
        # Sentences of an answer: a short one takes the place of its number, a long one is joined
        ("Explain the first one.", THREE, "Explain The tongue retreats each year."),
        ("Explain the 2nd one.", THREE, f"Explain the 2nd one. {THREE.sentences[1].text}"),
        ("Explain sentence 3", THREE, "Explain The ice is thick"),
        ("Tell me more about the last point", THREE, "Tell me more about The ice is thick"),
        # What is not there: joined to the question before
        ("Explain the fifth one.", LISTS, f"{LENGTH} Explain the fifth one."),
        ("Explain number 0", THREE, f"{THREE.question} Explain number 0"),
        ("Explain item 12", THREE, f"{THREE.question} Explain item 12"),
        ("Explain the second one.", REFUSED, f"{REFUSED.question} Explain the second one."),
        # What counts something else
        ("What is the second step of key generation in a lattice scheme?", THREE,
         "What is the second step of key generation in a lattice scheme?"),
    ],
)  # fmt: skip
def test_what_is_counted_off_is_filled_in(question: str, last: Answer, expected: str) -> None:
    assert extractive().standalone(question, [ALETSCH, last]) == expected
