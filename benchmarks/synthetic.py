"""A store of any size, made in minutes without a model: what the benchmarks of large stores search.

    python benchmarks/synthetic.py /tmp/big --chunks 232523 --dimension 768 --papers 3875
    python benchmarks/synthetic.py /tmp/big --like vectorstore/        modelled on another store's passages

Its papers go into a library as an ingest's do, and the indexes are made from that. Text is made of real sentences, put
together anew. Vectors lie as a model's do: each paper is modelled on a real one, with a topic that sets it apart, and
each passage leans to a passage of that one, to the topic, and to a direction of its own. With nothing to be modelled
on, the sentences are the sample paper's, and the vectors random ones with a common part, as sentence embedders' have.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from folio.ingest import pipeline
from folio.ingest.chunking import chunk_id
from folio.store import indexes
from folio.store.fingerprint import Reading, reading_fingerprint
from folio.store.library import Library
from folio.text import sentence_spans
from folio.types import NewPaper, PageMap, SourceFile, Vectors

SAMPLE = Path(__file__).resolve().parent.parent / "papers" / "folio-sample.pdf"
# Characters of a passage: what CHUNK_SIZE=1500 gives with real papers, on average.
PASSAGE = 1200
# How far a passage leans to each of: its paper's topic, a real passage, a direction of its own. Modelled on 55 papers,
# as many passages as they have are then as hard to search by lists as theirs: of 64 lists, 31 % must be read to find
# 99 % of the best 20. A question leans likewise to its passage, to another one, and to nothing.
PASSAGE_PARTS = (0.5, 1.0, 0.75)
QUESTION_PARTS = (1.0, 0.5, 1.0)
# How fast directions tell less and less, where no real vectors say so
FALL = 0.5


@dataclass(frozen=True, slots=True)
class Model:
    """What a store is modelled on."""

    sentences: tuple[str, ...]
    papers: tuple[Vectors, ...]  # each (its passages, dimension), rows of unit length


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that a made store can be asked: its words, its vector, and the passage that it was made from."""

    text: str
    vector: Vectors  # (dimension,), of unit length
    chunk: int


class Lookup:
    """An embedder that knows the vectors of these questions, and embeds nothing else."""

    name = "lookup"

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._vectors = {question.text: question.vector for question in asked}
        self.dimension = len(asked[0].vector)

    def identity(self) -> dict[str, str]:
        return identity(self.dimension)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError("a made store's passages have their vectors already")

    def embed_query(self, text: str) -> Vectors:
        return self._vectors[text]


def identity(dimension: int) -> dict[str, str]:
    """What an embedder says of itself that may ask a made store."""
    return {"embedder": "synthetic", "dimension": str(dimension)}


def modelled_on(folder: Path) -> Model:
    """The sentences and the vectors of a store's passages."""
    library = Library(folder / indexes.LIBRARY)
    try:
        ids = [library.chunk_ids_of([paper.id]) for paper in library.papers()]
        vectors = tuple(library.vectors_of(own) for own in ids if own)
        sentences = [sentence for passage in library.passages() for sentence in _sentences(passage.text)]
    finally:
        library.close()
    return Model(tuple(dict.fromkeys(sentences)), vectors)


def model_of_nothing(dimension: int) -> Model:
    """The sample paper's sentences, and random vectors of which any two have a cosine of about 0.2."""
    file = SourceFile(str(SAMPLE), SAMPLE.name, "")
    paper = pipeline.read_paper(file, Reading(1500, 0), 10)
    rng = np.random.default_rng(5)
    falling = np.arange(1, dimension + 1, dtype=np.float32) ** -FALL  # a few directions tell most
    common, *centres = _unit(falling * rng.standard_normal((56, dimension), dtype=np.float32))
    own = (_unit(falling * rng.standard_normal((18, dimension), dtype=np.float32)) for _ in centres)
    vectors = tuple(_unit(0.5 * common + centre + one) for centre, one in zip(centres, own, strict=True))
    return Model(tuple(_sentences(paper.text)), vectors)


def papers(model: Model, chunks: int, dimension: int, count: int, seed: int = 1) -> Iterator[tuple[NewPaper, Vectors]]:
    """So many papers that have so many chunks among them, each with its vectors, shape (its chunks, dimension).

    Every passage has a word of its own and one of its paper's, which no model sentence has.
    """
    rng = np.random.default_rng(seed)
    real = [_turned(vectors, dimension) for vectors in model.papers]
    spread = np.concatenate(real)
    spread -= spread.mean(axis=0)
    shares = np.diff(np.linspace(0, chunks, count + 1).astype(int))
    for number, share in enumerate(shares):
        like = real[rng.integers(len(real))]
        near = like[rng.integers(len(like), size=share)]
        topic, *own = _unit(rng.standard_normal((share + 1, len(spread)), dtype=np.float32) @ spread)
        to_topic, to_real, to_own = PASSAGE_PARTS
        vectors = _unit(to_topic * topic + to_real * near + to_own * np.stack(own))
        passages = [_passage(model, rng, f"subject{number} item{number}x{place}.") for place in range(share)]
        yield _paper(f"paper{number:05}-{seed}", passages), vectors


def make(folder: Path, model: Model, chunks: int, dimension: int, count: int) -> Library:
    """Fill a library in this folder with such papers, quickly: nothing is synced. Returns it, open.

    The indexes are the caller's to make (indexes.update_indexes), and to measure.
    """
    made = ((paper, vectors, None) for paper, vectors in papers(model, chunks, dimension, count))
    return fill(folder, fingerprint(dimension), made)


def fill(
    folder: Path, made_with: dict[str, str], papers: Iterable[tuple[NewPaper, Vectors, SourceFile | None]]
) -> Library:
    """The same with these papers and their files, under this fingerprint. None: a file that is not there."""
    library = Library(folder / indexes.LIBRARY, create=True)
    library.set_fingerprint(made_with)
    library.database.execute("PRAGMA synchronous = OFF")
    for paper, vectors, file in papers:
        add(library, paper, vectors, file)
    library.database.execute("PRAGMA synchronous = FULL")
    return library


def fingerprint(dimension: int) -> dict[str, str]:
    """A made store's, with the usual settings."""
    return {**identity(dimension), **reading_fingerprint(Reading(1500, 200))}


def add(library: Library, paper: NewPaper, vectors: Vectors, file: SourceFile | None = None) -> None:
    """Land a paper as an ingest does; without a file, as one of a file that is not there."""
    ids = [chunk_id(paper.id, start, end) for start, end in paper.spans]
    name = f"{paper.title}.pdf"
    library.add(paper, file or SourceFile(f"/papers/{name}", name, paper.id), ids, vectors)


def questions(library: Library, count: int, seed: int = 2) -> list[Asked]:
    """Questions about passages of a library: a few of the passage's words, and a vector that leans to its vector."""
    rng = np.random.default_rng(seed)
    ids = sorted(library.chunk_ids())
    chosen = [ids[place] for place in rng.choice(len(ids), size=min(count, len(ids)), replace=False)]
    others = [ids[place] for place in rng.choice(len(ids), size=len(chosen))]
    vectors, astray = library.vectors_of(chosen), library.vectors_of(others)
    own = _unit(rng.standard_normal(vectors.shape, dtype=np.float32))
    to_passage, to_other, to_nothing = QUESTION_PARTS
    leaning = _unit(to_passage * vectors + to_other * astray + to_nothing * own)
    asked = []
    for (chunk, found), vector in zip(library.chunks(chosen).items(), leaning, strict=True):
        words = re.findall(r"[^\W\d_]{4,}", library.text(found.paper_id, found.start, found.end))
        place = int(rng.integers(max(1, len(words) - 8)))
        asked.append(Asked(" ".join(words[place : place + 8]), vector, chunk))
    return asked


def _sentences(text: str) -> list[str]:
    found = (" ".join(text[start:end].split()) for start, end in sentence_spans(text))
    return [sentence for sentence in found if 40 <= len(sentence) <= 400]


def _passage(model: Model, rng: np.random.Generator, words: str) -> str:
    parts = [words]
    while sum(map(len, parts)) < PASSAGE:
        parts += [model.sentences[place] for place in rng.integers(len(model.sentences), size=4)]
    return " ".join(parts)


def _paper(name: str, passages: Sequence[str]) -> NewPaper:
    """One page a passage, split where the passages end."""
    ends = np.cumsum([len(passage) + 1 for passage in passages]).tolist()
    starts = [0, *ends[:-1]]
    spans = tuple((start, end - 1) for start, end in zip(starts, ends, strict=True))
    pages = PageMap(tuple(starts), tuple(str(page) for page in range(1, len(starts) + 1)))
    id = hashlib.sha256(name.encode()).hexdigest()
    return NewPaper(id, name, ("A. Author",), 2020, "\n".join(passages), pages, spans)


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), dtype=np.float32)


def _turned(vectors: Vectors, dimension: int) -> Vectors:
    """The same vectors in a space of another dimension, turned at random: cosines stay where it is not smaller."""
    rng = np.random.default_rng(7)
    square, _ = np.linalg.qr(rng.standard_normal((max(vectors.shape[1], dimension),) * 2))
    return _unit(vectors @ square[: vectors.shape[1], :dimension].astype(np.float32))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/synthetic.py", description="Make a store of any size.")
    parser.add_argument("folder", type=Path, help="where the store is made")
    parser.add_argument("--chunks", type=int, default=232_523)
    parser.add_argument("--dimension", type=int, default=768)
    parser.add_argument("--papers", type=int, default=3875)
    parser.add_argument("--like", type=Path, metavar="STORE", help="a store that this one is modelled on")
    arguments = parser.parse_args(argv)
    model = modelled_on(arguments.like) if arguments.like else model_of_nothing(arguments.dimension)
    with indexes.writing(arguments.folder):
        start = perf_counter()
        library = make(arguments.folder, model, arguments.chunks, arguments.dimension, arguments.papers)
        print(f"library: {perf_counter() - start:.1f} s")
        start = perf_counter()
        indexes.update_indexes(arguments.folder, library, "tantivy")
        print(f"indexes: {perf_counter() - start:.1f} s")
        library.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
