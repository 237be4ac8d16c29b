"""Papers on their way into the library: what the embedder is given, and when; what lands meanwhile; how it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from folio.errors import ModelError
from folio.ingest import embedding_queue
from folio.ingest.embedding_queue import EmbeddingQueue, Landed, land
from folio.store.library import Library, text_hash
from folio.types import NewPaper, PageMap, SourceFile, Vectors
from tests.helpers.fakes import HashingEmbedder


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    opened = Library(tmp_path / "library.sqlite", create=True)
    yield opened
    opened.close()


def paper(name: str, *passages: str) -> Landed:
    """A paper of one page with these passages."""
    text, spans = "", []
    for passage in passages:
        spans.append((len(text), len(text) + len(passage)))
        text += passage + " "
    new = NewPaper(name, name, (), None, text, PageMap((0,), ("",)), tuple(spans))
    return SourceFile(f"/{name}.pdf", f"{name}.pdf", name), new


def papers(count: int, passages: int) -> list[Landed]:
    return [paper(f"p{n}", *(f"passage {n} {m}" for m in range(passages))) for n in range(count)]


def names(landed: Sequence[Landed]) -> list[str]:
    return [file.sha256 for file, _ in landed]


class Counting(HashingEmbedder):
    """Keeps how many passages each call had; the calls of these numbers, from 1, wait for `go`."""

    def __init__(self, waits: Sequence[int] = ()) -> None:
        super().__init__()
        self.calls: list[int] = []
        self.go = threading.Event()
        self.begun = threading.Event()  # a call that waits
        self._waits = waits

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(len(texts))
        if len(self.calls) in self._waits:
            self.begun.set()
            assert self.go.wait(30)
        return super().embed_passages(texts)


def test_batches_are_filled_across_papers(library: Library) -> None:
    embedder = Counting()
    found = list(land(library, papers(9, 3), embedder, 4))
    assert embedder.calls == [4, 4, 4, 4, 4, 4, 3]
    assert names(found) == [f"p{n}" for n in range(9)]
    ((ids, vectors),) = library.vectors()
    for row, chunk in zip(vectors, library.chunks(ids).values(), strict=True):
        text = library.text(chunk.paper_id, chunk.start, chunk.end)
        assert (row == HashingEmbedder().embed_passages([text])[0]).all()


def test_papers_land_while_the_embedder_is_at_work(library: Library) -> None:
    embedder = Counting(waits=[2])
    work = land(library, papers(3, 2), embedder, 2)
    assert names([next(work)]) == ["p0"]
    assert embedder.begun.wait(30)
    assert not embedder.go.is_set()
    assert [found.id for found in library.papers()] == ["p0"]
    embedder.go.set()
    assert names(list(work)) == ["p1", "p2"]


def test_the_next_batch_is_ready_before_the_one_at_work_is_done(library: Library) -> None:
    embedder = Counting(waits=[1])
    work = EmbeddingQueue(library, lambda: embedder, 2)
    for file, new in papers(2, 2):
        work.take(file, new)
        assert not list(work.go_on())
    assert embedder.begun.wait(30)
    assert len(work.awaited()) == 2
    embedder.go.set()
    assert names(list(work.rest())) == ["p0", "p1"]
    work.close()


@pytest.mark.parametrize(("passages", "batch", "most"), [(1, 4, 12), (3, 4, 5), (50, 4, 2)])
def test_few_papers_are_held(library: Library, passages: int, batch: int, most: int) -> None:
    taken, landed, held = 0, 0, 0

    def source() -> Iterator[Landed]:
        nonlocal taken
        for found in papers(40, passages):
            taken += 1
            yield found

    for _ in land(library, source(), Counting(), batch):
        landed += 1
        held = max(held, taken - landed + 1)
    assert landed == 40
    assert held <= most


def test_many_papers_that_wait_for_one_text_are_few_too(library: Library) -> None:
    embedder = Counting(waits=[1])
    work = EmbeddingQueue(library, lambda: embedder, 2)
    threading.Timer(0.2, embedder.go.set).start()
    landed = 0
    for number in range(10):
        work.take(*paper(f"p{number}", "the same in all", *(["and more"] if not number else [])))
        landed += len(list(work.go_on()))
        assert number + 1 - landed <= 6
    landed += len(list(work.rest()))
    work.close()
    assert (landed, embedder.calls) == (10, [2])


def test_what_two_papers_share_is_embedded_once(library: Library) -> None:
    embedder = Counting(waits=[1])
    work = EmbeddingQueue(library, lambda: embedder, 2)
    work.take(*paper("a", "shared", "of a"))
    assert not list(work.go_on())
    work.take(*paper("b", "of b", "shared", "shared"))
    embedder.go.set()
    assert names([*work.go_on(), *work.rest()]) == ["a", "b"]
    work.take(*paper("c", "shared", "of b"))
    assert names(list(work.go_on())) == ["c"]
    work.close()
    assert embedder.passages == ["shared", "of a", "of b"]
    assert library.recall([text_hash("shared")]).keys() == {text_hash("shared")}


def test_an_idle_embedder_gets_what_there_is_when_no_paper_is_at_hand(library: Library) -> None:
    embedder = Counting()
    work = EmbeddingQueue(library, lambda: embedder, 8)
    assert work.awaited() == []
    work.take(*paper("a", "one", "two"))
    assert not list(work.go_on())
    assert embedder.calls == []
    assert [future.done() for future in work.awaited()] == [True]
    found = list(work.go_on(send_less=True))
    while not found:
        assert not work.awaited() or work.awaited()[0].result(30) is not None
        found = list(work.go_on())
    assert (names(found), embedder.calls) == (["a"], [2])
    work.close()


def test_progress_is_told_of_every_chunk_once(library: Library) -> None:
    told: dict[str, int] = {}

    def embedded(file: SourceFile, chunks: int, of: int) -> None:
        told[file.sha256] = told.get(file.sha256, 0) + chunks
        assert told[file.sha256] <= of

    work = EmbeddingQueue(library, Counting, 3, embedded)
    for file, new in [paper("a", "one", "two", "one"), paper("b", "two", "three"), *papers(3, 4)]:
        work.take(file, new)
        list(work.go_on())
    list(work.rest())
    work.close()
    assert told == {"a": 3, "b": 2, "p0": 4, "p1": 4, "p2": 4}


class Gone(Counting):
    """Fails at the call of this number."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if len(self.calls) == self._at:
            raise ModelError("The model is gone.", "Bring it back.")
        return super().embed_passages(texts)


def test_an_error_of_the_embedder_comes_out_and_what_was_embedded_stays(library: Library) -> None:
    found: list[Landed] = []
    with pytest.raises(ModelError, match="The model is gone"):
        found.extend(land(library, papers(5, 3), Gone(3), 2))
    assert names(found) == ["p0", "p1"]
    assert embedder_threads() == []
    again = Counting()
    assert names(list(land(library, papers(5, 3)[2:], again, 2))) == ["p2", "p3", "p4"]
    assert again.passages == [f"passage {n} {m}" for n in range(2, 5) for m in range(3)]


def test_a_call_that_does_not_end_keeps_nobody_waiting(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_queue, "_PATIENCE_S", 0.01)
    embedder = Counting(waits=[1])
    work = EmbeddingQueue(library, lambda: embedder, 1)
    work.take(*paper("a", "one", "two"))
    work.awaited()
    work._send(less=True)
    assert embedder.begun.wait(30)
    work.close()
    (thread,) = embedder_threads()
    assert thread.daemon
    embedder.go.set()
    thread.join(30)
    assert embedder.passages == ["one"]  # the batch that waited was not begun


def embedder_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "embedder"]
