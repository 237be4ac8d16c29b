"""Folio compared with the plain design: both are judged alike, and the table shows their metrics."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks import quality
from benchmarks.plain import PlainDesign, PlainHit
from benchmarks.quality import ask_plain, comparison_table, target_ranks, without_failed
from folio.evaluate.dataset import Document, EvalSet, Gold, Question
from folio.evaluate.metrics import QuestionResult
from folio.evaluate.relevance import RelevanceJudge
from folio.evaluate.runner import FailedQuestion, Run, load
from folio.search.langchain import FolioEmbeddings
from tests.helpers.cli_runner import CliRunner
from tests.helpers.cross_encoders import require_torch
from tests.helpers.factories import GLACIERS, OTTERS, shelf
from tests.helpers.fakes import HashingEmbedder

DENSE_FUR = Gold("otters.pdf", 1, "has about 155,000 hairs on each square centimetre of skin")
STONE = Gold("otters.pdf", 2, "It opens the shells with a stone that it carries under its arm")
GAUGE = Gold("glaciers.pdf", 3, "The gauge stands in the river Massa and was built in 1922")
QUESTIONS = (
    Question("q1", "How many hairs has the fur of a sea otter on its skin?", gold=(DENSE_FUR,)),
    Question("q2", "What opens the shells, and where does the gauge stand?", gold=(STONE, GAUGE), every=True),
    Question("q3", "Who keeps bees?", answerable=False),
)
PAPERS = EvalSet("small", Path("small.jsonl"), QUESTIONS)


def test_a_hit_counts_like_a_chunk_of_the_same_text(tmp_path: Path) -> None:
    app = shelf(tmp_path)
    with closing(app.open_library()) as library:
        judge = RelevanceJudge(PAPERS, library)
        for question in QUESTIONS[:2]:
            found = app.retriever(library).search(question.text, 20).hits
            hits = [
                PlainHit(hit.paper.file, hit.pages[0], hit.text, hit.score, hit.chunk.start, hit.chunk.end)
                for hit in found
            ]
            targets, faults = judge.targets(question)
            ranks = target_ranks(judge, targets, hits)
            assert faults == []
            assert list(ranks) == ["chunk", "page", "paper"]
            assert ranks == judge.ranks(targets, [hit.chunk.id for hit in found])
            assert all(rank is not None for unit in ranks.values() for rank in unit)


def test_the_plain_design_is_asked_every_question(tmp_path: Path) -> None:
    texts = [("otters.pdf", "", "\n\n".join(OTTERS)), ("glaciers.pdf", "", "\n\n".join(GLACIERS))]
    design = PlainDesign.from_texts(texts, FolioEmbeddings(HashingEmbedder(256)))
    steps: list[tuple[int, int]] = []
    with closing(shelf(tmp_path).open_library()) as library:
        run = ask_plain(
            design, PAPERS, RelevanceJudge(PAPERS, library), lambda label, done, of: steps.append((done, of))
        )
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert run.stages == ("dense", "bm25", "fused")
    assert [question.id for question in run.asked] == ["q1", "q2", "q3"]
    assert run.asked[0].ranks["fused"] == {"chunk": (1,), "page": (1,), "paper": (1,)}
    # Both papers are one chunk each, and both are needed.
    assert sorted(rank or 0 for rank in run.asked[1].ranks["fused"]["chunk"]) == [1, 2]
    assert run.asked[2].ranks["fused"] == {}


def test_half_of_a_span_is_enough_of_a_text(tmp_path: Path) -> None:
    document = Document("otters.pdf", "", "")  # as a paper of the store is called
    asked = EvalSet("spans", tmp_path, (), (document,))
    start = OTTERS[0].index("155,000 hairs")
    question = Question("q", "How many?", gold=(Gold("otters.pdf", None, "155,000 hairs on", start),))
    with closing(shelf(tmp_path).open_library()) as library:
        judge = RelevanceJudge(asked, library)
        targets, _ = judge.targets(question)
        ranks = [
            target_ranks(judge, targets, [PlainHit("otters.pdf", 1, "", 1.0, 0, start + size)])["chunk"]
            for size in (7, 8)
        ]
    assert ranks == [(None,), (1,)]


def test_both_designs_are_asked_only_what_folio_answered() -> None:
    run = run_of({"dense": (1, 1)})  # of q0, which is not in the set, and q1
    run = replace(run, failed=(FailedQuestion("q2", "It broke off.", "Try again."),))
    assert [question.id for question in without_failed(PAPERS, run).questions] == ["q1"]


@pytest.mark.slow
def test_both_designs_are_measured_from_the_command_line(desk: CliRunner, tmp_path: Path) -> None:
    require_torch()
    text = "Otters float in kelp. " * 3 + "The Massa gauge was built in 1922."
    asked = {"id": "g", "question": "When was the gauge built?", "answers": [{"text": "1922", "answer_start": 95}]}
    path = tmp_path / "rivers" / "dev.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"data": [{"title": "", "paragraphs": [{"context": text, "qas": [asked]}]}]}))
    ran = desk.measure(quality, str(path), "--out", str(tmp_path / "runs"))
    assert ran.code == 0, ran.err
    assert "rivers-dev: 1 questions with gold, by passage" in ran.out
    plain, folio = (load(tmp_path / "runs" / f"{name}.json") for name in ("plain", "folio"))
    assert (plain.name, folio.name) == ("rivers-dev, plain design", "rivers-dev")
    assert plain.asked[0].ranks["fused"] == folio.asked[0].ranks["reranked"] == {"chunk": (1,), "paper": (1,)}


def test_the_table_compares_folio_with_the_plain_design() -> None:
    plain = run_of({"dense": (2, None), "bm25": (1, 10), "fused": (2, 5)})
    folio = run_of({"dense": (2, None), "reranked": (1, 1)})
    shown = comparison_table(plain, folio)
    assert shown.title == "run: 2 questions with gold, by passage; 95 % paired bootstrap"
    assert shown.head == ("", "R@1", "R@5", "R@20", "MRR", "nDCG@10")
    rows = {row[0]: row[1:5] for row in shown.rows if row[0]}
    assert rows == {
        "plain design": ("0.000", "1.000", "1.000", "0.350"),
        "its BM25 alone": ("0.500", "0.500", "1.000", "0.550"),
        "its dense alone": ("0.000", "0.500", "0.500", "0.250"),
        "Folio": ("1.000", "1.000", "1.000", "1.000"),
        "Folio minus plain design": ("+1.000", "+0.000", "+0.000", "+0.650"),
        "Folio minus its BM25 alone": ("+0.500", "+0.500", "+0.000", "+0.450"),
    }
    intervals = [row[1:5] for row in shown.rows if not row[0]]
    assert intervals[0] == ("+1.000 to +1.000", "+0.000 to +0.000", "+0.000 to +0.000", "+0.500 to +0.800")
    assert intervals[1][3] == "+0.000 to +0.900"


def run_of(ranks: dict[str, tuple[int | None, ...]]) -> Run:
    """A run of two questions that found their passage at these ranks."""
    found = [{stage: {"chunk": (of[n],)} for stage, of in ranks.items()} for n in range(2)]
    asked = [QuestionResult(f"q{n}", "", True, False, {"chunk": (1.0,)}, found[n]) for n in range(2)]
    made = datetime(2026, 1, 1, tzinfo=UTC)
    empty = Run("run", made, "set.jsonl", False, {}, {}, {}, (), (), (), (), 0.0)
    return replace(empty, stages=tuple(ranks), asked=tuple(asked))
