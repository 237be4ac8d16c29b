"""Papers that have been read -> vectors -> library, so that the embedder never waits for what it could be given.

The embedder works in a thread of its own and finds the next batch ready; a batch may hold the end of one paper and the
beginning of the next. Meanwhile the caller's thread, the only one that touches the library, writes down what has been
embedded and lands the papers that are complete.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

from folio.ingest import chunking
from folio.protocols import Embedder
from folio.store.library import Library, text_hash
from folio.types import NewPaper, SourceFile, Vectors

# Batches that are with the embedder: the one that it works on and the one that it takes next. They are what a kill
# costs: all others have been written down.
_AHEAD = 2
# Papers that are held until their vectors are there, for each passage of a batch: enough to fill those two and a third,
# however few passages a paper has.
_HELD = _AHEAD + 1
# Seconds that a call of the embedder gets to end when the work is broken off. Then it is left to itself.
_PATIENCE_S = 2.0


@dataclass(slots=True)
class _Held:
    """A paper that waits for vectors."""

    file: SourceFile
    paper: NewPaper
    hashes: list[bytes]  # of each passage's text, in order
    vectors: dict[bytes, Vectors]
    missing: set[bytes]


Landed = tuple[SourceFile, NewPaper]


class EmbeddingQueue:
    """Takes papers, and lands each in one transaction when all its vectors are there. Closed when no longer used.

    Its methods are called by one thread, the library's, whose caller holds the writer's place. What they raise of the
    embedder (ModelError) or of the library (DiskFull) ends the work: vectors that have been written down stay, and are
    not computed again by the next ingest.
    """

    def __init__(
        self,
        library: Library,
        get_embedder: Callable[[], Embedder],
        batch: int,
        embedded: Callable[[SourceFile, int, int], None] = lambda file, chunks, of: None,
    ) -> None:
        """get_embedder is called when the first paper is taken. batch: passages in one call of the embedder.

        embedded is told of a paper's chunks as they are done: how many, and of how many in all.
        """
        self._library, self._get_embedder, self._batch, self._embedded = library, get_embedder, batch, embedded
        self._worker: _Worker | None = None
        self._todo: deque[tuple[bytes, str]] = deque()  # passages to be embedded, each text once
        self._sent: deque[tuple[list[bytes], Future[Vectors]]] = deque()
        self._awaited: dict[bytes, list[_Held]] = {}  # text hash -> the papers that wait for it
        self._held = 0
        self._complete: deque[_Held] = deque()

    def take(self, file: SourceFile, paper: NewPaper) -> None:
        """A paper to be landed. `go_on` is called before the next one is taken: it keeps their number small."""
        if self._worker is None:
            self._worker = _Worker(self._get_embedder().embed_passages)
        texts = [paper.text[start:end] for start, end in paper.spans]
        hashes = [text_hash(text) for text in texts]
        vectors = self._library.recall([digest for digest in hashes if digest not in self._awaited])
        missing = {digest: text for digest, text in zip(hashes, texts, strict=True) if digest not in vectors}
        held = _Held(file, paper, hashes, vectors, set(missing))
        for digest, text in missing.items():
            if digest not in self._awaited:
                self._awaited[digest] = []
                self._todo.append((digest, text))
            self._awaited[digest].append(held)
        self._held += 1
        self._embedded(file, len(texts) - len(missing), len(texts))
        if not missing:
            self._complete.append(held)

    def awaited(self) -> list[Future[Vectors]]:
        """One of these is done when there is something to do without a further paper; never so where there are none."""
        if self._sent or not self._todo:
            return [future for _, future in self._sent]
        idle: Future[Vectors] = Future()  # the embedder has nothing to do, and could begin with less than a batch
        idle.cancel()
        return [idle]

    def go_on(self, *, send_less: bool = False) -> Iterator[Landed]:
        """Give the embedder work, write down what it has done, land what is complete; wait only where too much is held.

        send_less: where the embedder is idle, less than a batch is sent: no further paper is at hand.
        """
        while True:
            too_many = self._held >= _HELD * self._batch
            self._send(send_less or too_many)
            if not self._complete and (too_many or len(self._todo) >= self._batch):
                wait([self._sent[0][1]])
            elif not self._complete and not (self._sent and self._sent[0][1].done()):
                return
            while self._sent and self._sent[0][1].done():
                self._write_down()
                self._send(send_less)
            yield from self._land()

    def rest(self) -> Iterator[Landed]:
        """Land everything that has been taken."""
        while self._held:
            self._send(less=True, behind=True)
            if self._sent and not self._complete:
                wait([self._sent[0][1]])
                self._write_down()
            yield from self._land()

    def close(self) -> None:
        """End the embedder's thread. What it has embedded and nobody has taken is lost."""
        if self._worker is not None:
            self._worker.stop(future for _, future in self._sent)

    def _send(self, less: bool, behind: bool = False) -> None:
        """Keep the embedder in work. less: a batch need not be full, behind: not even one that waits."""
        while self._worker and self._todo and len(self._sent) < _AHEAD:
            if len(self._todo) < self._batch and not (less and (behind or not self._sent)):
                return
            part = [self._todo.popleft() for _ in range(min(self._batch, len(self._todo)))]
            self._sent.append(([digest for digest, _ in part], self._worker.submit([text for _, text in part])))

    def _write_down(self) -> None:
        """Remember the vectors of the batch that has been longest with the embedder, and hand them to their papers."""
        hashes, future = self._sent[0]
        fresh = future.result()
        self._library.remember(hashes, fresh)
        self._sent.popleft()
        told: dict[int, tuple[_Held, int]] = {}
        for digest, vector in zip(hashes, fresh, strict=True):
            for held in self._awaited.pop(digest):
                held.vectors[digest] = vector
                held.missing.remove(digest)
                told[id(held)] = held, told.get(id(held), (held, 0))[1] + 1
        for held, count in told.values():
            self._embedded(held.file, count, len(held.hashes))
            if not held.missing:
                self._complete.append(held)

    def _land(self) -> Iterator[Landed]:
        while self._complete:
            held = self._complete.popleft()
            ids = [chunking.chunk_id(held.paper.id, start, end) for start, end in held.paper.spans]
            self._library.add(held.paper, held.file, ids, np.stack([held.vectors[digest] for digest in held.hashes]))
            self._held -= 1
            yield held.file, held.paper


def land(library: Library, papers: Iterable[Landed], embedder: Embedder, batch: int) -> Iterator[Landed]:
    """Embed papers that have been read and put them into the library; yields each when it has landed.

    batch: passages in one call of the embedder. Raises ModelError, DiskFull. The caller holds the writer's place.
    """
    with closing(EmbeddingQueue(library, lambda: embedder, batch)) as landing:
        for file, paper in papers:
            landing.take(file, paper)
            yield from landing.go_on()
        yield from landing.rest()


class _Worker:
    """The embedder's thread. It does not keep the program from ending, as a call to a server may take minutes."""

    def __init__(self, embed: Callable[[Sequence[str]], Vectors]) -> None:
        self._embed = embed
        self._jobs: SimpleQueue[tuple[list[str], Future[Vectors]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="embedder", daemon=True)
        self._thread.start()

    def submit(self, texts: list[str]) -> Future[Vectors]:
        future: Future[Vectors] = Future()
        self._jobs.put((texts, future))
        return future

    def stop(self, futures: Iterable[Future[Vectors]]) -> None:
        """Begin nothing more, and wait a little for the call that is going on."""
        for future in futures:
            future.cancel()
        self._jobs.put(None)
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        while job := self._jobs.get():
            texts, future = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._embed(texts))
            except BaseException as error:  # raised again where the result is taken
                future.set_exception(error)
                return
