"""The embedding queue: batches, papers added meanwhile, errors and closing."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from folio.errors import ModelError, PaperError
from folio.ingest import queue as embedding_queue
from folio.ingest.queue import Added, EmbeddingQueue, PaperFile, embed_and_add
from folio.papers.metadata import NO_METADATA, simple_metadata
from folio.papers.model import NewPaper, PageMap, SourceFile, Vectors
from folio.store.library import Library
from folio.store.rows import text_hash
from tests.helpers.fakes import HashingEmbedder

pytestmark = pytest.mark.fast


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    opened = Library(tmp_path / "library.sqlite", create=True)
    yield opened
    opened.close()


def paper(name: str, *passages: str) -> PaperFile:
    """A paper of one page with these passages. Nothing is known of it, so that it has no vector as a whole."""
    text, spans = "", []
    for passage in passages:
        spans.append((len(text), len(text) + len(passage)))
        text += passage + " "
    new = NewPaper(name, NO_METADATA, text, PageMap((0,), ("",)), tuple(spans))
    return SourceFile(f"/{name}.pdf", f"{name}.pdf", name), new


_ONE: Vectors = np.ones((1, 512), np.float32) / np.sqrt(512, dtype=np.float32)


def papers(count: int, passages: int) -> list[PaperFile]:
    return [paper(f"p{n}", *(f"passage {n} {m}" for m in range(passages))) for n in range(count)]


def names(landed: Sequence[Added]) -> list[str]:
    return [file.sha256 for file, _ in landed]


class Counting(HashingEmbedder):
    """Records the number of passages per call; the calls with these numbers (from 1) wait for `go`."""

    def __init__(self, waits: Sequence[int] = ()) -> None:
        super().__init__()
        self.calls: list[int] = []
        self.go = threading.Event()
        self.begun = threading.Event()  # set by a call that waits
        self._waits = waits

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(len(texts))
        if len(self.calls) in self._waits:
            self.begun.set()
            assert self.go.wait(30)
        return super().embed_passages(texts)


class Titled(Counting):
    """Reads each passage with its paper's title."""

    reads_titles = True

    def embed_titled(self, passages: Sequence[tuple[str, str]]) -> Vectors:
        return self.embed_passages([f"{title}: {text}" for text, title in passages])


def titled(name: str, title: str, *passages: str) -> PaperFile:
    file, new = paper(name, *passages)
    return file, replace(new, metadata=simple_metadata(title=title))


def test_a_passage_is_read_with_its_pdfs_title(library: Library) -> None:
    embedder = Titled()
    same = "Both papers say this."
    pairs = [titled("p0", "Otters", same, "otters sleep"), titled("p1", "Glaciers", same), paper("p2", same)]
    list(embed_and_add(library, pairs, embedder, 4))
    ((ids, vectors),) = library.vectors()
    found = {}
    for row, (id, chunk) in zip(vectors, library.chunks(ids).items(), strict=True):
        assert id == chunk.id
        found[chunk.paper_id, library.text(chunk.paper_id, chunk.start, chunk.end)] = row
    plain = HashingEmbedder()
    for (name, text), row in found.items():
        title = {"p0": "Otters", "p1": "Glaciers", "p2": ""}[name]
        assert np.array_equal(row, plain.embed_passages([f"{title}: {text}"])[0])
    assert not np.array_equal(found["p0", same], found["p1", same])


def test_what_was_embedded_with_a_title_is_not_embedded_again(library: Library) -> None:
    first = Titled(waits=[2])
    queue = EmbeddingQueue(library, lambda: first, 1)
    queue.put(*titled("p0", "Otters", "one", "two"))
    list(queue.advance())
    assert first.begun.wait(30)
    list(queue.advance())  # keeps the first vector; the second is never finished
    queue.close()
    first.go.set()
    again = Titled()
    assert names(list(embed_and_add(library, [titled("p0", "Otters", "one", "two")], again, 1))) == ["p0"]
    other = Titled()
    assert names(list(embed_and_add(library, [titled("p1", "Seals", "one", "two")], other, 1))) == ["p1"]
    assert len(other.calls) - len(again.calls) == 1


def test_batches_are_filled_across_papers(library: Library) -> None:
    embedder = Counting()
    found = list(embed_and_add(library, papers(9, 3), embedder, 4))
    assert embedder.calls == [4, 4, 4, 4, 4, 4, 3]
    assert names(found) == [f"p{n}" for n in range(9)]
    ((ids, vectors),) = library.vectors()
    for row, chunk in zip(vectors, library.chunks(ids).values(), strict=True):
        text = library.text(chunk.paper_id, chunk.start, chunk.end)
        assert (row == HashingEmbedder().embed_passages([text])[0]).all()


def test_papers_are_added_while_the_embedder_works(library: Library) -> None:
    embedder = Counting(waits=[2])
    queue = embed_and_add(library, papers(3, 2), embedder, 2)
    assert names([next(queue)]) == ["p0"]
    assert embedder.begun.wait(30)
    assert not embedder.go.is_set()
    assert [found.id for found in library.papers()] == ["p0"]
    embedder.go.set()
    assert names(list(queue)) == ["p1", "p2"]


def test_the_next_batch_is_sent_early(library: Library) -> None:
    embedder = Counting(waits=[1])
    queue = EmbeddingQueue(library, lambda: embedder, 2)
    for file, new in papers(2, 2):
        queue.put(file, new)
        assert not list(queue.advance())
    assert embedder.begun.wait(30)
    assert len(queue.pending_futures()) == 2
    embedder.go.set()
    assert names(list(queue.finish())) == ["p0", "p1"]
    queue.close()


@pytest.mark.parametrize(("passages", "batch", "most"), [(1, 4, 12), (3, 4, 5), (50, 4, 2)])
def test_the_queue_stays_short(library: Library, passages: int, batch: int, most: int) -> None:
    taken, landed, held = 0, 0, 0

    def source() -> Iterator[PaperFile]:
        nonlocal taken
        for found in papers(40, passages):
            taken += 1
            yield found

    for _ in embed_and_add(library, source(), Counting(), batch):
        landed += 1
        held = max(held, taken - landed + 1)
    assert landed == 40
    assert held <= most


@pytest.mark.parametrize(("characters", "most"), [(None, 6), (60, 3)], ids=["by papers", "by their text"])
def test_the_queue_stays_short_while_many_papers_wait(
    library: Library, monkeypatch: pytest.MonkeyPatch, characters: int | None, most: int
) -> None:
    if characters:
        monkeypatch.setattr(embedding_queue, "_MAX_CHARACTERS", characters)
    embedder = Counting(waits=[1])
    threading.Timer(0.2, embedder.go.set).start()
    with closing(EmbeddingQueue(library, lambda: embedder, 2)) as queue:
        landed = 0
        for number in range(10):
            queue.put(*paper(f"p{number}", "the same in all", *(["and more"] if not number else [])))
            landed += len(list(queue.advance()))
            assert number + 1 - landed <= most
        landed += len(list(queue.finish()))
    assert (landed, embedder.calls) == (10, [2])


def test_text_shared_by_two_papers_is_embedded_once(library: Library) -> None:
    embedder = Counting(waits=[1])
    queue = EmbeddingQueue(library, lambda: embedder, 2)
    queue.put(*paper("a", "shared", "of a"))
    assert not list(queue.advance())
    queue.put(*paper("b", "of b", "shared", "shared"))
    embedder.go.set()
    assert names([*queue.advance(), *queue.finish()]) == ["a", "b"]
    queue.put(*paper("c", "shared", "of b"))
    assert names(list(queue.advance())) == ["c"]
    queue.close()
    assert embedder.passages == ["shared", "of a", "of b"]
    assert library.recall([text_hash("shared")]).keys() == {text_hash("shared")}


def test_an_idle_embedder_gets_a_partial_batch(library: Library) -> None:
    embedder = Counting()
    queue = EmbeddingQueue(library, lambda: embedder, 8)
    assert queue.pending_futures() == []
    queue.put(*paper("a", "one", "two"))
    assert not list(queue.advance())
    assert embedder.calls == []
    assert [future.done() for future in queue.pending_futures()] == [True]
    found = list(queue.advance(allow_partial=True))
    while not found:
        assert not queue.pending_futures() or queue.pending_futures()[0].result(30) is not None
        found = list(queue.advance())
    assert (names(found), embedder.calls) == (["a"], [2])
    queue.close()


def test_progress_is_told_of_every_chunk_once(library: Library) -> None:
    counts: dict[str, int] = {}

    def embedded(file: SourceFile, chunks: int, of: int) -> None:
        counts[file.sha256] = counts.get(file.sha256, 0) + chunks
        assert counts[file.sha256] <= of

    queue = EmbeddingQueue(library, Counting, 3, embedded)
    for file, new in [paper("a", "one", "two", "one"), paper("b", "two", "three"), *papers(3, 4)]:
        queue.put(file, new)
        list(queue.advance())
    list(queue.finish())
    queue.close()
    assert counts == {"a": 3, "b": 2, "p0": 4, "p1": 4, "p2": 4}


class Gone(Counting):
    """Fails at the call with this number."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if len(self.calls) == self._at:
            raise ModelError("The model is gone.", "Bring it back.")
        return super().embed_passages(texts)


def test_an_embedder_error_is_raised_and_saved_vectors_stay(library: Library) -> None:
    found: list[PaperFile] = []
    with pytest.raises(ModelError, match="The model is gone"):
        found.extend(embed_and_add(library, papers(5, 3), Gone(3), 2))
    assert names(found) == ["p0", "p1"]
    assert embedder_threads() == []
    again = Counting()
    assert names(list(embed_and_add(library, papers(5, 3)[2:], again, 2))) == ["p2", "p3", "p4"]
    assert again.passages == [f"passage {n} {m}" for n in range(2, 5) for m in range(3)]


def test_closing_does_not_wait_for_an_endless_call(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_queue, "_CLOSE_TIMEOUT_S", 0.01)
    embedder = Counting(waits=[1])
    queue = EmbeddingQueue(library, lambda: embedder, 1)
    queue.put(*paper("a", "one", "two"))
    queue.pending_futures()
    queue._send(allow_partial=True)
    assert embedder.begun.wait(30)
    queue.close()
    (thread,) = embedder_threads()
    assert thread.daemon
    embedder.go.set()
    thread.join(30)
    assert embedder.passages == ["one"]  # the waiting batch was never started


def embedder_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "embedder"]


@pytest.mark.parametrize(
    "claims",
    [{"metadata": simple_metadata("\ud800")}, {"id": "p1"}, {"metadata": simple_metadata(arxiv="\udfff")}],
    ids=["a lone surrogate", "an id that is taken", "another surrogate"],
)
def test_a_paper_that_the_library_refuses_costs_no_other(library: Library, claims: dict[str, Any]) -> None:
    first, bad, last = papers(3, 2)
    library.add(replace(paper("x", "x")[1], id="p1"), SourceFile("/x.pdf", "x.pdf", "p1"), [1], _ONE)
    with closing(EmbeddingQueue(library, HashingEmbedder, 2)) as queue:
        landed: list[Added] = []
        for file, new in (first, (bad[0], replace(bad[1], **claims)), last):
            queue.put(file, new)
            landed += queue.advance()
        landed += queue.finish()
    assert [isinstance(result, PaperError) for _, result in landed] == [False, True, False]
    assert "The library cannot store this" in str(landed[1][1])
    assert {held.id for held in library.papers()} == {"p0", "p1", "p2"}
    assert library.check() == []


class WithoutSome(HashingEmbedder):
    """Has no vector for a passage with "qqq"."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed_passages(texts)
        return np.where([["qqq" in text] for text in texts], np.float32(0), vectors)


def test_a_passage_without_a_vector_is_kept_named_and_asked_for_again(library: Library) -> None:
    _, new = paper("p0", "one", "two qqq", "three", "four qqq")
    new = replace(new, pages=PageMap((0, 4, 12), ("", "", "")), problems=("p. 1: torn",))
    pairs = [(SourceFile("/p0.pdf", "p0.pdf", "p0"), new), paper("p1", "one", "five")]
    added = list(embed_and_add(library, pairs, WithoutSome(), 2))
    named = ("p. 1: torn", f"pp. 2, 3: {embedding_queue.NO_VECTOR}")
    assert [paper.problems for _, paper in added] == [named, ()]
    assert [paper.problems for paper in library.papers()] == [named, ()]
    ((ids, vectors),) = library.vectors()
    found = {
        library.text(c.paper_id, c.start, c.end): row
        for row, c in zip(vectors, library.chunks(ids).values(), strict=True)
    }
    assert [text for text, row in found.items() if not row.any()] == ["two qqq", "four qqq"]
    assert library.recall([text_hash("one"), text_hash("two qqq")]).keys() >= {text_hash("one")}
    again = Counting()
    list(embed_and_add(library, [paper("p2", "one", "two qqq")], again, 2))
    assert again.calls == [1]


def test_a_paper_without_any_vector_is_added(library: Library) -> None:
    (added,) = embed_and_add(library, [paper("p0", "one qqq", "two qqq")], WithoutSome(), 2)
    assert added[1].problems == (f"p. 1: {embedding_queue.NO_VECTOR}",)
