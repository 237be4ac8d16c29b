"""Algorithms in answers: the one that a question names is shown whole, with its lines, and is never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from folio.answer.blocks import blocks
from folio.answer.evidence import gather
from folio.answer_types import REFUSAL, Evidence, Sentence
from folio.ingest.algorithms import find_algorithms
from folio.papers.model import Chunk, Hit
from folio.papers.sections import PaperSection, SectionMap
from tests.helpers.factories import evidence_of, hit_on
from tests.helpers.known_papers import extractive
from tests.helpers.ollama_models import Scripted
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.replies import Make
from tests.helpers.scripted_model import ScriptedModel

SIGN = (
    "Algorithm 2 Raft.Sign(k)\n\nSigns a raft for the winter.\n\nInput: key k.\n\n"
    "1: r ← 0\n2: for i ← 0 to 9 do\n3: r ← r + k  ▷ adds the key\n\n4: end for\n5: return r"
)
COUNT = "Algorithm 3 Raft.Count(b)\n\nCounts a raft.\n\n1: n ← b\n2: return n"
PROSE = "The algorithm Raft.Sign (Algorithm 2) takes a key and signs a raft. It is the slowest of all algorithms here."
OTHER = PROSE.replace("Sign", "Count").replace("2", "3")
PAPER = "\n\n".join((PROSE, SIGN, OTHER, COUNT, "Otters sleep in the bay."))
SHOWN = "\n".join(" ".join(line.split()) for line in SIGN.split("\n") if line)


def hits(size: int = 0) -> list[Hit]:
    """The paper as hits of `size` characters, one for the whole paper when size is 0; its algorithms are known."""
    hit = hit_on(PAPER)
    found = [PaperSection(each.start, each.end, 0, "", each.name, "algorithm") for each in find_algorithms(PAPER)]
    assert [PAPER[each.start : each.end] for each in found] == [SIGN, COUNT]
    paper = replace(hit.paper, sections=SectionMap(tuple(found)))
    size = size or len(PAPER)
    return [
        Hit(Chunk(n, paper.id, start, min(start + size, len(PAPER))), paper, PAPER[start : start + size], 1 / (1 + n))
        for n, start in enumerate(range(0, len(PAPER), size))
    ]


def shown(question: str, evidence: Sequence[Evidence]) -> list[str]:
    return [sentence.text for sentence in extractive(1024).sentences(question, evidence)]


@pytest.mark.parametrize(
    "question",
    [
        "What are the steps of Algorithm 2 (Raft.Sign)?", "How does Raft.Sign work?", "Algorithm 2", "Raft.Sign",
        "List the steps of Algorithm 2.", "Show the pseudocode of Raft.Sign.", "raft.sign()",
    ],
)  # fmt: skip
def test_the_named_algorithm_is_shown_whole_with_its_lines(question: str) -> None:
    assert shown(question, evidence_of(hits()))[0] == SHOWN


def test_its_quote_is_the_text_of_the_page() -> None:
    (sentence, *_) = extractive(1024).sentences("Algorithm 2", evidence_of(hits()))
    assert [quote.quote for quote in sentence.citations] == [SIGN]
    assert sentence.marks == ()  # the whole is the answer


def test_another_question_is_answered_by_a_sentence() -> None:
    assert shown("Why is Raft.Sign the slowest?", evidence_of(hits()))[0].startswith(PROSE[:40])


def test_evidence_has_all_of_an_algorithm_or_shows_nothing_of_it() -> None:
    inside = PAPER.index("2: for i")
    cut = next(hit for hit in hits(60) if hit.chunk.start <= inside < hit.chunk.end)
    (piece,) = gather([cut], lambda _, start, end: PAPER[start:end], 4000).evidence
    assert SIGN in piece.text
    (narrow,) = evidence_of([cut])  # as if the budget were too small
    assert not [block for block in blocks(narrow) if block.kind in ("algorithm", "list")]


def test_a_refusal_does_not_stand_where_the_named_algorithm_is_first(model: ScriptedModel) -> None:
    found = model.answer(evidence_of(hits()), [REFUSAL], question="What are the steps of Algorithm 2 (Raft.Sign)?")
    assert [part.text for part in found if isinstance(part, Sentence)] == [SHOWN]
    assert model.answerer.notice == "The model found no answer. This is what your question names, as printed."


def test_a_model_that_only_chooses_does_not_refuse_it_either(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.stated = Scripted("no", (("yes", -3.0), ("no", -0.05)))
    answerer = make(answer_format="quote", strict=True)
    found = answerer.sentences("What are the steps of Algorithm 2 (Raft.Sign)?", evidence_of(hits()))
    assert [part.text for part in found if isinstance(part, Sentence)] == [SHOWN]
    assert answerer.notice == "The model found no answer. This is what your question names, as printed."


def test_a_refusal_stands_where_another_one_is_asked(model: ScriptedModel) -> None:
    assert model.answer(evidence_of(hits()), [REFUSAL], question="What are the steps of Algorithm 7?") == []
    assert model.answerer.notice == ""


def test_of_two_papers_with_an_algorithm_of_that_number_the_first_one_answers() -> None:
    winter, summer = hits()[0], hits()[0]
    chunk = replace(summer.chunk, paper_id="other")
    text = PAPER.replace("Signs a raft for the winter", "Signs a boat for the summer")
    summer = replace(summer, chunk=chunk, paper=replace(summer.paper, id="other", file="other.pdf"), text=text)
    question = "What are the steps of Algorithm 2 for a boat in the summer?"
    for order, season in (((winter, summer), "winter"), ((summer, winter), "summer")):
        algorithms = [each for each in shown(question, evidence_of(order)) if "1: r ← 0" in each]
        assert [season in each for each in algorithms] == [True]
