"""The documents of a plain text set as a store, so that what searches papers searches them too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from folio.evalset import Document
from folio.ingest import chunking, embedding_queue
from folio.protocols import Embedder
from folio.store import indexes
from folio.store.fingerprint import Reading, fingerprint
from folio.store.library import Library
from folio.types import NewPaper, PageMap, Progress, SourceFile

LABEL = "embedding documents"


def make(
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
            for done, _ in enumerate(embedding_queue.land(library, left, embedder, batch), len(wanted) - len(left) + 1):
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
