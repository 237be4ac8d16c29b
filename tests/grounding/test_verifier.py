"""Whether evidence holds a sentence up, with which quotes, and what another paper says against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.grounding.verifier import MEANING, SUPPORT_FOUND, SUPPORT_NAMED, SentenceVerifier, Verdict, citation
from folio.protocols import Embedder
from folio.types import Citation, Evidence, PageMap, Vectors
from tests.helpers.factories import evidence_of, evidence_on, hit_on, hits_on

OTTERS, ICE = "Otters float in rafts of kelp. They eat 25 urchins.", "The glacier is 23 kilometres long. It melts."
LONG = "The glacier is 23 kilometres long."


def verifier_of(
    *texts: str, embedder: Embedder | None = None, title: str = "A Paper", file: str = ""
) -> SentenceVerifier:
    """A verifier of a piece of evidence for each text, each of a paper of its own."""
    evidence = [
        replace(piece, paper=replace(piece.paper, title=title, file=file or piece.paper.file))
        for piece in evidence_on(*texts)
    ]
    return SentenceVerifier(evidence, embedder)


def quotes(verdict: Verdict) -> list[tuple[int, int, str]]:
    return [(c.evidence, c.page, c.quote) for c in verdict.citations]


def score(sentence: str, text: str, embedder: Embedder | None = None, title: str = "A Paper") -> float:
    """How well a text holds a sentence up; 0 where it does not."""
    verdict = verifier_of(text, embedder=embedder, title=title).verify(sentence, (1,))
    return verdict.citations[0].support if verdict.citations else 0.0


# --- Which evidence --------------------------------------------------------------------------------------------------


def test_named_evidence_that_holds_is_cited_with_its_nearest_sentence() -> None:
    verdict = verifier_of(OTTERS, ICE).verify(LONG, (2,))
    assert quotes(verdict) == [(2, 1, LONG)]
    assert verdict.reason == ""
    assert verdict.citations[0].paper.file == "paper2.pdf"


def test_a_wrong_marker_is_moved_to_the_evidence_that_holds() -> None:
    assert quotes(verifier_of(OTTERS, ICE).verify(LONG, (1,))) == [(2, 1, LONG)]


def test_a_missing_marker_is_found_and_the_better_ranked_wins_a_tie() -> None:
    assert quotes(verifier_of(OTTERS, ICE, ICE).verify(LONG, ())) == [(2, 1, LONG)]


def test_of_several_markers_those_that_hold_stay_in_their_order() -> None:
    found = verifier_of(OTTERS, ICE, "The long glacier: the glacier is 23 kilometres long.").verify(LONG, (3, 1, 2))
    assert quotes(found) == [(3, 1, "The long glacier: the glacier is 23 kilometres long."), (2, 1, LONG)]


def test_what_only_two_named_pieces_say_together_is_cited_from_both() -> None:
    verifier = verifier_of("Otters float in rafts of kelp.", "Otters eat 25 urchins each day.", ICE)
    sentence = "Otters float in rafts of kelp and eat 25 urchins each day."
    assert quotes(verifier.verify(sentence, (1, 2))) == [
        (1, 1, "Otters float in rafts of kelp."),
        (2, 1, "Otters eat 25 urchins each day."),
    ]
    assert verifier.verify(sentence, (1,)).citations == ()


def test_evidence_that_was_looked_up_must_hold_better_than_what_was_named() -> None:
    sentence, text = "Otters float in rafts of kelp daily.", OTTERS
    assert SUPPORT_NAMED <= score(sentence, text) < SUPPORT_FOUND
    assert verifier_of(text).verify(sentence, ()).citations == ()
    assert verifier_of(ICE, text).verify(sentence, (1,)).citations == ()


@pytest.mark.parametrize("named", [(), (1,), (2,), (1, 2)])
def test_nothing_is_cited_for_what_nothing_says(named: tuple[int, ...]) -> None:
    verdict = verifier_of(OTTERS, ICE).verify("Paris is the capital of France.", named)
    assert verdict.citations == ()
    assert verdict.reason


def test_without_evidence_there_is_no_support() -> None:
    verifier = SentenceVerifier([], None)
    assert verifier.count == 0
    assert verifier.verify(LONG, ()) == Verdict((), "no evidence says this")
    assert verifier.against(LONG, ()) == ()
    assert not verifier.mentions("Glaciers")


# --- Facts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "text", "reason"),
    [
        ("Otters eat 26 urchins.", "Otters eat 25 urchins.", "the number 26 cannot be found in it"),
        ("Otters eat 2.5 urchins.", "Otters eat 25 urchins.", "the number 2.5 cannot be found in it"),
        ("It is 23 miles long.", "It is 23 kilometres long.", "the unit of 23 mi cannot be found in it"),
        ("All otters live near Alaska.", "All otters live near Norway.", "the name Alaska cannot be found in it"),
        ("We trained GPT-4 on it.", "We trained GPT-3 on it.", "the name GPT-4 cannot be found in it"),
        ("It says “the otters sleep” here.", "It says the otters eat here.", "the words “the otters sleep” cannot be"),
        ("Otters do not float in kelp.", "Otters float in kelp.", "it says the opposite"),
        ("Otters float in kelp.", "Otters do not float in kelp.", "it says the opposite"),
        ("Otters always float in rafts of kelp.", OTTERS, "it does not say “always”"),
        ("Otters have a raft of clams to sell.", OTTERS, "it does not say this"),
        ("Boats always sink.", OTTERS, "it does not say this"),
    ],
)
def test_the_reason_tells_what_is_wrong(sentence: str, text: str, reason: str) -> None:
    verdict = verifier_of(text).verify(sentence, (1,))
    assert verdict.citations == ()
    assert verdict.reason.startswith(reason)


def test_the_reason_is_that_of_the_evidence_that_was_named() -> None:
    verifier = verifier_of("Otters eat 25 urchins.", "Otters do not eat 26 urchins.")
    assert verifier.verify("Otters eat 26 urchins.", (1,)).reason == "the number 26 cannot be found in it"
    assert verifier.verify("Otters eat 26 urchins.", (2,)).reason == "it says the opposite"


def test_a_number_must_be_in_the_quotes_and_not_only_in_the_evidence() -> None:
    text = "Model Otter was trained on the kelp data with great care. Much was said of it. It reached 93.1 percent."
    found = verifier_of(text).verify("Model Otter, trained on the kelp data, reached 93.1 percent.", (1,))
    assert [quote for _, _, quote in quotes(found)] == [
        "Model Otter was trained on the kelp data with great care.",
        "It reached 93.1 percent.",
    ]


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("All otters float.", "Most otters float."),
        ("Every otter floats in kelp.", "An otter floats in kelp."),
        ("Only otters float in kelp.", "Otters float in kelp."),
        ("Otters must float in kelp.", "Otters can float in kelp."),
        ("Otters must have floated in kelp.", "Otters have floated in kelp."),
    ],
)
def test_what_says_more_than_its_source_is_not_held_up(sentence: str, text: str) -> None:
    assert verifier_of(text).verify(sentence, (1,)).citations == ()
    assert score(text, sentence) > 0  # and the other way round it is


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("All otters float in kelp.", "Each otter floats in kelp."),
        ("Otters must float in rafts of kelp and weed.", "Otters need to float in rafts of kelp and weed."),
        ("Otters must float in rafts of kelp and weed.", "Otters have to float in rafts of kelp and weed."),
        ("It floats only in kelp.", "It floats solely in kelp."),
        ("Not only otters float in kelp.", "Otters float in kelp."),
        ("Otters, after all, float in kelp.", "Otters float in kelp."),
    ],
)
def test_what_is_as_strong_in_other_words_is(sentence: str, text: str) -> None:
    assert score(sentence, text) >= SUPPORT_NAMED


# --- How well --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Otters float in rafts of kelp.", OTTERS),
        ("Otters float in\nrafts of kelp", OTTERS),
        ("otters float in rafts of kelp. They eat 25 urchins.", OTTERS),
        ("23 kilometres", ICE),
    ],
)
def test_support_is_1_for_what_stands_there_word_for_word(sentence: str, text: str) -> None:
    assert score(sentence, text) == 1.0


def test_the_order_of_words_counts() -> None:
    text = "The heavy rain caused the great flood of the valley."
    right = score("Heavy rain caused a great flood.", text)
    wrong = score("A great flood caused heavy rain.", text)
    assert right == 1.0
    assert wrong == 0.0
    assert score("A great flood is caused by heavy rain.", text) > 0.0  # turned round twice


def test_support_is_the_share_of_words_and_of_their_order() -> None:
    # otter, float, raft, kelp, daili: 4 of 5 in order
    assert score("Otters float in rafts of kelp daily.", OTTERS) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("The glacier is 23 km long.", ICE),
        ("The valley has an area of 82 km².", "The valley has an area of 82 square kilometres."),
        ("The wave moves at 9.8 m/s.", "The wave moves at 9.8 metres per second."),
        ("The test took two hours.", "The test took 2 h."),
        ("The fur has 155000 hairs.", "The fur has 155,000 hairs."),
        ("It reached 93.1 percent.", "It reached 93.1 %."),
    ],
)
def test_another_form_of_a_unit_or_a_long_number_costs_nothing(sentence: str, text: str) -> None:
    assert score(sentence, text) == pytest.approx(1.0)


def test_a_word_behind_a_number_that_is_no_unit_counts() -> None:
    assert score("Otters eat 25 crabs.", "Otters eat 25 urchins.") == 0.0
    assert score("It grew three times.", "It grew in 3 years.") < 1.0


@pytest.mark.parametrize("file", ["jose.00033.pdf", "ThermoState.pdf"])
def test_a_name_may_stand_in_the_title_or_the_file_name(file: str) -> None:
    title = "" if file.startswith("Thermo") else "ThermoState: A state manager"
    text = "The package uses Pint for the units."
    verifier = verifier_of(text, title=title, file=file)
    (found,) = verifier.verify("ThermoState uses Pint for units.", (1,)).citations
    assert found.quote == text
    assert found.support == pytest.approx(1.0)
    # What it is said to do must stand there, and in this order
    assert verifier.verify("ThermoState measures Pint.", (1,)).citations == ()
    other = verifier_of(text, title="Mikrokosmos")
    assert [c.support for c in other.verify("Mikrokosmos uses Pint.", (1,)).citations] == [pytest.approx(1.0)]
    assert other.verify("Pint uses Mikrokosmos.", (1,)).citations == ()
    assert verifier_of(text, title="Another").verify("ThermoState uses Pint for units.", (1,)).reason == (
        "the name ThermoState cannot be found in it"
    )


def test_a_number_may_not_stand_in_the_title_alone() -> None:
    verifier = verifier_of("The package has rules.", title="On 12 Rules")
    assert verifier.verify("The package has 12 rules.", (1,)).reason == "the number 12 cannot be found in it"


class FixedEmbedder:
    """A working embedder of two directions: texts that speak of these words point one way, all others the other."""

    name = "fixed"
    dimension = 2

    def __init__(self, *words: str) -> None:
        self.words = words
        self.embedded: list[str] = []

    def identity(self) -> dict[str, str]:
        return {"embedder": self.name}

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        near = any(word in text for word in self.words)
        return np.array([1.0, 0.0] if near else [0.0, 1.0], dtype=np.float32)


def test_meaning_counts_where_there_is_an_embedder() -> None:
    sentence = "Otters float in rafts of kelp daily."
    assert score(sentence, OTTERS, FixedEmbedder("kelp")) == pytest.approx((1 - MEANING) * 0.8 + MEANING)
    assert score(sentence, OTTERS, FixedEmbedder("daily")) == 0.0  # 0.64 is not enough
    assert score("Otters float in rafts of kelp.", OTTERS, FixedEmbedder("nothing")) == 1.0


def test_meaning_is_measured_once_and_not_in_vain() -> None:
    embedder = FixedEmbedder("kelp")
    verifier = verifier_of(OTTERS, OTTERS.replace("urchins", "crabs"), ICE, embedder=embedder)
    sentence = "Otters float in rafts of kelp daily."
    assert verifier.verify(sentence, (1, 2)) == verifier.verify(sentence, (1, 2))
    assert embedder.embedded == [sentence, "Otters float in rafts of kelp."]
    verifier.verify("Boats sink in rivers of mud.", ())
    assert len(embedder.embedded) == 2  # no meaning could make up for these words


def test_it_judges_the_same_again() -> None:
    for embedder in (None, FixedEmbedder("kelp")):
        first, second = (verifier_of(OTTERS, ICE, embedder=embedder).verify(OTTERS, (2, 1)) for _ in range(2))
        assert first == second
        assert first.citations


# --- Quotes ----------------------------------------------------------------------------------------------------------


def test_a_merged_sentence_is_quoted_from_each_sentence_that_it_merges() -> None:
    text = "Otters float in rafts of kelp. Much else is known. They eat 25 urchins. It was seen in 1999."
    found = verifier_of(text).verify(
        "Otters float in rafts of kelp, they eat 25 urchins and it was seen in 1999.", (1,)
    )
    assert quotes(found) == [
        (1, 1, "Otters float in rafts of kelp."),
        (1, 1, "They eat 25 urchins."),
        (1, 1, "It was seen in 1999."),
    ]
    assert len({c.support for c in found.citations}) == 1


def test_a_sentence_over_a_pages_end_is_quoted_on_both_pages() -> None:
    verifier = SentenceVerifier(
        evidence_of([hit_on("Otters float in rafts of kelp and they", "eat 25 urchins. More.")]), None
    )
    assert quotes(verifier.verify("Otters float in rafts of kelp and they eat 25 urchins.", (1,))) == [
        (1, 1, "Otters float in rafts of kelp and they"),
        (1, 2, "eat 25 urchins."),
    ]


def test_a_number_is_cited_on_the_page_that_it_is_on_and_not_where_the_rest_is() -> None:
    hit = hit_on("Model Otter was trained on the kelp data with great care.", "It reached 93.1 percent.")
    found = SentenceVerifier(evidence_of([hit]), None).verify(
        "Model Otter, trained on the kelp data, reached 93.1 percent.", (1,)
    )
    assert (1, 2, "It reached 93.1 percent.") in quotes(found)


TABLE = "Scores of the models follow.\n\nModel  F1  Recall\nOtter  93.1  90.0\nSeal  88.0  85.5\n\nThat is all."


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (("Otter", "93.1"), [(1, 1, "Model  F1  Recall"), (1, 1, "Otter  93.1  90.0")]),
        (("Seal", "88.0"), [(1, 1, "Model  F1  Recall"), (1, 1, "Seal  88.0  85.5")]),
        (("Otter", "88.0"), []),
        (("Seal", "93.1"), []),
        (("Ott", "93.1"), []),
    ],
)
def test_a_rows_cells_must_stand_together(cells: tuple[str, str], expected: list[tuple[int, int, str]]) -> None:
    verdict = verifier_of(TABLE).verify(f"Model: {cells[0]}; F1: {cells[1]}", (1,), cells)
    assert quotes(verdict) == expected
    if not expected:
        assert verdict.reason in ("no row of it has these values together", "the name Ott cannot be found in it")


def test_a_row_may_be_a_sentence_of_prose() -> None:
    verifier = verifier_of("The model Otter has an F1 of 93.1 here. The model Seal has an F1 of 88.0 there.")
    found = verifier.verify("Model: Seal; F1: 88.0", (), ("Seal", "88.0"))
    assert quotes(found) == [(1, 1, "The model Seal has an F1 of 88.0 there.")]


def test_a_label_that_is_printed_is_told() -> None:
    (piece,) = evidence_of(hits_on("Otters float.", "They eat."))
    labelled = replace(piece, paper=replace(piece.paper, pages=PageMap(piece.paper.pages.starts, ("iv", ""))))
    assert [(c.page, c.label) for c in (citation(labelled, 0, 13, 1.0), citation(labelled, 15, 24, 1.0))] == [
        (1, "iv"),
        (2, "2"),
    ]


def test_the_citation_of_a_span_is_its_longest_part_on_one_page() -> None:
    (piece,) = evidence_of(hits_on("Otters.", "They float in kelp.", "So."))
    found = citation(piece, 0, len(piece.text), 0.5)
    assert (found.page, found.quote, found.support, found.evidence) == (2, "They float in kelp.", 0.5, 1)
    with pytest.raises(ValueError, match="Broken contract"):
        citation(piece, 7, 9, 0.5)  # white space


WORDS_OF_TEXTS = "The cat Fig. sat. on 3 2. 4.5 mats. Why? not A  b  c 文 Otter\n \n\n • |".split(" ")
TEXTS = st.lists(st.sampled_from(WORDS_OF_TEXTS), min_size=1, max_size=30).map(" ".join).filter(str.strip)


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


@given(evidence_anywhere(), TEXTS)
def test_a_quote_is_a_slice_of_the_page_that_it_claims(piece: Evidence, sentence: str) -> None:
    for said in (sentence, piece.text):
        for found in SentenceVerifier([piece], None).verify(said, (1,)).citations:
            first, last = piece.paper.pages.bounds(found.page, piece.paper.length)
            assert first <= found.start < found.end <= last
            assert piece.start <= found.start < found.end <= piece.end
            assert found.quote == piece.text[found.start - piece.start : found.end - piece.start]
            assert found.quote == found.quote.strip()
            assert 0 < found.support <= 1


# --- Against ---------------------------------------------------------------------------------------------------------


def cited(verifier: SentenceVerifier, sentence: str, number: int) -> tuple[Citation, ...]:
    citations = verifier.verify(sentence, (number,)).citations
    assert [c.evidence for c in citations] == [number]
    return citations


def test_a_paper_with_another_number_is_shown_against_it_from_both_sides() -> None:
    ones, others = "The Aletsch glacier is 23 kilometres long.", "The Aletsch glacier is 20 kilometres long."
    verifier = verifier_of(ones, f"Much is known. {others}", OTTERS)
    for sentence, number, against in ((ones, 1, (2, 1, others)), (others, 2, (1, 1, ones))):
        found = verifier.against(sentence, cited(verifier, sentence, number))
        assert [(c.evidence, c.page, c.quote) for c in found] == [against]
        assert 0 < found[0].support <= 1


def test_a_paper_that_denies_it_is_shown_against_it_from_both_sides() -> None:
    ones, others = "The otters sleep in rafts of kelp.", "The otters do not sleep in rafts of kelp."
    verifier = verifier_of(ones, others)
    assert [c.quote for c in verifier.against(ones, cited(verifier, ones, 1))] == [others]
    assert [c.quote for c in verifier.against(others, cited(verifier, others, 2))] == [ones]


def test_a_paper_does_not_stand_against_itself() -> None:
    text = "The glacier is 23 kilometres long. In 1900 it was so. The glacier is 20 kilometres long."
    (whole,) = evidence_on(text)
    first, second = (replace(whole, number=n, start=a, end=b, text=text[a:b]) for n, a, b in ((1, 0, 34), (2, 54, 88)))
    for verifier in (SentenceVerifier([whole], None), SentenceVerifier([first, second], None)):
        found = verifier.verify("The glacier is 23 kilometres long.", (1,)).citations
        assert found
        assert verifier.against("The glacier is 23 kilometres long.", found) == ()


def test_what_agrees_or_tells_of_something_else_is_not_against_it() -> None:
    verifier = verifier_of(ICE, "The glacier is about 23 km long.", "The river is 40 kilometres deep here.", OTTERS)
    assert verifier.against(LONG, cited(verifier, LONG, 1)) == ()


def test_of_many_that_disagree_the_two_nearest_are_shown() -> None:
    texts = [f"The great glacier of the Alps is {n} kilometres long." for n in (23, 20, 19, 18)]
    verifier = verifier_of(*texts)
    found = verifier.against(texts[0], cited(verifier, texts[0], 1))
    assert [c.evidence for c in found] == [2, 3]


# --- Headings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Rafts of kelp", True),
        ("Glaciers", True),
        ("Otters and the glacier", True),
        ("On Sea Animals", True),  # the title
        ("Otters in Alaska", False),
        ("The 24 urchins", False),
        ("Danger of extinction", False),
    ],
)
def test_mentions(heading: str, expected: bool) -> None:
    assert verifier_of(OTTERS, ICE, title="On Sea Animals").mentions(heading) is expected
