"""Opens the store for an evaluation: the index, or a separate one for a folder of papers or plain texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from folio.app import App
from folio.evaluate.dataset import Document, EvalSet
from folio.ingest import chunking, embedding_queue
from folio.paper_metadata import simple_metadata
from folio.protocols import Embedder
from folio.search.retriever import Retriever
from folio.store import indexes
from folio.store.fingerprint import Reading, fingerprint
from folio.store.library import Library
from folio.types import NewPaper, PageMap, Progress, SourceFile

# Settings for locations and display, which do not affect the metrics.
_IRRELEVANT_SETTINGS = {"PAPERS_DIR", "VECTORSTORE_DIR", "INGESTED_JSON", "MODELS_DIR", "QUERY_LOG", "PDF_VIEWER"}


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """An opened store to evaluate."""

    library: Library
    retriever: Retriever
    about: dict[str, str]  # the store's folder, size and fingerprint


def app_for_papers(app: App, papers: Path) -> App:
    """The app over a separate store for this folder of papers, kept below the index.

    The store's name depends on the folder and everything that affects its vectors: each configuration has a store.
    """
    made_with = fingerprint(app.new_embedder(), app.reading)
    place = papers.resolve()
    key = hashlib.sha256(json.dumps([str(place), made_with], sort_keys=True).encode()).hexdigest()[:12]
    return app.over(place, app.store_folder / indexes.EVALUATIONS / f"{place.name}-{key}")


@contextmanager
def open_paper_store(app: App) -> Iterator[OpenedStore]:
    """Open the app's store. Raises StoreMissing, StoreMismatch and ModelError."""
    library = app.open_library()
    try:
        yield OpenedStore(library, app.retriever(library), _about(library, app.store_folder))
    finally:
        library.close()


@contextmanager
def open_text_store(app: App, evalset: EvalSet, progress: Progress) -> Iterator[OpenedStore]:
    """Open a store of the set's own documents; it is built if it does not exist yet.

    A BEIR set has one passage per document, as in published results. Raises StoreBusy, DiskFull and ModelError.
    """
    embedder = app.new_embedder()
    folder = build_text_store(
        app.store_folder / indexes.EVALUATIONS,
        evalset.documents,
        embedder,
        app.reading,
        whole=evalset.relevance is not None,
        engine=app.lexical_engine,
        batch=app.embed_batch,
        progress=progress,
    )
    library = Library(folder / indexes.LIBRARY)
    try:
        retriever = app.retriever_over(
            library, embedder, lambda: indexes.open_indexes(folder, library, app.lexical_engine, app.notice)
        )
        yield OpenedStore(library, retriever, _about(library, folder))
    finally:
        library.close()


def relevant_settings(app: App) -> dict[str, str]:
    """The settings that may affect the metrics."""
    return {name: value for name, value in app.settings_used().items() if name not in _IRRELEVANT_SETTINGS}


def _about(library: Library, folder: Path) -> dict[str, str]:
    counts = library.counts()
    return {
        "store": str(folder),
        "papers": str(counts["papers"]),
        "chunks": str(library.chunk_count()),
        "fine passages": str(library.chunk_count("fine")),
        **library.fingerprint(),
    }


# A store of plain texts

LABEL = "embedding documents"


def build_text_store(
    folder: Path,
    documents: Sequence[Document],
    embedder: Embedder,
    reading: Reading,
    *,
    whole: bool = False,
    engine: indexes.Engine = "tantivy",
    batch: int = 32,
    progress: Progress = lambda label, done, of: None,
) -> Path:
    """Build a store of these documents in a subfolder of `folder`; returns that subfolder.

    It has the layout of any store: `Library(made / indexes.LIBRARY)` and `indexes.open_indexes(made, ...)` open it.
    Each document becomes a one-page paper whose file is the document's id and whose text is the document's, so offsets
    are the same in both. Documents without text are skipped. A complete store of the same documents with the same
    fingerprint is reused; an interrupted build is resumed.

    whole: one passage per document, title and text joined by a space, as in published BEIR results (Thakur et al. 2021,
    arXiv:2104.08663); the paper then has no title, which would count twice. batch: passages per embedder call.
    progress: called with a label, the documents done and their total.

    Raises StoreBusy, DiskFull and ModelError.
    """
    # The chunk settings do not matter if a document is one passage.
    splitting = replace(reading, chunk_size=0, chunk_overlap=0) if whole else reading
    made_with = {**fingerprint(embedder, splitting), "whole": str(whole)}
    papers = {document.id: _paper(document, reading, whole) for document in documents}
    needed = {paper.id: (name, paper) for name, paper in papers.items() if paper.spans}
    store = folder / _key(made_with, needed)
    if _is_complete(store, set(needed), engine):
        progress(LABEL, len(needed), len(needed))
        return store
    with indexes.writing(store):
        library = Library(store / indexes.LIBRARY, create=True)
        try:
            library.set_fingerprint(made_with)
            stored = {paper.id for paper in library.papers()}
            missing = [(SourceFile(name, name, id), paper) for id, (name, paper) in needed.items() if id not in stored]
            if not missing:
                progress(LABEL, len(needed), len(needed))
            for done, _ in enumerate(
                embedding_queue.embed_and_add(library, missing, embedder, batch), len(needed) - len(missing) + 1
            ):
                progress(LABEL, done, len(needed))
            library.forget_pending()
            indexes.update_indexes(store, library, engine)
        finally:
            library.close()
    return store


def _paper(document: Document, reading: Reading, whole: bool) -> NewPaper:
    """A document as a one-page paper. Its id also depends on the document's id, so equal texts stay distinct."""
    text, title = document.text, document.title
    if whole:
        text, title = f"{title} {text}".strip(), ""
        spans: tuple[tuple[int, int], ...] = ((0, len(text)),) if text else ()
        fine = chunking.fine_spans(text, spans, reading.fine_size) if reading.fine_size else ()
    else:
        spans, fine = chunking.chunk_text(text, reading)
    id = hashlib.sha256(f"{document.id}\0{text}".encode()).hexdigest()
    return NewPaper(id, simple_metadata(title), text, PageMap((0,), ("",)), spans, fine_spans=fine)


def _key(made_with: dict[str, str], papers: dict[str, tuple[str, NewPaper]]) -> str:
    """The store's folder name, from the documents and the fingerprint."""
    contents = [made_with, sorted((id, paper.title) for id, (_, paper) in papers.items())]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]


def _is_complete(store: Path, papers: set[str], engine: indexes.Engine) -> bool:
    """Whether this store is complete and sound."""
    if not (store / indexes.LIBRARY).exists():
        return False
    library = Library(store / indexes.LIBRARY)
    try:
        return {paper.id for paper in library.papers()} == papers and not indexes.faults(store, library, engine)
    finally:
        library.close()
