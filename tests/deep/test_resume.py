"""A deep search stopped at any step leaves a checkpoint, and resumes from there to the same evidence."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from folio.app import App
from folio.deep import graph
from folio.deep.builtin_assessor import BuiltinAssessor
from folio.deep.checkpoint import MOST_BYTES, CheckpointFile, Progress, SearchOptions, checkpoint_path, read
from folio.deep.search import DeepSearch
from folio.deep.types import (
    Assessment,
    Assessor,
    Budget,
    DeepEvent,
    DeepLimits,
    DeepTrace,
    EvidenceScored,
    PapersFound,
    SearchAgain,
    SearchEnded,
)
from folio.errors import FolioError, ModelServerError, StoreError, UsageError
from folio.papers.metadata import Field, Metadata
from folio.papers.model import Hit
from folio.papers.work import Work
from folio.search.filters import EVERYTHING
from folio.search.retriever import Retriever, SearchResult
from folio.store import works
from tests.helpers.factories import shelf

LIMITS = DeepLimits(papers=1, evidence=2, least=3, rounds=3, mmr_lambda=0.9, calls=100, seconds=60)
BOTH = "How long is the Aletsch glacier, and what is the diet of the sea otter?"
OPTIONS = SearchOptions("plain", None, ())
STEPS = {step.__name__ for step in graph.STEPS}


class LeftError(Exception):
    """Whoever asked is gone."""


class CountingAssessor:
    """Scores passages about glaciers 9, others 1, one in three not at all; asks in other words once for each part."""

    name = "counting"
    uses_model = True

    def __init__(self) -> None:
        self.read: list[tuple[str, int]] = []

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        for hit in hits:
            if not budget.take_call():
                yield Assessment(None)
                continue
            self.read.append((question, hit.chunk.id))
            score = None if hit.chunk.id % 3 == 0 else 9 if "glacier" in hit.text else 1
            yield Assessment(score, f"Of {hit.chunk.id}")

    def parts(self, question: str, budget: Budget) -> list[str] | None:
        return None

    def rephrase(self, question: str, earlier: Sequence[str], budget: Budget) -> list[str]:
        words = f"{question} in other words"
        return [words] if words not in earlier and budget.take_call() else []


@dataclass
class Desk:
    """A library of two papers, the first of which cites the second, and a checkpoint beside it."""

    app: App
    retriever: Retriever
    limits: DeepLimits = LIMITS
    notices: list[str] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return checkpoint_path(self.app.store_folder)

    def search(
        self, check_cancelled: Callable[[], None] = lambda: None, assessor: Assessor | None = None, writes: bool = True
    ) -> DeepSearch:
        checkpoints = CheckpointFile(self.file, OPTIONS, writes=writes, notice=self.notices.append)
        return DeepSearch(
            self.retriever, assessor or CountingAssessor(), self.limits, EVERYTHING, check_cancelled, checkpoints
        )

    def resume(
        self, assessor: Assessor | None = None, on_event: Callable[[DeepEvent], None] = lambda event: None
    ) -> tuple[SearchResult, DeepTrace]:
        search = self.search(assessor=assessor)
        progress = search.progress_of(read(self.file))
        assert progress is not None
        found = search.find("", on_event, progress)
        search.finish()
        assert search.trace is not None
        return found, search.trace


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, Retriever]]:
    app = shelf(tmp_path_factory.mktemp("shelf"), RERANKER="none")
    with closing(app.open_library()) as opened:
        with opened.database.transaction():
            otters = Work("openalex", title="On Sea Otters", openalex="W1", references=("W2",))
            ice = Work("openalex", title="Ice of the Alps", openalex="W2")
            found = works.put(opened.database, [otters, ice])
            for paper, id in zip(("glaciers.pdf", "otters.pdf"), found, strict=True):
                works.link_paper(opened.database, paper, id, "openalex", 1.0)
        yield app, app.retriever(opened)


@pytest.fixture
def desk(library: tuple[App, Retriever]) -> Iterator[Desk]:
    desk = Desk(*library)
    yield desk
    desk.file.unlink(missing_ok=True)


def without_costs(trace: DeepTrace) -> DeepTrace:
    """A call whose reply was lost is counted, too."""
    return replace(trace, calls=0, seconds=0)


def whole(desk: Desk, assessor: Assessor | None = None) -> tuple[tuple[Hit, ...], DeepTrace]:
    """What an uninterrupted search finds."""
    search = desk.search(assessor=assessor)
    hits = search.find(BOTH).hits
    assert desk.file.exists()
    search.finish()
    assert not desk.file.exists()
    assert search.trace is not None
    return hits, search.trace


def test_a_search_takes_every_step(desk: Desk) -> None:
    """Otherwise the tests below would not stop at all of them."""
    seen = set()
    search = desk.search(lambda: seen.add(read(desk.file).content["progress"]["step"]))
    search.find(BOTH)
    assert seen == {"", *STEPS}


def test_a_search_resumes_from_every_place_it_was_cancelled(desk: Desk) -> None:
    """By whoever left and by Ctrl-C in turn, each time that it looks, until it is not stopped any more."""
    hits, trace = whole(desk)
    steps = set()
    for looks in range(1000):
        search = desk.search(stop_after(looks, KeyboardInterrupt if looks % 2 else LeftError))
        with suppress(LeftError, KeyboardInterrupt):
            search.find(BOTH)
        if search.end == "over":
            break
        steps.add(read(desk.file).content["progress"]["step"])
        search.finish()  # does not take it away
        found, again = desk.resume()
        assert found.hits == hits
        assert without_costs(again) == without_costs(trace)
        assert not desk.file.exists()
    assert steps == {"", *STEPS}
    assert len(STEPS) < looks < 999


def stop_after(looks: int, error: type[BaseException]) -> Callable[[], None]:
    left = looks

    def check() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise error

    return check


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ModelServerError])
def test_a_resumed_search_scores_no_passage_twice(desk: Desk, kind: type[BaseException]) -> None:
    undisturbed = CountingAssessor()
    hits, trace = whole(desk, undisturbed)
    scored = [key for key in undisturbed.read if key[1] % 3]
    for at in range(len(trace.events)):
        left = at

        def stop(event: DeepEvent) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                left = 1000
                raise KeyboardInterrupt if kind is KeyboardInterrupt else ModelServerError("It is gone.", "Start it.")

        first, second = CountingAssessor(), CountingAssessor()
        search = desk.search(assessor=first)
        try:
            search.find(BOTH, stop)
            assert kind is KeyboardInterrupt  # which gives what there is
        except (KeyboardInterrupt, ModelServerError):
            assert search.is_kept
        assert search.end == "stopped"
        found, _ = desk.resume(second)
        assert found.hits == hits
        assert [key for key in first.read + second.read if key[1] % 3] == scored


def test_a_checkpoint_round_trips(desk: Desk) -> None:
    """All that a progress consists of, at every step."""
    written: list[Progress] = []

    def check() -> None:
        checkpoint = read(desk.file)
        found = checkpoint.progress(desk.retriever)
        assert found == written[-1]
        assert (checkpoint.head.question, checkpoint.head.assessor) == (BOTH, "counting")

    search = desk.search(check)

    class Noting(CheckpointFile):
        def write(self, question: str, store: str, assessor: str, progress: Progress) -> None:
            written.append(progress)
            super().write(question, store, assessor, progress)

    search._checkpoints = Noting(desk.file, OPTIONS, writes=True, notice=desk.notices.append)
    search.find(BOTH)
    kinds = {type(event) for progress in written for event in progress.events}
    assert kinds == {PapersFound, EvidenceScored, SearchAgain, SearchEnded}
    assert any(progress.scored for progress in written)


def test_a_search_without_a_model_resumes(desk: Desk) -> None:
    assessor = BuiltinAssessor(desk.app.models.meaning, desk.retriever.term_weights)
    hits, trace = whole(desk, assessor)
    assert hits

    def check() -> None:
        if read(desk.file).content["progress"]["step"] == "gather_evidence":
            raise LeftError

    with pytest.raises(LeftError):
        desk.search(check, assessor).find(BOTH)
    found, again = desk.resume(assessor)
    assert found.hits == hits
    assert without_costs(again) == without_costs(trace)


def test_each_resumption_has_a_new_budget(desk: Desk) -> None:
    hits, trace = whole(desk)
    desk.limits = replace(LIMITS, calls=2)
    ends: list[str] = []
    calls: list[int] = []
    while "over" not in ends and len(ends) < 20:
        search = desk.search()
        found = search.find("" if ends else BOTH, resumed=search.progress_of(read(desk.file)) if ends else None)
        search.finish()  # while it lacks something, it stays
        assert search.trace is not None
        ends.append(search.end)
        calls.append(search.trace.calls)
    assert (ends[0], ends[-1]) == ("spent", "over")
    assert found.hits == hits
    assert calls == sorted(calls)
    assert not desk.file.exists()
    # What could not be scored, a model is asked again, and for other words of a step that did not finish.
    assert trace.calls <= calls[-1] <= 3 * trace.calls


def test_a_budget_spent_in_the_last_round_can_resume(desk: Desk) -> None:
    desk.limits = replace(LIMITS, rounds=1, evidence=3)
    hits, trace = whole(desk)
    desk.limits = replace(desk.limits, calls=trace.calls - 1)
    search = desk.search()
    search.find(BOTH)
    assert search.end == "spent"
    assert desk.resume()[0].hits == hits
    assert not desk.file.exists()


def test_a_resumption_has_all_its_seconds_again(desk: Desk) -> None:
    with pytest.raises(LeftError):
        desk.search(cancelled_at("plan", desk)).find(BOTH)
    written = json.loads(desk.file.read_text())
    written["progress"]["seconds"] = 1e6
    desk.file.write_text(json.dumps(written))
    search = desk.search()
    search.find("", resumed=search.progress_of(read(desk.file)))
    assert search.end == "spent"
    assert json.loads(desk.file.read_text())["progress"]["is_spent"]
    found, trace = desk.resume()
    assert found.hits == whole(desk)[0]
    assert trace.seconds >= 1e6


def cancelled_at(step: str, desk: Desk) -> Callable[[], None]:
    def check() -> None:
        if read(desk.file).content["progress"]["step"] == step:
            raise LeftError

    return check


@pytest.fixture
def stopped(desk: Desk) -> Desk:
    """A desk with a checkpoint of a search that has papers, passages and scores."""
    with pytest.raises(LeftError):
        desk.search(cancelled_at("is_enough", desk)).find(BOTH)
    return desk


def test_a_checkpoint_is_private_and_holds_no_paper_text(stopped: Desk) -> None:
    before = os.umask(0)
    try:
        stopped.file.with_name(f"{stopped.file.name}.new").symlink_to(stopped.file.with_name("elsewhere"))
        with pytest.raises(LeftError):
            stopped.search(cancelled_at("gather_evidence", stopped)).find(BOTH)
    finally:
        os.umask(before)
    assert not stopped.file.with_name("elsewhere").exists()
    assert "urchins" not in stopped.file.read_text()
    assert "On Sea Otters" not in stopped.file.read_text()
    if sys.platform != "win32":
        assert stat.S_IMODE(stopped.file.stat().st_mode) == 0o600


def test_a_changed_library_restarts_the_search(tmp_path: Path) -> None:
    app = shelf(tmp_path)
    with closing(app.open_library()) as opened:
        desk = Desk(app, app.retriever(opened))
        with pytest.raises(LeftError):
            desk.search(cancelled_at("is_enough", desk)).find(BOTH)
        assert desk.search().progress_of(read(desk.file)) is not None
        opened.set_metadata("otters.pdf", "person", Metadata(title=Field("Sea Otters of Alaska", "person")))
        opened.drop(str(tmp_path / "glaciers.pdf"))
        assert desk.search().progress_of(read(desk.file)) is None


def test_another_model_cannot_resume(stopped: Desk) -> None:
    other = CountingAssessor()
    other.name = "another"
    with pytest.raises(UsageError, match="started with counting, but now another scores passages"):
        stopped.search(assessor=other).progress_of(read(stopped.file))


def test_the_checkpoint_of_another_search_stays(stopped: Desk) -> None:
    own = stopped.search()
    own.find(BOTH)
    with pytest.raises(LeftError):
        stopped.search(cancelled_at("is_enough", stopped)).find(BOTH)
    own.finish()
    assert stopped.file.exists()


def test_without_writing_no_file_appears(desk: Desk) -> None:
    search = desk.search(writes=False)
    search.find(BOTH)
    assert not search.is_kept
    assert not desk.file.exists()


def test_a_search_continues_without_a_checkpoint(desk: Desk) -> None:
    hits, _ = whole(desk)
    desk.file.mkdir()
    try:
        search = desk.search()
        assert search.find(BOTH).hits == hits
    finally:
        desk.file.rmdir()
    assert not search.is_kept
    (said,) = desk.notices
    assert said.startswith("If this search is stopped, it cannot be resumed: ")


def refused(desk: Desk, error: type[FolioError] = FolioError) -> str:
    """What is said of the checkpoint: it must be one error for people."""
    with pytest.raises(error) as caught:
        desk.search().progress_of(read(desk.file))
    assert caught.value.remedy
    assert "\n" not in caught.value.happened
    return caught.value.happened


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"null", b"[]", b"{}", b"7", b'"x"', b"\xff\xfe", b"{", b"[" * 100_000, b"9" * 5000),
        *(b'{"version": 2}', b'{"version": 2, "head": []}'),
    ],
)
def test_a_file_that_is_no_checkpoint(desk: Desk, content: bytes) -> None:
    desk.file.write_bytes(content)
    assert "is damaged" in refused(desk, StoreError)


def test_a_checkpoint_of_another_length(stopped: Desk) -> None:
    content = stopped.file.read_bytes()
    for length in range(0, len(content), max(1, len(content) // 50)):
        stopped.file.write_bytes(content[:length])
        assert "is damaged" in refused(stopped)
    stopped.file.write_bytes(content + b" " * MOST_BYTES)  # or made too long
    assert "is damaged" in refused(stopped)


@pytest.mark.parametrize("version", [0, 1, 3, "2", None])
def test_another_version(stopped: Desk, version: object) -> None:
    change(stopped, ["version"], version)
    assert refused(stopped) == "The stopped deep search was saved by another version of Folio."


def change(desk: Desk, path: Sequence[str | int], value: object) -> None:
    written = json.loads(desk.file.read_text())
    place: Any = written
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    desk.file.write_text(json.dumps(written))


STATE = ["progress", "state"]
CONTEXT = [*STATE, "contexts", 0]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((["head", "question"], value) for value in ("  ", 7)),
        *((["head", "options", name], value) for name, value in (
            ("style", "poem"), ("evidence", 10**12), ("evidence", 0), ("filters", "x"),
        )),
        (["head", "more"], "x"),
        (["papers"], {"a": 1}), (["papers"], []),
        *((["papers", 0], value) for value in ("unknown", "\ud800")),
        (["passages"], []),
        *((["passages", 0], value) for value in (2**63, -1, 1.5)),
        (["progress"], None),
        *((["progress", name], value) for name, value in (
            ("step", "__start__"), ("step", "import os"), ("is", "SearchHead"), ("calls", -1), ("calls", True),
            ("seconds", float("nan")), ("seconds", float("-inf")),
        )),
        (["progress", "events", 0, "is"], "Path"), (["progress", "events", 0], []),
        *(([*STATE, name], value) for name, value in (
            ("parts", []), ("parts", [1]), ("round", -(10**9)), ("round", "1"), ("read", [[-1, "a paper"]]),
            ("read", [[0]]), ("decision", "stop"), ("decision", []), ("assessed", [[]]),
        )),
        ([*STATE, "queries", 0, "text"], "\ud800"), ([*STATE, "queries", 0, "part"], 99),
        ([*STATE, "found", 0, 0, "part"], -1), ([*STATE, "found", 0], []),
        ([*CONTEXT, "part"], 3), ([*CONTEXT, "hit"], []),
        *(([*CONTEXT, "assessment", name], value) for name, value in (
            ("relevance", 11), ("relevance", "9"), ("summary", None),
        )),
        *(([*CONTEXT, "hit", place], value) for place, value in ((0, 1), (1, float("inf")), (4, [[0, 10**9]]))),
    ],
)  # fmt: skip
def test_values_that_no_search_wrote(stopped: Desk, path: list[str | int], value: object) -> None:
    change(stopped, path, value)
    assert "is damaged" in refused(stopped)


def test_there_is_no_checkpoint(desk: Desk) -> None:
    with pytest.raises(UsageError, match="There is no deep search to resume"):
        read(desk.file)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_in_its_place_is_not_waited_for(desk: Desk) -> None:
    os.mkfifo(desk.file)
    assert "cannot be used" in refused(desk)
