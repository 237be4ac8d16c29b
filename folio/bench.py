"""The store that a set of questions is asked of: the index, or one of its own for a folder of papers or plain texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from folio import textstore
from folio.app import App
from folio.evalset import EvalSet
from folio.search.retriever import Retriever
from folio.store import indexes
from folio.store.fingerprint import fingerprint
from folio.store.library import Library
from folio.types import Progress

# Settings that say where things are, or what is shown, and change no figure.
_NO_FIGURE = {"PAPERS_DIR", "VECTORSTORE_DIR", "INGESTED_JSON", "MODELS_DIR", "QUERY_LOG", "PDF_VIEWER"}


@dataclass(frozen=True, slots=True)
class Bench:
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
    folder = app.settings.VECTORSTORE_DIR / indexes.EVALUATIONS / f"{place.name}-{key}"
    chosen = {"PAPERS_DIR": place, "VECTORSTORE_DIR": folder, "INGESTED_JSON": folder / "ingested.json"}
    return replace(app, settings=app.settings.model_copy(update=chosen))


@contextmanager
def of_papers(app: App) -> Iterator[Bench]:
    """The store of an app. Raises StoreMissing, StoreMismatch, ModelError."""
    library = app.open_library()
    try:
        yield Bench(library, app.retriever(library), _about(library, app.settings.VECTORSTORE_DIR))
    finally:
        library.close()


@contextmanager
def of_texts(app: App, evalset: EvalSet, progress: Progress) -> Iterator[Bench]:
    """A store of the set's own documents, made where it is not there yet.

    A set that judges documents has one passage a document, as the published figures of such sets do.

    Raises StoreBusy, DiskFull, ModelError.
    """
    settings, embedder = app.settings, app.new_embedder()
    folder = textstore.make(
        settings.VECTORSTORE_DIR / indexes.EVALUATIONS,
        evalset.documents,
        embedder,
        app.reading,
        whole=evalset.relevance is not None,
        engine=settings.LEXICAL,
        batch=settings.EMBED_BATCH,
        progress=progress,
    )
    library = Library(folder / indexes.LIBRARY)
    try:
        retriever = app.retriever_over(
            library, embedder, lambda: indexes.open_indexes(folder, library, settings.LEXICAL, app.notice)
        )
        yield Bench(library, retriever, _about(library, folder))
    finally:
        library.close()


def figures_settings(app: App) -> dict[str, str]:
    """Every setting that may change a figure."""
    return {name: str(value) for name, value in app.settings.model_dump().items() if name not in _NO_FIGURE}


def _about(library: Library, folder: Path) -> dict[str, str]:
    counts = library.counts()
    return {
        "store": str(folder),
        "papers": str(counts["papers"]),
        "chunks": str(counts["chunks"]),
        **library.fingerprint(),
    }
