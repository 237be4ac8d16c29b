"""Running a set of questions against a small index, and saving the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from folio.answer.chat import Chat
from folio.app import App
from folio.errors import ModelError, ModelServerError, UsageError
from folio.evaluate.dataset import Document, EvalSet, Gold, Question
from folio.evaluate.metrics import QuestionResult, figures
from folio.evaluate.runner import DEPTH, FailedQuestion, Run, Runner, load, save
from folio.search.retriever import SearchResult
from folio.store.library import Library
from tests.helpers.factories import shelf

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HAIRS = Gold("otters.pdf", 1, "The fur of a sea otter has about 155,000 hairs on each square centimetre of skin")
LENGTH = Gold("glaciers.pdf", 1, "The Aletsch glacier has a length of 23 kilometres")
GAUGE = Gold("glaciers.pdf", 3, "The gauge stands in the river Massa and was built in 1922")

QUESTIONS = (
    Question("hairs", "How many hairs does the fur of a sea otter have on each square centimetre?", gold=(HAIRS,)),
    Question("gauge", "When was it built?", "followup", gold=(GAUGE,), history=("Where does the gauge stand?",)),
    Question("both", "Which length has the Aletsch glacier?", "multi", gold=(HAIRS, LENGTH), every=True),
    Question("none", "Which bank lent the money for the opera in Vienna?", answerable=False),
)


class FixedRetriever:
    """A retriever that always returns the same rankings."""

    def __init__(self, **ranked: Sequence[int]) -> None:
        self.models = {"embedder": "scripted", "reranker": "none"}
        self.ranked = {stage: tuple(ids) for stage, ids in ranked.items()}
        self.asked: list[tuple[str, int]] = []

    def search(self, question: str, top_k: int, papers: object = None, also: Sequence[int] = ()) -> SearchResult:
        self.asked.append((question, top_k))
        return SearchResult((), {"embed": 2.0, "bm25": 1.0}, self.ranked)


class FailingRetriever(FixedRetriever):
    """A retriever whose model fails on these questions."""

    def __init__(self, *fails: str, **ranked: Sequence[int]) -> None:
        super().__init__(**ranked)
        self.fails = fails

    def search(self, question: str, top_k: int, papers: object = None, also: Sequence[int] = ()) -> SearchResult:
        found = super().search(question, top_k, papers, also)
        if question in self.fails and len(self.asked) > 1:  # the first search is the warm-up
            raise ModelServerError(f"No answer to {question}.", "Start it.")
        return found


def lettered(letters: str) -> list[Question]:
    return [Question(letter, letter) for letter in letters]


def quiet(label: str, done: int, of: int) -> None:
    pass


def small_set(*questions: Question, **more: Any) -> EvalSet:
    return EvalSet("small", Path("small.jsonl"), questions, **more)


@pytest.fixture
def app(tmp_path: Path) -> App:
    return shelf(tmp_path)


@pytest.fixture
def library(app: App) -> Iterator[Library]:
    with closing(Library(app.library_path)) as opened:
        yield opened


def ids_of(library: Library, file: str) -> list[int]:
    """The chunks of a paper in the order of its text."""
    (paper,) = [paper for paper in library.papers() if paper.file == file]
    chunks = library.chunks(library.chunk_ids_of([paper.id])).values()
    return [chunk.id for chunk in sorted(chunks, key=lambda chunk: chunk.start)]


def ask(library: Library, retriever: FixedRetriever, *questions: Question, **more: Any) -> Run:
    """A run over these questions that searches with this retriever."""
    return run_of(Runner(small_set(*questions, **more), library, retriever))  # type: ignore[arg-type]


def run_of(runner: Runner) -> Run:
    return runner.run(NOON, {"chunks": "9"}, {"TOP_K": "4"}, quiet)


def by_id(run: Run) -> dict[str, QuestionResult]:
    return {question.id: question for question in run.asked}


def test_each_stage_has_its_ranks(library: Library) -> None:
    otters, glaciers = ids_of(library, "otters.pdf"), ids_of(library, "glaciers.pdf")
    scripted = FixedRetriever(bm25=[glaciers[0], *otters], fine=[*otters, glaciers[0]])
    run = ask(library, scripted, QUESTIONS[0], QUESTIONS[2])
    assert run.stages == ("bm25", "fine")
    asked = by_id(run)
    assert asked["hairs"].ranks == {
        "bm25": {"chunk": (2,), "page": (2,), "paper": (2,)},
        "fine": {"chunk": (1,), "page": (1,), "paper": (1,)},
    }
    assert asked["both"].ranks["bm25"] == {"chunk": (2, 1), "page": (2, 1), "paper": (2, 1)}
    assert asked["both"].ranks["fine"]["chunk"] == (1, len(otters) + 1)
    assert asked["both"].gains == dict.fromkeys(("chunk", "page", "paper"), (1.0, 1.0))
    assert asked["hairs"].timings_ms == {"embed": 2.0, "bm25": 1.0}
    assert asked["hairs"].answer is None
    assert {depth for _, depth in scripted.asked} == {DEPTH}


def test_documents_rank_by_their_best_chunk_and_gain_their_grade(library: Library) -> None:
    otters, glaciers = ids_of(library, "otters.pdf"), ids_of(library, "glaciers.pdf")
    relevance = {"q": {"glaciers.pdf": 2, "unknown": 1, "otters.pdf": 0}}
    documents = (Document("otters.pdf", "", "o"), Document("glaciers.pdf", "", "g"))
    retriever = FixedRetriever(dense=[*otters, *glaciers])
    run = ask(library, retriever, Question("q", "Ice"), documents=documents, relevance=relevance)
    (asked,) = run.asked
    assert asked.gains == {"paper": (2.0, 1.0)}
    assert asked.ranks == {"dense": {"paper": (2, None)}}
    assert run.is_text


def test_a_whole_run_is_saved_and_read_again(app: App, library: Library, tmp_path: Path) -> None:
    retriever = app.retriever(library)
    answerer = app.models.answerer(retriever)
    seen: list[tuple[str, int, int]] = []
    runner = Runner(small_set(*QUESTIONS), library, retriever, Chat(retriever, answerer, top_k=4), answerer)
    run = runner.run(NOON, {}, {}, lambda *call: seen.append(call))
    assert seen == [("Asking", done, 4) for done in range(5)]
    assert run.stages == ("dense", "bm25", "fused", "reranked")
    asked = by_id(run)
    assert asked["hairs"].ranks["reranked"]["chunk"] == (1,)
    answer = asked["hairs"].answer
    assert answer is not None
    assert not answer.refused
    assert answer.citations[0].right
    assert all(cited.faithful for cited in answer.citations)
    assert list(asked["hairs"].timings_ms)[-2:] == ["answer", "question to answer"]
    # "When was it built?" does not name the gauge, so it must be rewritten as the chat does.
    assert asked["gauge"].ranks["reranked"]["chunk"] == (1,)
    none = asked["none"].answer
    assert none is not None
    assert none.refused
    assert asked["none"].ranks["reranked"] == {}
    known = {name: figure.value for name, figure in figures(run.asked, "reranked").items()}
    assert known["refusal_recall"] == known["quote_fidelity"] == known["citation_rate"] == 1
    assert run.models["llm"] == "extractive (built in)"
    # These papers were never files.
    assert run.notes == (
        "Missing or changed since they were ingested, so the indexed pages were used: otters.pdf, glaciers.pdf.",
    )
    save(tmp_path / "new" / "run.json", run)
    assert load(tmp_path / "new" / "run.json") == run
    written = json.loads((tmp_path / "new" / "run.json").read_text(encoding="utf-8"))
    assert written["asked"][0]["ranks"]["reranked"] == {"chunk": [1], "page": [1], "paper": [1]}
    assert written["made"] == "2026-11-21T12:00:00Z"
    del written["failed"]  # as older ones are
    (tmp_path / "old.json").write_text(json.dumps(written), encoding="utf-8")
    assert load(tmp_path / "old.json") == run


def test_confidence_of_an_answerer_that_has_one_is_kept(app: App, library: Library) -> None:
    retriever = app.retriever(library)
    answerer = app.models.answerer(retriever)
    chat = Chat(retriever, answerer, top_k=4)
    run = run_of(Runner(small_set(QUESTIONS[0]), library, retriever, chat, answerer))
    assert run.asked[0].answer is not None
    assert run.asked[0].answer.confidence == Chat(retriever, answerer, top_k=4).ask(QUESTIONS[0].text).confidence


def test_follow_ups_without_answers_are_searched_without_rewriting(library: Library) -> None:
    scripted = FixedRetriever(bm25=[])
    run = ask(library, scripted, QUESTIONS[1], pending=1)
    assert scripted.asked[-1][0] == "When was it built?"
    assert run.notes[-2:] == (
        "Follow-ups were searched without rewriting, because answers were not measured.",
        "Questions written by a model and not yet reviewed: 1.",
    )


def test_faulty_gold_is_in_the_record(library: Library) -> None:
    wrong = Question("w", "What?", gold=(Gold("otters.pdf", 1, "Otters are born in the month of May"), HAIRS))
    run = ask(library, FixedRetriever(bm25=ids_of(library, "otters.pdf")), wrong)
    assert [(fault.question, fault.counted) for fault in run.faults] == [("w", True)]


def test_set_on_other_papers_is_refused(library: Library) -> None:
    other = Question("w", "What?", gold=(Gold("whales.pdf", 1, ""),))
    with pytest.raises(UsageError, match=r"None of the papers that small.jsonl asks about is in the index"):
        ask(library, FixedRetriever(bm25=[]), other)


def test_a_failed_question_is_recorded_and_the_run_continues(library: Library, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    failing: Any = FailingRetriever("b", "c", "e", "f", bm25=[])
    runner = Runner(small_set(*lettered("abcdefg")), library, failing)
    run = runner.run(NOON, {}, {}, lambda label, done, of: seen.append((done, of)))
    assert [question.id for question in run.asked] == ["a", "d", "g"]
    assert [failed.question for failed in run.failed] == ["b", "c", "e", "f"]
    assert run.failed[0] == FailedQuestion("b", "No answer to b.", "Start it.")
    assert run.notes == ()
    assert seen[-1] == (7, 7)
    save(tmp_path / "run.json", run)
    assert load(tmp_path / "run.json") == run


def test_three_failures_in_a_row_end_a_run(library: Library) -> None:
    failing = FailingRetriever("b", "d", "e", "f", bm25=[])
    run = ask(library, failing, *lettered("abcdefgh"))
    assert [question.id for question in run.asked] == ["a", "c"]
    assert [failed.question for failed in run.failed] == ["b", "d", "e", "f"]
    assert [question for question, _ in failing.asked] == list("aabcdef")
    assert run.notes == ("Stopped after 3 failures in a row; questions not asked: 2.",)


@pytest.mark.parametrize(("letters", "tried"), [("abcde", "aabc"), ("ab", "aab"), ("a", "aa")])
def test_a_run_without_any_success_raises_the_models_error(library: Library, letters: str, tried: str) -> None:
    failing = FailingRetriever(*letters, bm25=[])
    with pytest.raises(ModelError, match=f"No answer to {tried[-1]}"):
        ask(library, failing, *lettered(letters))
    assert [question for question, _ in failing.asked] == list(tried)


@pytest.mark.parametrize(
    ("text", "happened"),
    [
        ("no JSON", "is not a saved run"),
        ("[]", "is not a saved run"),
        ('{"question": "q"}', "is not a saved run"),
        ('{"form": 1, "name": "cut"}', "is not a saved run"),
        ('{"form": 99}', "was saved by another version"),
    ],
)
def test_files_that_are_not_runs_are_refused(tmp_path: Path, text: str, happened: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=happened):
        load(path)
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "absent.json")
