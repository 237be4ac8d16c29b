"""Keeps the vectors of papers as a whole up to date with what is known about the papers."""

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
    """The text that a paper will be searched by once it is in the library, with what people said of it before."""
    layers = {**library.metadata_layers(paper.id), "pdf": paper.metadata}
    return paper_text(merged(layers), SectionMap(paper.sections))


def refresh(library: Library, get_embedder: Callable[[], Embedder], batch: int) -> int:
    """Embed every paper that has no vector, or one of another text; returns how many. A batch is one transaction.

    A model that cannot be used is no error: the old vectors serve, and those papers are ranked by words. The caller
    holds the writer lock.
    """
    kept = library.paper_vectors()
    texts = {paper.id: paper_text(paper.metadata, paper.sections) for paper in library.papers()}
    hashes = {id: text_hash(text) for id, text in texts.items() if text}
    outdated = iter([id for id, digest in hashes.items() if id not in kept or kept[id].text_hash != digest])
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
