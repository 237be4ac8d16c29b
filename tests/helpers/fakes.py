"""Small working stand-ins for what is slow: an embedder by hashing, PDFs read without worker processes, tiny papers."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pymupdf

from config import Settings
from folio.app import App
from folio.errors import PaperError
from folio.ingest import discovery
from folio.ingest.discovery import Outcome
from folio.model_choice import ModelChoice
from folio.papers.model import Hit, Passage, Reading, SourceFile, Tokens, Vectors
from folio.protocols import Embedder, TermWeights
from folio.question.question import Question
from folio.store import indexes
from folio.system import workers
from folio.text import coverage, sentence_spans, tokenize
from tests.helpers.pdfs import save

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

# What the test papers say
LINES = {
    "lattices": [
        "A lattice is a discrete group of points in space.",
        "Its shortest vector is hard to find in high dimension.",
        "A signature samples a vector near a point.",
        "The message chooses that point by a hash.",
        "Keys are large but signing is fast enough.",
        "Verification multiplies one matrix by one vector.",
    ],
    "sponges": [
        "A sponge absorbs its input block by block.",
        "Then it squeezes out as many bits as are wanted.",
        "The permutation inside is public and fixed.",
        "Its capacity decides how secure the sponge is.",
        "Its rate decides how fast the input goes in.",
        "Padding makes the last block as long as the others.",
    ],
    "gradients": [
        "The gradient of the loss tells a weight where to go.",
        "A step against it makes the loss smaller at first.",
        "Momentum remembers where it pointed before.",
        "A schedule shortens the steps as training goes on.",
        "Noise in the batches helps to leave flat regions.",
        "Large batches need longer steps to learn as much.",
    ],
    "trees": [
        "Trees are balanced by rotations after an insertion.",
        "A rotation keeps the order of all the keys.",
        "Red nodes never have a child that is red.",
        "Every path to a leaf has as many black nodes.",
        "A lookup takes a logarithm of steps at most.",
        "Deletion is the case that books leave to readers.",
    ],
}


class HashingEmbedder:
    """A working embedder by feature hashing: each word adds to four places. Texts that share words point one way.

    What it embeds is kept in `passages` and `queries`, and the hash of each passage appended to the file `log`, a line
    each, so that a process can tell what another one embedded before it was killed.
    """

    def __init__(self, dimension: int = 64, name: str = "hashing", log: Path | None = None) -> None:
        self.name = name
        self._dimension = dimension
        self._log = log
        self.passages: list[str] = []
        self.queries: list[str] = []

    @property
    def dimension(self) -> int:
        return self._dimension

    def identity(self) -> dict[str, str]:
        return {"embedder": self.name, "dimension": str(self._dimension)}

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.passages += texts
        if self._log is not None:
            with self._log.open("a", encoding="ascii") as log:
                log.writelines(f"{digest(text)}\n" for text in texts)
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        self.queries += texts
        return np.stack([self._vector(text) for text in texts])

    def load_in_background(self) -> None:
        """There is nothing to load."""

    def is_word(self, word: str) -> bool:
        """It has read no dictionary."""
        return False

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """A word is a token, and its state the vector of the word: alike words match wholly, others hardly."""
        read = [list(re.finditer(r"\w+", text)) for text in texts]
        states = [[self._vector(word.group()) for word in words] for words in read]
        return [
            Tokens(np.array(own, dtype=np.float32).reshape(-1, self._dimension), tuple(word.span() for word in words))
            for own, words in zip(states, read, strict=True)
        ]

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self._dimension, dtype=np.float32)
        for word in re.findall(r"\w+", text.lower()) or [text]:
            hashed = hashlib.blake2b(word.encode(), digest_size=16).digest()
            for at in range(0, 16, 4):
                number = int.from_bytes(hashed[at : at + 4], "big")
                vector[(number >> 1) % self._dimension] += 1 if number & 1 else -1
        if not vector.any():
            vector[0] = 1
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


class CoverageReranker:
    """A working reranker: the share of the question's terms that a passage has, by IDF."""

    name = "coverage"
    reads: int | None = None

    def scores(self, question: Question, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        return [coverage(weights, tokenize(hit.text)) for hit in hits]


def digest(text: str) -> str:
    """What the log of a HashingEmbedder holds for a passage."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class WordReader:
    """A working reader of passages: the more of the question's words one has, the likelier it answers."""

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        asked = set(tokenize(question))

        def share(text: str) -> float:
            return len(asked & set(tokenize(text))) / max(1, len(asked))

        def read(one: Passage) -> Reading:
            words = [
                (share(one.text[start:end]), word.start())
                for start, end in sentence_spans(one.text)
                for word in re.compile(r"\S+").finditer(one.text, start, end)
            ]
            return Reading(share(f"{one.above} {one.text}"), *(tuple(row) for row in zip(*words, strict=True)))

        return [read(one) for one in passages]

    def load_in_background(self) -> None: ...


@dataclass(frozen=True)
class HashingModels(ModelChoice):
    """The models that the settings ask for, with an embedder by hashing."""

    hashing: HashingEmbedder = field(default_factory=HashingEmbedder)

    def embedder(self, made_with: str) -> HashingEmbedder:
        return self.hashing

    @property
    def meaning(self) -> HashingEmbedder:
        return self.hashing

    @cached_property
    def reader(self) -> WordReader:
        return WordReader()


@dataclass(frozen=True)
class HashingApp(App):
    """The whole tool, with an embedder by hashing."""

    hashing: HashingEmbedder = field(default_factory=HashingEmbedder)

    @cached_property
    def models(self) -> HashingModels:
        return HashingModels(self.settings, self.notice, self.hashing)

    def worker_embedders(self, embedder: Embedder) -> tuple[Callable[[], Embedder], ...]:
        return (HashingEmbedder,)

    def run(
        self, *, prune: bool = False, rebuild: bool = False, retry: Sequence[str] = (), on_ray: bool = False
    ) -> list[Outcome]:
        """What `python ingest.py` does, on PAPERS_DIR; retry: names of files that were given on the command line."""
        with indexes.writing(self.settings.VECTORSTORE_DIR):
            progress = RecordedProgress()
            found = discovery.find_pdfs([self.settings.PAPERS_DIR])
            files, outcomes = discovery.hash_files(found, progress)
            again = frozenset(str(self.settings.PAPERS_DIR / name) for name in retry)
            try:
                outcomes += (
                    self.rebuild(files, progress, on_ray=on_ray)
                    if rebuild
                    else self.ingest(files, progress, jobs=2 if on_ray else 1, retry=again, on_ray=on_ray)
                )
                outcomes += self.prune() if prune else ()
            finally:
                self.finish_ingest()
        return outcomes


def hashing_app(folder: Path, hashing: HashingEmbedder | None = None, **settings: Any) -> HashingApp:
    """An app with papers, store and record in this folder, small chunks and no reranker; any notice is an error."""
    chosen: dict[str, Any] = {
        "_env_file": None,
        "PAPERS_DIR": folder / "papers",
        "VECTORSTORE_DIR": folder / "store",
        "CACHE_DIR": folder / "cache",
        "INGESTED_JSON": folder / "ingested.json",
        "EMBEDDER": "auto",
        "LEXICAL": "tantivy",
        "RERANKER": "none",
        "CHUNK_SIZE": 100,
        "CHUNK_OVERLAP": 20,
        "EMBED_BATCH": 2,
        **settings,
    }
    return HashingApp(Settings(**chosen), _no_notice, hashing or HashingEmbedder())


def _no_notice(text: str) -> None:
    if not text.startswith("Trying once whether"):  # it depends on the speed of the machine alone
        raise AssertionError(f"a notice: {text}")


class RecordedProgress:
    """Records the progress of an ingest."""

    def __init__(self) -> None:
        self.plan: list[str] = []
        self.scans: list[tuple[str, int, int]] = []
        self.chunks: dict[str, int] = {}

    def hashed(self, file: Path) -> None:
        pass

    def planned(self, files: Sequence[SourceFile]) -> None:
        self.plan += [file.name for file in files]

    def scanned(self, file: SourceFile, pages: int, of: int) -> None:
        self.scans.append((file.name, pages, of))

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None:
        self.chunks[file.name] = self.chunks.get(file.name, 0) + chunks

    def done(self, outcome: Outcome) -> None:
        pass


def read_here(
    function: Callable[[ItemT], ResultT], items: Iterable[ItemT], **limits: float
) -> Generator[workers.Finished[ItemT, ResultT], None, None]:
    """Stands in for workers.run_guarded where its processes would cost more than the test: the same without them."""
    for item in items:
        try:
            yield workers.Finished(item, function(item))
        except PaperError as error:
            yield workers.Finished(item, error)


_READ: dict[tuple[str, str, str], Any] = {}


def read_once(
    function: Callable[[SourceFile], ResultT], items: Iterable[SourceFile], **limits: float
) -> Generator[workers.Finished[SourceFile, ResultT], None, None]:
    """read_here for the same papers ingested again and again: a file of a name is read once in each way, and kept."""
    how = str(getattr(function, "keywords", {}).get("reading"))
    for item in items:
        if getattr(item, "page", None) is not None or getattr(item, "scans", None):  # of a scan: not the first look
            yield from read_here(function, [item])
            continue
        key = how, item.sha256, Path(getattr(item, "file", item).path).name  # the title of a paper without one
        if key not in _READ:
            (_READ[key],) = read_here(function, [item])
        yield _READ[key]._replace(item=item)


def overwrite(path: Path, content: bytes) -> None:
    """Damage a file as a bad copy does: by another in its place. Cut short where it lies, it would end a process that
    has it mapped into memory, this one too."""
    beside = path.with_name(path.name + ".damage")
    beside.write_bytes(content)
    os.replace(beside, path)


def make_pdf(path: Path, subject: str, title: str = "", change: str = "", headings: tuple[str, ...] = ()) -> Path:
    """Two pages on a subject; `change` takes the place of the last line. headings: one over the text of each page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [*LINES[subject][:-1], change or LINES[subject][-1]]
    pages = [[(72.0, 100.0 + 14 * n, line) for n, line in enumerate(part)] for part in (lines[:3], lines[3:])]
    save(path, pages, metadata={"title": title or f"On {subject}"})
    if headings:
        with pymupdf.open(path) as document:
            for page, heading in zip(document, headings, strict=True):
                page.insert_text((72, 70), heading, fontname="hebo", fontsize=14)
            document.saveIncr()
    return path
