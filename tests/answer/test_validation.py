"""The statements of an answer: cited, rejected, refused, repeated; the sections of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from folio.answer.validation import MOST_REPEATS, ValidationResult
from folio.answer_types import REFUSAL, Evidence, RejectedSentence, Sentence
from tests.helpers.factories import evidence_on, to_the_end
from tests.helpers.validation import check

pytestmark = pytest.mark.fast

OTTERS, ICE = "Otters float in rafts of kelp. They eat 25 urchins.", "The glacier is 23 kilometres long. It melts."


def checked(
    pieces: Iterable[str], *evidence: Evidence, **options: Any
) -> tuple[list[Sentence | RejectedSentence], ValidationResult]:
    """All that check makes of a model's words, and the result."""
    return to_the_end(check(pieces, evidence, **options))


def words(text: str) -> list[str]:
    """A text as it comes, word by word."""
    return text.replace(" ", " \0").split("\0")


def shown(text: str, *texts: str, **options: Any) -> list[str]:
    """The sentences that check shows of a text that comes word by word."""
    found, result = checked(words(text), *evidence_on(*texts), **options)
    sentences = [part.text for part in found if isinstance(part, Sentence)]
    assert result.shown == len(sentences)
    assert result.rejected == tuple(part for part in found if isinstance(part, RejectedSentence))
    return sentences


def test_unsupported_sentences_are_rejected_with_a_reason() -> None:
    text = "Otters float in rafts of kelp [1]. Paris is in France [2]. The glacier is 23 kilometres long. [1] [p. 99]"
    found, result = checked(words(text), *evidence_on(OTTERS, ICE))
    rejected = RejectedSentence("Paris is in France.", "no evidence says this", "not found")
    cited = [[(c.evidence, c.page, c.quote) for c in part.citations] for part in found if isinstance(part, Sentence)]
    # A marker is never shown and never believed: the glacier is in the second text
    assert cited == [[(1, 1, "Otters float in rafts of kelp.")], [(2, 1, "The glacier is 23 kilometres long.")]]
    assert [part.text for part in found] == [cited[0][0][2], rejected.text, cited[1][0][2]]
    told = ValidationResult(2, (rejected,), refused=False, partly_refused=False)
    assert (found[1], result) == (rejected, told)


def test_check_reads_lazily() -> None:
    pieces = ["Otters float in kelp [1]. ", "They eat 25 urchins [1]. ", "The end."]
    taken = []

    def source() -> Iterator[str]:
        for piece in pieces:
            taken.append(piece)
            yield piece

    first = next(check(source(), evidence_on(OTTERS)))
    assert first.text == "Otters float in rafts of kelp."
    assert taken == pieces[:2]


FLOAT, EAT = "Otters float in rafts of kelp.", "They eat 25 urchins."
SAID = "Otters float in rafts of kelp [1]. {} They eat 25 urchins [1]."
PRICES = "The authors could not find urchins. The price is not given."


@pytest.mark.parametrize(
    ("text", "source", "said", "refused", "partly"),
    [
        # A refusal ends it
        *((text, OTTERS, [], True, False) for text in (
            REFUSAL, f"{REFUSAL} Otters float in kelp [1].", f"{REFUSAL} [1]", f"**{REFUSAL}**", f"# {REFUSAL}",
            "The evidence does not say how old otters get.",
            "I could not find this in the sources. Otters float in rafts of kelp [1].",
        )),
        (f"Otters eat 26 urchins [1]. {REFUSAL}", OTTERS, [], True, False),
        (SAID.format(REFUSAL), OTTERS, [FLOAT], False, True),
        # One of a part of the question does not
        (SAID.format("The evidence does not say how old they get."), OTTERS, [FLOAT, EAT], False, True),
        # Nothing, what a paper says so, and what no paper bears out are none
        ("", OTTERS, [], False, False),
        (" \n", OTTERS, [], False, False),
        ("The price is not given [1].", PRICES, ["The price is not given."], False, False),
        ("The source code is not available [1]. Otters float in rafts of kelp [1].", OTTERS, [FLOAT], False, False),
    ],
)  # fmt: skip
def test_a_refusal_ends_an_answer(text: str, source: str, said: list[str], refused: bool, partly: bool) -> None:
    found, result = checked(words(text), *evidence_on(source))
    assert [part.text for part in found if isinstance(part, Sentence)] == said
    rejected = tuple(part for part in found if isinstance(part, RejectedSentence))
    own = refused and REFUSAL not in text
    assert result == ValidationResult(len(said), rejected, refused=refused, partly_refused=partly, in_own_words=own)
    if "26" in text:
        assert rejected == (
            RejectedSentence("Otters eat 26 urchins.", "the number 26 cannot be found in it", "number"),
        )


@pytest.mark.parametrize(
    ("end", "options", "eats"),
    [
        ("[1]. It is so.", {"max_chars": 69}, [EAT]), ("[1]. It is so.", {"max_chars": 45}, []),
        ("", {}, [EAT]), ("", {"whole": False}, []),  # what was cut off is no sentence
    ],
)  # fmt: skip
def test_an_answer_ends_where_it_is_cut(end: str, options: dict[str, Any], eats: list[str]) -> None:
    text = f"Otters float in rafts of kelp [1]. They eat 25 urchins {end}".strip()
    assert shown(text, OTTERS, **options) == [FLOAT, *eats]


@pytest.mark.parametrize("sentence", ["Otters float in kelp [1]. ", "Paris is big. "])
def test_a_model_that_only_repeats_itself_is_stopped(sentence: str) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield sentence

    found, result = checked(endless(), *evidence_on(OTTERS))
    assert len(found) == 1
    assert result.shown + len(result.rejected) == 1
    assert taken == 2 + MOST_REPEATS  # the first, those, and the one that shows that the last is whole


def test_occasional_repetitions_are_allowed() -> None:
    facts = [f"Otter {number} eats urchins." for number in range(1, 9)]
    text = " ".join(f"{fact} {facts[0]}" for fact in facts)
    assert shown(text, " ".join(facts)) == facts


def test_a_sentence_that_statements_are_near_is_shown_once_and_marked() -> None:
    page = "No trial showed that the drug cures the disease or eases the pain of the patients. It is old."
    text = "The drug cures the disease [1]. The drug eases the pain of the patients [1]. Paris is big."
    found, result = checked(words(text), *evidence_on(page))
    (quote, rejected) = found
    assert isinstance(quote, Sentence)
    assert (quote.text, quote.outcome, quote.instead_of) == (page.removesuffix(" It is old."), "quoted", "")
    assert [quote.text[start:end] for start, end in quote.marks] == ["drug cures the disease"]
    assert [(each.quote, each.support) for each in quote.citations] == [(quote.text, 1)]
    assert (result.shown, result.rejected) == (1, (rejected,))


def test_a_list_is_introduced_once() -> None:
    page = "These were excluded:\n\n- patients under 18 years\n- smokers of any age\n\nIt rained on the tents."
    text = "Patients under 18 years. Smokers of any age. It rained on the tents. Smokers of any age."
    lines = ["These were excluded:\n- patients under 18 years", "- smokers of any age", "It rained on the tents."]
    assert shown(text, page) == lines


REPORT = """# Summary
Otters float in rafts of kelp [1].

## Detailed Analysis
They eat 25 urchins [1].

### The glacier
The glacier is 23 kilometres long [2].

### Danger of extinction
It melts [2].

## References
- Otters float in kelp [1].
"""


def test_a_heading_that_the_evidence_lacks_is_dropped() -> None:
    found, result = checked(words(REPORT), *evidence_on(OTTERS, ICE), style="report")
    assert [(part.text, str(part.section)) for part in found if isinstance(part, Sentence)] == [
        ("Otters float in rafts of kelp.", "Summary"),
        ("They eat 25 urchins.", "Analysis"),
        ("The glacier is 23 kilometres long.", "Analysis/The glacier"),
        ("It melts.", "Analysis"),
    ]
    assert result == ValidationResult(4, (), refused=False, partly_refused=False, reworded=True)


def test_an_analysis_may_repeat_the_summary() -> None:
    facts = [f"Otter {number} eats urchins." for number in range(1, 7)]
    again = "\n".join(f"- {fact}" for fact in [*facts, "Paris is big."])
    text = f"# Summary\n{again}\n\n# Analysis\n{again}\n\n## Urchins\n{facts[0]} Urchins are small.\n"
    found, result = checked(words(text), *evidence_on(" ".join([*facts, "Urchins are small."])), style="report")
    assert [(part.text, str(part.section)) for part in found if isinstance(part, Sentence)] == [
        *((fact, "Summary") for fact in facts),
        *((fact, "Analysis") for fact in facts),
        ("Urchins are small.", "Analysis/Urchins"),
    ]
    assert [part.text for part in result.rejected] == ["Paris is big."]
    assert sum(isinstance(part, RejectedSentence) for part in found) == 1


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("**Executive Summary**", "Summary"), ("## Key findings:", "Summary"), ("## Discussion", "Analysis"),
        ("## Urchins", "Analysis/Urchins"), ("## 26 urchins", "Analysis"), ("## The bad Otters of Alaska", "Analysis"),
        # A list of references is not taken from a model
        ("# References", None), ("**Sources:**", None), ("## List of references", None), ("## Bibliography", None),
    ],
)  # fmt: skip
def test_headings_of_a_report(heading: str, section: str | None) -> None:
    before, first = ("# Analysis\n", "Analysis") if section else ("", "Summary")
    text = f"{before}Otters float in rafts of kelp [1].\n\n{heading}\nThey eat 25 urchins [1]."
    found, _ = checked(words(text), *evidence_on(OTTERS), style="report")
    places = [str(part.section) for part in found if isinstance(part, Sentence)]
    assert places == [first, *([section] if section else [])]


def test_a_plain_answer_has_no_sections() -> None:
    found, _ = checked(words(REPORT), *evidence_on(OTTERS, ICE))
    assert {str(part.section) for part in found if isinstance(part, Sentence)} == {""}
    assert [part.text for part in found][:4] == [FLOAT, EAT, "The glacier is 23 kilometres long.", "It melts."]
