"""Keeps the vectors that represent whole papers up to date with the papers' metadata."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from folio.errors import ModelError
from folio.paper_metadata import merged
from folio.paper_text import paper_text
from folio.protocols import Embedder
from folio.sections import SectionMap
from folio.store.digests import text_hash
from folio.store.library import Library
from folio.store.paper_vectors import PaperVector
from folio.types import NewPaper


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
