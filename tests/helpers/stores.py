"""A store that is filled without an ingest: a library of short texts, embedded by hashing, and its indexes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from folio.ingest.chunking import chunk_id, split
from folio.papers.metadata import simple_metadata
from folio.papers.model import NewPaper, PageMap, SourceFile
from folio.store.indexes import LIBRARY, Engine, update_indexes, writing
from folio.store.library import Library
from tests.helpers.fakes import HashingEmbedder

FINGERPRINT = {"embedder": "hashing", "dimension": "64", "chunk_size": "80"}
TEXTS = {
    "lattices": "A lattice is a discrete group of points. Its shortest vector is hard to find in high dimension.\n\n"
    "A signature samples a short vector near a point that the message chooses.\n\nKeys are large but signing is fast.",
    "sponges": "A sponge absorbs its input block by block. Then it squeezes out as many bits as are wanted.\n\n"
    "The permutation inside is public and fixed.\n\nIts capacity decides how secure the sponge is.",
    "gradients": "The gradient of the loss tells each weight which way to go. A step against it lowers the loss.\n\n"
    "Momentum remembers where the gradient pointed before.\n\nA schedule makes the steps shorter as training goes on.",
}
LATER = "Trees are balanced by rotations. A rotation keeps the order of the keys.\n\nLattices order keys in part only."
QUESTIONS = ("shortest vector in a lattice", "what does the gradient tell", "sponge capacity", "keys")


class Store:
    """A folder with a library that is filled without an ingest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.embedder = HashingEmbedder()
        self.library = Library(folder / LIBRARY, create=True)
        self.library.set_fingerprint(FINGERPRINT)

    def add(self, name: str, text: str, title: str = "") -> None:
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        spans = split(text, 80, 20)
        paper = NewPaper(sha256, simple_metadata(title or name.title()), text, PageMap((0,), ("",)), spans)
        ids = [chunk_id(sha256, start, end) for start, end in spans]
        vectors = self.embedder.embed_passages([text[start:end] for start, end in spans])
        self.library.add(paper, SourceFile(f"/papers/{name}.pdf", f"{name}.pdf", sha256), ids, vectors)

    def update(self, engine: Engine = "tantivy") -> None:
        with writing(self.folder):
            update_indexes(self.folder, self.library, engine)


class Notices(list[str]):
    def __call__(self, text: str) -> None:
        self.append(text)
