"""The store that a set of questions is asked of: the index, or one of its own for a folder of papers or plain texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from folio.app import App
from folio.evaluate.dataset import Document, EvalSet
from folio.ingest import chunking, embedding_queue
from folio.protocols import Embedder
from folio.search.retriever import Retriever
from folio.store import indexes
from folio.store.fingerprint import Reading, fingerprint
from folio.store.library import Library
from folio.types import NewPaper, PageMap, Progress, SourceFile

# Settings that say where things are, or what is shown, and change no figure.
_NO_FIGURE = {"PAPERS_DIR", "VECTORSTORE_DIR", "INGESTED_JSON", "MODELS_DIR", "QUERY_LOG", "PDF_VIEWER"}


@dataclass(frozen=True, slots=True)
class EvaluationStore:
    """What a set of questions is asked of."""

    library: Library
    retriever: Retriever
    about: dict[str, str]  # what the store was made with, and how much is in it


def apart(app: App, papers: Path) -> App:
    """The same app over a store of its own for this folder of papers, kept below the index.

    The store's name tells the folder and all that its vectors depend on, so that each change of settings has its own.
    """
    made_with = fingerprint(app.new_embedder(), app.reading)
    place = papers.resolve()
    key = hashlib.sha256(json.dumps([str(place), made_with], sort_keys=True).encode()).hexdigest()[:12]
    return app.over(place, app.store_folder / indexes.EVALUATIONS / f"{place.name}-{key}")


@contextmanager
def of_papers(app: App) -> Iterator[EvaluationStore]:
    """The store of an app. Raises StoreMissing, StoreMismatch, ModelError."""
    library = app.open_library()
    try:
        yield EvaluationStore(library, app.retriever(library), _about(library, app.store_folder))
    finally:
        library.close()


@contextmanager
def of_texts(app: App, evalset: EvalSet, progress: Progress) -> Iterator[EvaluationStore]:
    """A store of the set's own documents, made where it is not there yet.

    A set that judges documents has one passage a document, as the published figures of such sets do.

    Raises StoreBusy, DiskFull, ModelError.
    """
    embedder = app.new_embedder()
    folder = make_text_store(
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
        yield EvaluationStore(library, retriever, _about(library, folder))
    finally:
        library.close()


def figures_settings(app: App) -> dict[str, str]:
    """Every setting that may change a figure."""
    return {name: value for name, value in app.settings_used().items() if name not in _NO_FIGURE}


def _about(library: Library, folder: Path) -> dict[str, str]:
    counts = library.counts()
    return {
        "store": str(folder),
        "papers": str(counts["papers"]),
        "chunks": str(counts["chunks"]),
        **library.fingerprint(),
    }


# A store of plain texts

LABEL = "embedding documents"


def make_text_store(
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
    """A store of these documents in a folder of its own below `folder`; returns that folder.

    The store lies as one of papers does: `Library(made / store.LIBRARY)` and `store.open_indexes(made, ...)` open it.
    Each document is a paper of one page: its file is the document's id, and its text the document's, so that an offset
    in the one is one in the other. A document without any text is left out. What was made before of the same
    documents with the same fingerprint is taken as it is, and one that was broken off is gone on with.

    whole: one passage a document, title and text joined by a space, which is how the published figures of BEIR sets
    are made (Thakur et al. 2021, arXiv:2104.08663); the paper has no title then, as that would count it twice.
    batch: passages in one call of the embedder. progress: gets documents done so far, and of how many.

    Raises StoreBusy, DiskFull, ModelError.
    """
    # How a whole document is one passage does not depend on how papers are cut.
    made_with = {**fingerprint(embedder, Reading(0, 0) if whole else reading), "whole": str(whole)}
    papers = {document.id: _paper(document, reading, whole) for document in documents}
    wanted = {paper.id: (name, paper) for name, paper in papers.items() if paper.spans}
    made = folder / _key(made_with, wanted)
    if _is_whole(made, set(wanted), engine):
        progress(LABEL, len(wanted), len(wanted))
        return made
    with indexes.writing(made):
        library = Library(made / indexes.LIBRARY, create=True)
        try:
            library.set_fingerprint(made_with)
            there = {paper.id for paper in library.papers()}
            left = [(SourceFile(name, name, id), paper) for id, (name, paper) in wanted.items() if id not in there]
            if not left:
                progress(LABEL, len(wanted), len(wanted))
            for done, _ in enumerate(
                embedding_queue.embed_and_add(library, left, embedder, batch), len(wanted) - len(left) + 1
            ):
                progress(LABEL, done, len(wanted))
            library.forget_pending()
            indexes.update_indexes(made, library, engine)
        finally:
            library.close()
    return made


def _paper(document: Document, reading: Reading, whole: bool) -> NewPaper:
    """A document as a paper of one page. Its id tells it from another document with the same text."""
    text, title = document.text, document.title
    if whole:
        text, title = f"{title} {text}".strip(), ""
        spans: tuple[tuple[int, int], ...] = ((0, len(text)),) if text else ()
    else:
        spans = chunking.split(text, reading.chunk_size, reading.chunk_overlap)
    id = hashlib.sha256(f"{document.id}\0{text}".encode()).hexdigest()
    return NewPaper(id, title, (), None, text, PageMap((0,), ("",)), spans)


def _key(made_with: dict[str, str], papers: dict[str, tuple[str, NewPaper]]) -> str:
    """A name for the store that these documents give when they are embedded so."""
    told = [made_with, sorted((id, paper.title) for id, (_, paper) in papers.items())]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _is_whole(made: Path, papers: set[str], engine: indexes.Engine) -> bool:
    """Whether this store has been made to the end."""
    if not (made / indexes.LIBRARY).exists():
        return False
    library = Library(made / indexes.LIBRARY)
    try:
        return {paper.id for paper in library.papers()} == papers and not indexes.faults(made, library, engine)
    finally:
        library.close()
