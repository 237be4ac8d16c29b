"""The evidence profile of a deep answer, with and without a model that compares papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from folio.answer_types import Answer, Evidence, Sentence
from folio.app import App
from folio.deep.profile import EvidenceWeigher, age_of
from folio.deep.types import (
    Age,
    Assessment,
    Budget,
    Comparer,
    DeepLimits,
    DeepTrace,
    EvidenceProfile,
    EvidenceScored,
    NamedClaim,
)
from folio.errors import ModelFailed
from folio.grounding.sentences import citation, number_sentences
from folio.papers.metadata import Field, simple_metadata
from folio.papers.model import Paper
from folio.papers.work import WorkNotice
from folio.search.retriever import Retriever
from tests.helpers.factories import evidence_of, hit_on, hits_on, shelf
from tests.helpers.fakes import HashingEmbedder

LIMITS = DeepLimits(papers=4, evidence=4, least=1, rounds=1, mmr_lambda=0.9, calls=5, seconds=60)
LONG = "The Aletsch glacier has a length of 23 kilometres."
ALSO = "According to maps, the length of the Aletsch glacier is 23 kilometres."
SHORT = "The Aletsch glacier has a length of 20 kilometres."
CLAIM = NamedClaim(LONG, (1, 2), (3,))


class ScriptedComparer:
    """Names these claims, and counts its calls."""

    name = "scripted"

    def __init__(self, *claims: NamedClaim, fails: BaseException | None = None) -> None:
        self.claims, self.fails, self.asked = claims, fails, 0

    def compare(self, question: str, evidence: Sequence[Evidence], budget: Budget) -> list[NamedClaim]:
        if not budget.take_call():
            return []
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        return list(self.claims)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    return shelf(tmp_path_factory.mktemp("shelf"))


@pytest.fixture
def retriever(app: App) -> Iterator[Retriever]:
    with closing(app.open_library()) as library:
        yield app.retriever(library)


def answered(*texts: str, cited: int = 1, papers: Sequence[Paper] = ()) -> tuple[Answer, DeepTrace]:
    """An answer from these texts, each a paper's; it quotes the first of them. All were scored 8."""
    hits = [hits_on(text, file=f"{n}.pdf", title=f"Paper {n}")[0] for n, text in enumerate(texts)]
    given = papers or [hit.paper for hit in hits]
    hits = [replace(hit, score=0.8, paper=paper) for hit, paper in zip(hits, given, strict=True)]
    evidence, question = evidence_of(hits), "How long is it?"
    said = [Sentence(s.text, (citation(s.evidence, s.start, s.end, 1.0),)) for s in number_sentences(evidence)[:cited]]
    events = tuple(EvidenceScored(question, hit, Assessment(8)) for hit in hits)
    return Answer(question, question, tuple(said), tuple(evidence)), DeepTrace(events, "scripted", 1, 2, 1.0)


def weighed(
    retriever: Retriever, found: tuple[Answer, DeepTrace], comparer: Comparer | None = None, limits: DeepLimits = LIMITS
) -> EvidenceProfile:
    profile = EvidenceWeigher(retriever, HashingEmbedder(256), limits, comparer).profile(*found)
    assert profile is not None
    return profile


def test_claims_of_a_model_are_shown_with_its_name(retriever: Retriever) -> None:
    comparer = ScriptedComparer(CLAIM)
    profile = weighed(retriever, answered(LONG, ALSO, SHORT), comparer)
    (group,) = profile.differences
    assert [quote.quote for quote in (*group.some, *group.others)] == [LONG, ALSO, SHORT]
    assert (profile.compared_by, profile.agreements, comparer.asked) == ("scripted", (), 1)
    assert profile.quotes == (*group.some, *group.others)


@pytest.mark.parametrize(
    ("comparer", "limits"),
    [
        (None, LIMITS),
        (ScriptedComparer(CLAIM), replace(LIMITS, calls=2)),  # the search took both calls
        (ScriptedComparer(CLAIM), replace(LIMITS, seconds=1.0)),
        (ScriptedComparer(fails=ModelFailed("It is gone.", "Start it.")), LIMITS),
        (ScriptedComparer(fails=KeyboardInterrupt()), LIMITS),
    ],
)
def test_without_a_model_or_budget_the_rules_compare(
    retriever: Retriever, comparer: ScriptedComparer | None, limits: DeepLimits
) -> None:
    profile = weighed(retriever, answered(LONG, SHORT), comparer, limits)
    (group,) = profile.differences
    assert [quote.quote for quote in (*group.some, *group.others)] == [LONG, SHORT]
    assert profile.compared_by == ""


def test_one_paper_is_compared_with_nothing(retriever: Retriever) -> None:
    comparer = ScriptedComparer(CLAIM)
    profile = weighed(retriever, answered(f"{LONG} {SHORT}"), comparer)
    assert (profile.agreements, profile.differences, comparer.asked) == ((), (), 0)
    assert profile.basis.papers == 1


def test_a_refusal_and_a_remark_have_no_profile(retriever: Retriever) -> None:
    weigher = EvidenceWeigher(retriever, HashingEmbedder(256), LIMITS, ScriptedComparer(CLAIM))
    answer, trace = answered(LONG)
    assert weigher.profile(replace(answer, sentences=()), trace) is None
    assert weigher.profile(replace(answer, sentences=(), remark="Hello."), trace) is None


def test_retracted_papers_do_not_count(retriever: Retriever) -> None:
    found = answered(LONG, ALSO, SHORT, cited=3)
    papers = [piece.paper for piece in found[0].evidence]
    retracted = replace(papers[1], notices=(WorkNotice("retraction", "2021-03-04", "", "crossref"),))
    assert retracted.flag is not None
    basis = weighed(retriever, answered(LONG, ALSO, SHORT, cited=3, papers=[papers[0], retracted, papers[2]])).basis
    assert (basis.papers, basis.statements, basis.relevant, basis.scored) == (2, 3, 3, 3)
    other = answered(LONG, SHORT, papers=[papers[0], replace(retracted, id="1.pdf")])
    assert "RETRACTED" in weighed(retriever, other).differences[0].others[0].shown


def test_years_that_are_not_sure_are_counted_as_unknown() -> None:
    paper = hit_on("Otters sleep.").paper
    years = [2012, None, 2021, 2012, 1998]
    known = [
        replace(paper, metadata=replace(simple_metadata(), year=Field(year, "page", year != 1998))) for year in years
    ]
    assert age_of(known) == Age((2012, 2012, 2021), 2)
    assert age_of([]) == Age((), 0)
    assert age_of([paper]) == Age((), 1)
