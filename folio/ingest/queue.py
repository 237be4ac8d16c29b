"""The queue of papers between reading and the library: embeds their passages without letting the embedder idle.

The embedder runs in its own thread, and the next batch is always ready; a batch may span papers. Meanwhile the caller's
thread, the only one that uses the library, saves the vectors and adds the papers that are complete.

The vectors that represent whole papers are kept up to date with the papers' metadata.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from queue import SimpleQueue

import numpy as np

from folio.errors import ModelError, PaperError, StoreRefused
from folio.ingest import chunking
from folio.papers.metadata import merged, paper_text
from folio.papers.model import NewPaper, SourceFile, Vectors
from folio.papers.sections import SectionMap
from folio.protocols import Embedder, TitledEmbedder
from folio.store.library import Library
from folio.store.rows import PaperVector, text_hash

# Batches given to the embedder: the current one and the next. A kill loses only these; all others have been saved.
_IN_FLIGHT = 2
# Papers in the queue per passage of a batch: enough for the batches in flight and one more, even if each paper has a
# single passage.
_MAX_PAPERS = _IN_FLIGHT + 1
# The queue takes no further paper once it holds this many characters, those of the largest paper, to limit memory.
_MAX_CHARACTERS = 20_000_000
# The problem of a page with a passage that the embedder has no vector for
NO_VECTOR = "no vector for a passage, which is found by its words alone; --rebuild asks the model again"
# Seconds to wait for the embedder's current call when the queue is closed early
_CLOSE_TIMEOUT_S = 2.0


@dataclass(slots=True)
class _QueuedPaper:
    """A paper that waits for vectors."""

    file: SourceFile
    paper: NewPaper
    hashes: list[str]  # the key of each passage, in order
    paper_hash: str | None  # the key of the text that represents the whole paper; None if there is none
    vectors: dict[str, Vectors]  # by key
    missing: set[str]  # the keys that have no vector yet


@dataclass(frozen=True, slots=True)
class EmbeddedPaper:
    """A paper whose vectors were computed on the computer that read it."""

    paper: NewPaper
    vectors: Mapping[str, Vectors]  # by the hash of their text


# A text to be embedded, and the title to embed it with, or ""
_Passage = tuple[str, str]


def _passages(paper: NewPaper, embedder: Embedder) -> list[_Passage]:
    """A paper's passages, with the title from the PDF if the embedder reads titles.

    Corrected titles are not used, so the same file always gives the same vectors.
    """
    is_read = isinstance(embedder, TitledEmbedder) and embedder.reads_titles
    title = paper.metadata.title.value if is_read else ""
    return [(paper.text[start:end], title) for start, end in paper.chunk_spans]


def _key(passage: _Passage) -> str:
    """The key of a passage's vector: the hash of its text, or of title and text, which no text without title has."""
    text, title = passage
    return text_hash(f"{title}\0{text}" if title else text)


def _embedding(embedder: Embedder) -> Callable[[Sequence[_Passage]], Vectors]:
    if isinstance(embedder, TitledEmbedder):
        return embedder.embed_titled
    return lambda passages: embedder.embed_passages([text for text, _ in passages])


def embed_paper(paper: NewPaper, embedder: Embedder, batch: int) -> EmbeddedPaper:
    """Embed a paper's passages, and the text that represents the whole paper.

    batch: passages per call of the embedder. Raises ModelError.
    """
    text = paper_text(paper.metadata, SectionMap(paper.sections))
    passages = [*_passages(paper, embedder), *([(text, "")] if text else [])]
    passage_of = {_key(passage): passage for passage in passages}
    hashes, embed = list(passage_of), _embedding(embedder)
    parts = [hashes[at : at + batch] for at in range(0, len(hashes), batch)]
    rows = [(part, embed([passage_of[digest] for digest in part])) for part in parts]
    return EmbeddedPaper(paper, {d: row for part, vectors in rows for d, row in zip(part, vectors, strict=True)})


# A file and its paper
PaperFile = tuple[SourceFile, NewPaper]
# A file, and its paper once that is in the library, or why the library refused it
Added = tuple[SourceFile, NewPaper | PaperError]


class EmbeddingQueue:
    """Embeds papers, and adds each to the library in one transaction once it has all its vectors.

    Close the queue after use. Call its methods from one thread, the library's, while holding the writer lock. A paper
    that the library refuses is yielded with a PaperError, and the queue continues. Errors of the embedder (ModelError)
    and the library (DiskFull) end the ingest: the next one uses the vectors saved so far.
    """

    def __init__(
        self,
        library: Library,
        get_embedder: Callable[[], Embedder],
        batch: int,
        embedded: Callable[[SourceFile, int, int], None] = lambda file, chunks, of: None,
    ) -> None:
        """get_embedder is called for the first paper. batch: passages per call of the embedder.

        embedded is called with a file, the number of its chunks just embedded, and their total.
        """
        self._library, self._get_embedder, self._batch, self._embedded = library, get_embedder, batch, embedded
        self._worker: _Worker | None = None
        self._embedder: Embedder | None = None
        self._unsent: deque[tuple[str, _Passage]] = deque()  # passages to be embedded, each once
        self._sent: deque[tuple[list[str], Future[Vectors]]] = deque()
        self._waiting: dict[str, list[_QueuedPaper]] = {}  # key -> the papers that wait for its vector
        self._paper_count = self._characters = 0
        self._complete: deque[_QueuedPaper] = deque()

    def put(self, file: SourceFile, read: NewPaper | EmbeddedPaper) -> None:
        """Queue a paper. Call `advance` before the next one, to keep the queue short."""
        paper, ready_vectors = (read.paper, read.vectors) if isinstance(read, EmbeddedPaper) else (read, {})
        if self._worker is None or self._embedder is None:
            self._embedder = self._get_embedder()
            self._worker = _Worker(_embedding(self._embedder))
        passages = _passages(paper, self._embedder)
        hashes = [_key(passage) for passage in passages]
        passage_of = dict(zip(hashes, passages, strict=True))
        paper_hash = None
        if text := text_of_new(self._library, paper):
            paper_hash = text_hash(text)
            passage_of.setdefault(paper_hash, (text, ""))
        vectors = {digest: ready_vectors[digest] for digest in passage_of.keys() & ready_vectors.keys()}
        if unknown := [digest for digest in passage_of if digest not in vectors and digest not in self._waiting]:
            vectors |= {key: vector for key, vector in self._library.recall(unknown).items() if vector.any()}
        missing = {digest: passage for digest, passage in passage_of.items() if digest not in vectors}
        queued = _QueuedPaper(file, paper, hashes, paper_hash, vectors, set(missing))
        for digest, passage in missing.items():
            if digest not in self._waiting:
                self._waiting[digest] = []
                self._unsent.append((digest, passage))
            self._waiting[digest].append(queued)
        self._paper_count += 1
        self._characters += len(paper.text)
        self._embedded(file, len(hashes) - len(missing.keys() & set(hashes)), len(hashes))
        if not missing:
            self._complete.append(queued)

    def pending_futures(self) -> list[Future[Vectors]]:
        """Futures to wait for: once one is done, `advance` can continue without another paper. May be empty."""
        if self._sent or not self._unsent:
            return [future for _, future in self._sent]
        ready: Future[Vectors] = Future()  # the embedder is idle and could start on a partial batch
        ready.cancel()
        return [ready]

    def advance(self, *, allow_partial: bool = False) -> Iterator[Added]:
        """Send batches, save computed vectors, add complete papers and yield them; waits only if the queue is full.

        allow_partial: give an idle embedder a partial batch, because no other paper has been read yet.
        """
        while True:
            is_full = self._paper_count >= _MAX_PAPERS * self._batch or self._characters >= _MAX_CHARACTERS
            self._send(allow_partial or is_full)
            if not self._complete and (is_full or len(self._unsent) >= self._batch):
                wait([self._sent[0][1]])
            elif not self._complete and not (self._sent and self._sent[0][1].done()):
                return
            if self._sent and self._sent[0][1].done():
                self._save_vectors()
                self._send(allow_partial)
            yield from self._add_complete()  # before the next batch, which may have failed

    def finish(self) -> Iterator[Added]:
        """Add all remaining papers."""
        while self._paper_count:
            self._send(allow_partial=True, even_if_busy=True)
            if self._sent and not self._complete:
                wait([self._sent[0][1]])
                self._save_vectors()
            yield from self._add_complete()

    def close(self) -> None:
        """Stop the embedder's thread. Vectors that have not been saved are lost."""
        if self._worker is not None:
            self._worker.stop(future for _, future in self._sent)

    def _send(self, allow_partial: bool, even_if_busy: bool = False) -> None:
        """Keep batches in flight. A partial batch is sent only to an idle embedder, unless `even_if_busy`."""
        while self._worker and self._unsent and len(self._sent) < _IN_FLIGHT:
            if len(self._unsent) < self._batch and not (allow_partial and (even_if_busy or not self._sent)):
                return
            part = [self._unsent.popleft() for _ in range(min(self._batch, len(self._unsent)))]
            self._sent.append(([digest for digest, _ in part], self._worker.submit([passage for _, passage in part])))

    def _save_vectors(self) -> None:
        """Save the vectors of the oldest batch in flight, and give them to their papers."""
        hashes, future = self._sent[0]
        vectors = future.result()
        known = [at for at, vector in enumerate(vectors) if vector.any()]
        self._library.remember([hashes[at] for at in known], vectors[known])
        self._sent.popleft()
        saved: dict[int, tuple[_QueuedPaper, set[str]]] = {}
        for digest, vector in zip(hashes, vectors, strict=True):
            for queued in self._waiting.pop(digest):
                queued.vectors[digest] = vector
                queued.missing.remove(digest)
                saved.setdefault(id(queued), (queued, set()))[1].add(digest)
        for queued, digests in saved.values():
            if passages := len(digests.intersection(queued.hashes)):
                self._embedded(queued.file, passages, len(queued.hashes))
            if not queued.missing:
                self._complete.append(queued)

    def _add_complete(self) -> Iterator[Added]:
        while self._complete:
            queued = self._complete.popleft()
            file, paper = queued.file, _with_problem(queued)
            self._paper_count -= 1
            self._characters -= len(paper.text)
            ids = chunking.chunk_ids(paper)
            vectors = np.stack([queued.vectors[key] for key in queued.hashes])
            digest = queued.paper_hash
            has_vector = digest is not None and queued.vectors[digest].any()
            paper_vector = PaperVector(digest, queued.vectors[digest]) if digest is not None and has_vector else None
            try:
                self._library.add(paper, file, ids, vectors, paper_vector)
            except StoreRefused as error:
                yield file, PaperError(error.happened, "Save the file to a new PDF, or leave it out of the folder.")
            else:
                yield file, paper


def _with_problem(queued: _QueuedPaper) -> NewPaper:
    """The paper; if the embedder has no vector for some passages, with their pages among its problems.

    Such a vector is zeros, which resemble nothing, so that a search finds these passages by their words alone.
    """
    paper = queued.paper
    without = [
        span for span, key in zip(paper.chunk_spans, queued.hashes, strict=True) if not queued.vectors[key].any()
    ]
    if not without:
        return paper
    pages = sorted({paper.pages.page_at(start) for start, _ in without})
    where = f"pp. {', '.join(map(str, pages))}" if len(pages) > 1 else f"p. {pages[0]}"
    return replace(paper, problems=(*paper.problems, f"{where}: {NO_VECTOR}"))


def embed_and_add(library: Library, papers: Iterable[PaperFile], embedder: Embedder, batch: int) -> Iterator[PaperFile]:
    """Embed papers and add them to the library; yields each paper once it has been added.

    batch: passages per call of the embedder. Raises ModelError, DiskFull; PaperError for a paper that the library
    refuses. The caller holds the writer lock.
    """
    with closing(EmbeddingQueue(library, lambda: embedder, batch)) as queue:
        for file, paper in papers:
            queue.put(file, paper)
            yield from map(_accepted, queue.advance())
        yield from map(_accepted, queue.finish())


def _accepted(added: Added) -> PaperFile:
    file, paper = added
    if isinstance(paper, PaperError):
        raise paper
    return file, paper


class _Worker:
    """The embedder's thread: a daemon, so that the program can end during a call that takes minutes."""

    def __init__(self, embed: Callable[[Sequence[_Passage]], Vectors]) -> None:
        self._embed = embed
        self._jobs: SimpleQueue[tuple[list[_Passage], Future[Vectors]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="embedder", daemon=True)
        self._thread.start()

    def submit(self, passages: list[_Passage]) -> Future[Vectors]:
        future: Future[Vectors] = Future()
        self._jobs.put((passages, future))
        return future

    def stop(self, futures: Iterable[Future[Vectors]]) -> None:
        """Cancel the waiting calls, and wait briefly for the current one."""
        for future in futures:
            future.cancel()
        self._jobs.put(None)
        self._thread.join(_CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        while job := self._jobs.get():
            passages, future = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._embed(passages))
            except BaseException as error:  # raised again by future.result()
                future.set_exception(error)
                return


def text_of_new(library: Library, paper: NewPaper) -> str:
    """The text that will represent a new paper, with corrections that people made before the paper was added again."""
    layers = {**library.metadata_layers(paper.id), "pdf": paper.metadata}
    return paper_text(merged(layers), SectionMap(paper.sections))


def refresh(library: Library, get_embedder: Callable[[], Embedder], batch: int) -> int:
    """Embed every paper that has no vector or whose text has changed; returns how many. A batch is one transaction.

    If the model cannot be used, the old vectors stay, and papers without a vector are ranked by words alone. The caller
    holds the writer lock.
    """
    stored = library.paper_vectors()
    texts = {paper.id: paper_text(paper.metadata, paper.sections) for paper in library.papers()}
    hashes = {id: text_hash(text) for id, text in texts.items() if text}
    outdated = iter([id for id, digest in hashes.items() if id not in stored or stored[id].text_hash != digest])
    count = 0
    while ids := list(islice(outdated, batch)):
        vectors = library.recall([hashes[id] for id in ids])
        missing = {hashes[id]: texts[id] for id in ids if hashes[id] not in vectors}
        if missing:
            try:
                vectors |= zip(missing, get_embedder().embed_passages(list(missing.values())), strict=True)
            except ModelError:
                return count
        library.set_paper_vectors({id: PaperVector(hashes[id], vectors[hashes[id]]) for id in ids})
        count += len(ids)
    return count
