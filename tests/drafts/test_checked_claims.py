"""A claim is checked against the papers that it cites, or against the library, and a verifier may only say no."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from folio.drafts.claims import LONGEST_CLAIM, ClaimChecker
from folio.errors import UsageError
from folio.papers.model import Paper
from folio.protocols import Claim, Entailment, PromptStart, Verifier
from folio.schema.drafts import CheckedClaimJson, checked_claim_json
from tests.helpers.factories import shelf

LENGTH = "The Aletsch glacier has a length of 23 km."


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaimChecker]:
    app = shelf(tmp_path_factory.mktemp("shelf"))
    with closing(app.open_library()) as library:
        yield app.claim_checker(library)


def paper(checker: ClaimChecker, file: str) -> Paper:
    return next(paper for paper in checker.library.papers() if paper.file == file)


def test_a_claim_is_found_in_the_library_with_its_quote_page_and_offsets(checker: ClaimChecker) -> None:
    checked = checker.check(LENGTH)
    (cited,) = checked.citations
    assert (checked.verdict, checked.reason, checked.papers) == ("supported", "", ())
    assert (cited.paper.file, cited.page) == ("glaciers.pdf", 1)
    text = checker.library.text(cited.paper.id, *cited.span)
    assert text == cited.quote
    assert text.startswith("The Aletsch glacier has a length of 23 kilometres and")


def test_a_claim_is_checked_against_the_papers_that_it_cites_alone(checker: ClaimChecker) -> None:
    otters, glaciers = paper(checker, "otters.pdf"), paper(checker, "glaciers.pdf")
    assert checker.check(LENGTH, [glaciers]).verdict == "supported"
    assert checker.check(LENGTH, [otters]).verdict == "not found"
    assert checker.check(LENGTH, [otters, glaciers]).citations[0].paper == glaciers
    other = checker.check("The Aletsch glacier has a length of 32 km.", [glaciers])
    assert (other.verdict, other.reason) == ("number differs", "the paper has 23, not 32")


def test_a_quotation_that_the_paper_does_not_have_is_named(checker: ClaimChecker) -> None:
    glaciers = paper(checker, "glaciers.pdf")
    for words in ('They write that it "has a height of 23 km" there.', "It “covers 82 miles” of the mountains."):
        checked = checker.check(words, [glaciers])
        assert (checked.verdict, checked.fault.rule if checked.fault else "") == ("not found", "quotation")
        assert checked.reason.startswith("the paper does not have the words “")
    right = checker.check('They write that it "has a length of 23 kilometres" there.', [glaciers])
    assert right.fault is None or right.fault.rule != "quotation"


def test_markers_of_citations_are_no_part_of_a_claim(checker: ClaimChecker) -> None:
    for marked in (r"~\cite[p.~4]{ice2020}", " [@ice2020, p. 4]", " [12, 14]", " (Funk et al., 2020)"):
        checked = checker.check(f"{LENGTH[:-1]}{marked}.")
        assert checked.claim == LENGTH
        assert checked.verdict == "supported"


@pytest.mark.parametrize("claim", ["", "  ", r"\cite{a}", "word " * LONGEST_CLAIM])
def test_no_sentence_and_one_that_is_too_long_are_refused(checker: ClaimChecker, claim: str) -> None:
    with pytest.raises(UsageError):
        checker.check(claim)


class Saying:
    """A verifier that has one verdict on everything, and remembers what it read."""

    name = "saying"

    def __init__(self, verdict: Entailment) -> None:
        self.verdict, self.read = verdict, list[Claim]()

    def is_judge(self) -> bool:
        return True

    def for_answer(self, start: PromptStart) -> Verifier:
        return self

    def entails(self, claims: Sequence[Claim]) -> Iterator[Entailment]:
        for claim in claims:
            self.read.append(claim)
            yield self.verdict


@pytest.mark.parametrize(
    ("verdict", "expected", "by"),
    [
        (Entailment(0.9), "supported", "saying"), (Entailment(None), "supported", ""),
        (Entailment(0.2), "not found", ""), (Entailment(0.1, contradicts=0.8), "contradicted", ""),
    ],
)  # fmt: skip
def test_a_verifier_takes_support_away(checker: ClaimChecker, verdict: Entailment, expected: str, by: str) -> None:
    verifier = Saying(verdict)
    checked = replace(checker, verifier=verifier).check(LENGTH)
    assert (checked.verdict, checked.verified_by) == (expected, by)
    assert [claim.statement for claim in verifier.read] == [LENGTH]
    assert "length of 23 kilometres" in verifier.read[0].premise


def test_a_verifier_gives_support_to_other_words_alone(checker: ClaimChecker) -> None:
    agreeing = replace(checker, verifier=Saying(Entailment(1.0)))
    meant = agreeing.check("Sea otters float asleep, belly up, amid seaweed.")
    assert (meant.verdict, meant.verified_by, meant.citations[0].paper.file) == ("supported", "saying", "otters.pdf")
    doubting = replace(checker, verifier=Saying(Entailment(0.8)))
    assert doubting.check("Sea otters float asleep, belly up, amid seaweed.").verdict == "not found"
    assert agreeing.check("The Aletsch glacier has a length of 32 km.").verdict == "number differs"
    assert agreeing.check("The Aletsch glacier is shrinking because of soot.").verdict == "not found"


def test_a_checked_claim_fits_its_schema(checker: ClaimChecker) -> None:
    schema = CheckedClaimJson.model_json_schema(mode="serialization")
    for claim in (LENGTH, "The moon is made of green cheese.", "The Aletsch glacier has a length of 32 km."):
        checked = checker.check(claim)
        cited = tuple(replace(quote, paper=replace(quote.paper, id="0" * 64)) for quote in checked.citations)
        written = json.loads(checked_claim_json(replace(checked, citations=cited)).model_dump_json())
        Draft202012Validator(schema).validate(written)
    assert (written["verdict"], written["rule"], written["citations"][0]["page"]) == ("number differs", "number", 1)
