"""The same papers in a library on this computer and in one on a server, to compare what their indexes find."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path

from folio.ingest.chunking import chunk_ids, split
from folio.papers.metadata import simple_metadata
from folio.papers.model import NewPaper, PageMap, SourceFile
from folio.shared import server_index
from folio.shared.postgres import PostgresDatabase
from folio.shared.server_search import ServerIndexes, open_server_indexes
from folio.store.bm25 import TantivyIndex
from folio.store.library import Library
from folio.store.vectors import VectorIndex
from folio.text import sentence_spans
from tests.helpers.fakes import HashingEmbedder
from tests.helpers.paths import ROOT

FINGERPRINT = {"embedder": "hashing", "dimension": "64", "chunk_size": "400"}


class LibraryPair:
    """Both libraries, and their indexes."""

    def __init__(self, folder: Path, url: str, *, dual: bool = False) -> None:
        self.url = url
        self.embedder = HashingEmbedder()
        self.database = PostgresDatabase(url, create=True)
        self.local, self.shared = Library(folder / "library.sqlite", create=True), Library(self.database)
        for library in (self.local, self.shared):
            library.set_fingerprint({**FINGERPRINT, "index": "dual" if dual else "single"})
        self._dual = dual

    def close(self) -> None:
        self.local.close()
        self.shared.close()

    def add(self, name: str, text: str, title: str = "") -> str:
        """Add a paper to both under the file `name`; returns its id."""
        spans = split(text, 400, 0 if self._dual else 50)  # a fine passage lies in one passage only
        fine = tuple(self._fine(text, *span) for span in spans) if self._dual else ()
        id = hashlib.sha256(text.encode()).hexdigest()
        paper = NewPaper(id, simple_metadata(title or name), text, PageMap((0,), ("",)), spans, fine_spans=fine)
        vectors = self.embedder.embed_passages([text[start:end] for start, end in paper.chunk_spans])
        for library in (self.local, self.shared):
            library.add(paper, SourceFile(f"/papers/{name}", name, id), chunk_ids(paper), vectors)
        return id

    def add_all(self, texts: Sequence[str], first: int = 0) -> list[str]:
        """Add each under the file of its number, from `first` on; returns their ids."""
        return [self.add(f"{number}.pdf", text) for number, text in enumerate(texts, first)]

    def nearest(self, questions: Sequence[str]) -> list[tuple[list[tuple[int, float]], list[tuple[int, float]]]]:
        """What new indexes on disk find for each question, by words and by meaning."""
        words, vectors = self.bm25(), self.vectors()
        return [
            (words.search(question, 20), vectors.search(self.embedder.embed_query(question), 20))
            for question in questions
        ]

    def _fine(self, text: str, start: int, end: int) -> tuple[tuple[int, int], ...]:
        return tuple((start + low, start + high) for low, high in sentence_spans(text[start:end]))

    def drop(self, name: str) -> None:
        for library in (self.local, self.shared):
            library.drop(f"/papers/{name}")

    def retitle(self, paper: str, title: str) -> None:
        for library in (self.local, self.shared):
            library.set_metadata(paper, "person", simple_metadata(title))

    def update(self) -> ServerIndexes:
        """The indexes on the server, brought to the library's generation."""
        server_index.update(self.database, self.shared)
        return open_server_indexes(self.database, self.shared)

    def bm25(self) -> TantivyIndex:
        """A new index of the local library, without a history."""
        with self.local.reading() as stamp:
            index = TantivyIndex.create(stamp)
            index.add(self.local.passages(), stamp)
        return index

    def vectors(self, fine: bool = False) -> VectorIndex:
        """The same, flat."""
        with self.local.reading() as stamp:
            index = VectorIndex(64, stamp, self.local.vectors_of)
            index.update(self.local.chunk_ids(grain="fine" if fine else "passage"), (), stamp)
        return index


def real_texts() -> tuple[list[str], list[str]]:
    """Texts of papers and questions about them: real ones where there are any beside the checkout, else made up."""
    places = (parent / "shared" / "covidqa" / "dev.json" for parent in (ROOT.parent, ROOT.parent.parent))
    if (path := next(filter(Path.exists, places), None)) is None:
        return made_up_texts(40, 12_000), []
    papers = json.loads(path.read_text(encoding="utf-8"))
    asked = dict.fromkeys(entry["question"].strip() for paper in papers for entry in paper["questions"])
    return list(dict.fromkeys(paper["text"] for paper in papers)), list(asked)


def made_up_texts(count: int, characters: int, seed: int = 1) -> list[str]:
    """Texts of made-up words, as frequent as words are (Zipf), some of them compounds and numbers."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghiklmnoprstuvwyz", k=chance.randint(3, 10))) for _ in range(5000)]
    words[::17] = [f"{word}-{chance.randint(1, 99)}.{word[:3]}" for word in words[::17]]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    texts = []
    for _ in range(count):
        sentences: list[str] = []
        while sum(map(len, sentences)) < characters:
            sentences.append(" ".join(chance.choices(words, weights, k=chance.randint(4, 20))).capitalize() + ".")
        texts.append(" ".join(sentences))
    return texts


def made_up_questions(texts: Sequence[str], count: int, seed: int = 2) -> list[str]:
    """A few words of a text each."""
    chance = random.Random(seed)
    return [" ".join(chance.sample(chance.choice(texts).split(), chance.randint(1, 8))) for _ in range(count)]
