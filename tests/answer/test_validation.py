"""What an answer may say: sentences that cite, those rejected, refusals, repetition, the sections of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer.validation import MOST_REPEATS, ValidationResult
from folio.answer_types import REFUSAL, Evidence, RejectedSentence, Sentence
from tests.helpers.factories import evidence_of, evidence_on, hit_on, to_the_end
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


def test_check_shows_what_is_supported_and_rejects_the_rest_with_the_reason() -> None:
    text = "Otters float in rafts of kelp [1]. Paris is in France [2]. The glacier is 23 kilometres long. [2]"
    found, result = checked(words(text), *evidence_on(OTTERS, ICE))
    rejected = RejectedSentence("Paris is in France.", "no evidence says this", "not found")
    first, second, third = found
    assert isinstance(first, Sentence)
    assert isinstance(third, Sentence)
    assert [(c.evidence, c.page, c.quote) for c in first.citations] == [(1, 1, "Otters float in rafts of kelp.")]
    assert second == rejected
    assert [(c.evidence, c.page, c.quote) for c in third.citations] == [(2, 1, "The glacier is 23 kilometres long.")]
    assert result == ValidationResult(shown=2, rejected=(rejected,), refused=False, partly_refused=False)


def test_a_marker_is_never_shown_and_never_believed() -> None:
    found, _ = checked(["The glacier is 23 kilometres long [1] [p. 99]."], *evidence_on(OTTERS, ICE))
    assert [(part.text, [c.evidence for c in part.citations]) for part in found if isinstance(part, Sentence)] == [
        ("The glacier is 23 kilometres long.", [2])
    ]


def test_what_disagrees_is_shown_beside_it() -> None:
    ones = ICE.replace("The glacier", "The Aletsch glacier")
    evidence = evidence_on(ones, ones.replace("23", "20"))
    (found,), _ = checked(["The Aletsch glacier is 23 kilometres long [1]."], *evidence)
    assert isinstance(found, Sentence)
    assert [c.quote for c in found.citations] == ["The Aletsch glacier is 23 kilometres long."]
    assert [(c.evidence, c.quote) for c in found.against] == [(2, "The Aletsch glacier is 20 kilometres long.")]


def test_check_goes_no_further_than_it_is_asked() -> None:
    pieces = ["Otters float in kelp [1]. ", "They eat 25 urchins [1]. ", "The end."]
    taken = []

    def source() -> Iterator[str]:
        for piece in pieces:
            taken.append(piece)
            yield piece

    first = next(check(source(), evidence_on(OTTERS)))
    assert first.text == "Otters float in kelp."
    assert taken == pieces[:2]


# --- Refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        REFUSAL,
        f"{REFUSAL} Otters float in rafts of kelp [1].",
        f"{REFUSAL} [1]",
        f"**{REFUSAL}**",
        f"# {REFUSAL}",
        "The evidence does not say how old otters get.",
        "I could not find this in the sources. Otters float in rafts of kelp [1].",
    ],
)
def test_a_refusal_ends_it(text: str) -> None:
    assert checked(words(text), *evidence_on(OTTERS)) == (
        [],
        ValidationResult(0, (), refused=True, partly_refused=False),
    )


def test_nothing_said_is_no_refusal() -> None:
    assert checked([], *evidence_on(OTTERS)) == ([], ValidationResult(0, (), refused=False, partly_refused=False))
    assert checked([" ", "\n"], *evidence_on(OTTERS)) == (
        [],
        ValidationResult(0, (), refused=False, partly_refused=False),
    )


def test_a_refusal_behind_an_answer_ends_it_too() -> None:
    text = f"Otters float in rafts of kelp [1]. {REFUSAL} They eat 25 urchins [1]."
    found, result = checked(words(text), *evidence_on(OTTERS))
    assert [part.text for part in found] == ["Otters float in rafts of kelp."]
    assert result == ValidationResult(1, (), refused=False, partly_refused=True)


def test_a_refusal_of_a_part_of_the_question_does_not_end_it() -> None:
    text = "Otters float in rafts of kelp [1]. The evidence does not say how old they get. They eat 25 urchins [1]."
    found, result = checked(words(text), *evidence_on(OTTERS))
    assert [part.text for part in found] == ["Otters float in rafts of kelp.", "They eat 25 urchins."]
    assert result == ValidationResult(2, (), refused=False, partly_refused=True)


def test_what_sounds_like_a_refusal_but_stands_in_a_paper_is_an_answer() -> None:
    text = "The authors could not find urchins. The price is not given."
    assert shown("The price is not given [1].", text) == ["The price is not given."]


def test_what_names_evidence_and_is_not_borne_out_is_rejected_and_no_refusal() -> None:
    text = "The source code is not available [1]. Otters float in rafts of kelp [1]."
    assert shown(text, OTTERS) == ["Otters float in rafts of kelp."]


def test_a_sentence_rejected_before_a_refusal_is_told() -> None:
    found, result = checked([f"Otters eat 26 urchins [1]. {REFUSAL}"], *evidence_on(OTTERS))
    rejected = RejectedSentence("Otters eat 26 urchins.", "the number 26 cannot be found in it", "number")
    assert found == [rejected]
    assert result == ValidationResult(0, (rejected,), refused=True, partly_refused=False)


# --- Ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sentence", ["Otters float in kelp [1]. ", "Paris is big. "])
def test_a_model_that_only_repeats_itself_is_not_waited_for(sentence: str) -> None:
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


def test_a_model_that_repeats_itself_between_new_sentences_is_waited_for() -> None:
    facts = [f"Otter {number} eats urchins." for number in range(1, 9)]
    text = " ".join(f"{fact} {facts[0]}" for fact in facts)
    assert shown(text, " ".join(facts)) == facts


def test_it_takes_no_more_than_the_longest() -> None:
    text = "Otters float in rafts of kelp [1]. They eat 25 urchins [1]. It is so."
    assert shown(text, OTTERS, max_chars=len(text)) == ["Otters float in rafts of kelp.", "They eat 25 urchins."]
    assert shown(text, OTTERS, max_chars=45) == ["Otters float in rafts of kelp."]


def test_what_was_cut_off_is_no_sentence() -> None:
    text = "Otters float in rafts of kelp [1]. They eat 25 urchins"
    assert shown(text, OTTERS) == ["Otters float in rafts of kelp.", "They eat 25 urchins"]
    assert shown(text, OTTERS, whole=False) == ["Otters float in rafts of kelp."]


# --- Reports ---------------------------------------------------------------------------------------------------------

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


def test_a_report_has_its_sections_and_no_heading_that_the_evidence_does_not_mention() -> None:
    found, result = checked(words(REPORT), *evidence_on(OTTERS, ICE), style="report")
    assert [(part.text, str(part.section)) for part in found if isinstance(part, Sentence)] == [
        ("Otters float in rafts of kelp.", "Summary"),
        ("They eat 25 urchins.", "Analysis"),
        ("The glacier is 23 kilometres long.", "Analysis/The glacier"),
        ("It melts.", "Analysis"),
    ]
    assert result == ValidationResult(4, (), refused=False, partly_refused=False)


def test_what_comes_before_the_first_heading_of_a_report_is_its_summary() -> None:
    found, _ = checked(["Otters float in rafts of kelp [1]."], *evidence_on(OTTERS), style="report")
    assert [str(part.section) for part in found if isinstance(part, Sentence)] == ["Summary"]


def test_the_analysis_of_a_report_may_say_again_what_its_summary_says() -> None:
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
        ("**Executive Summary**", "Summary"),
        ("## Key findings:", "Summary"),
        ("## Discussion", "Analysis"),
        ("## Urchins", "Analysis/Urchins"),
        ("## 26 urchins", "Analysis"),
        ("## The bad Otters of Alaska", "Analysis"),
    ],
)
def test_headings_of_a_report(heading: str, section: str) -> None:
    text = f"# Analysis\nOtters float in rafts of kelp [1].\n\n{heading}\nThey eat 25 urchins [1]."
    found, _ = checked(words(text), *evidence_on(OTTERS), style="report")
    assert [str(part.section) for part in found if isinstance(part, Sentence)] == ["Analysis", section]


@pytest.mark.parametrize("heading", ["# References", "**Sources:**", "## List of references", "## Bibliography"])
def test_a_list_of_references_is_not_taken_from_a_model(heading: str) -> None:
    text = f"Otters float in rafts of kelp [1].\n\n{heading}\nThey eat 25 urchins [1]."
    found, _ = checked(words(text), *evidence_on(OTTERS), style="report")
    assert [part.text for part in found] == ["Otters float in rafts of kelp."]


def test_a_plain_answer_has_no_sections() -> None:
    found, _ = checked(words(REPORT), *evidence_on(OTTERS, ICE))
    assert {str(part.section) for part in found if isinstance(part, Sentence)} == {""}
    assert [part.text for part in found][:4] == [
        "Otters float in rafts of kelp.",
        "They eat 25 urchins.",
        "The glacier is 23 kilometres long.",
        "It melts.",
    ]


# --- Whatever comes --------------------------------------------------------------------------------------------------

PIECES = [
    *f"{OTTERS} {ICE}".split(" "),
    "[1]",
    "[2].",
    "[9]",
    "not",
    "26",
    "\n\n",
    "# The",
    "| a | b |\n",
    "- ",
    "```\n",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join) | st.text(max_size=60)


@given(TEXTS, st.sampled_from(["plain", "report"]))
def test_whatever_a_model_writes_each_sentence_shown_cites_a_quote_of_its_page(text: str, style: str) -> None:
    evidence = evidence_of([hit_on(OTTERS, ICE), hit_on(ICE, file="other.pdf")])
    found, result = checked([text], *evidence, style=style)
    for part in found:
        assert part.text.strip()
        if isinstance(part, Sentence):
            assert part.citations
            for citation in (*part.citations, *part.against):
                piece = evidence[citation.evidence - 1]
                assert piece.paper == citation.paper
                assert citation.quote == piece.text[citation.start - piece.start : citation.end - piece.start]
        else:
            assert part.reason
    assert result.shown == sum(isinstance(part, Sentence) for part in found)
    assert checked(list(text), *evidence, style=style) == (found, result)
