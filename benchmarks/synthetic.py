"""Makes a store of any size in minutes, without a model, for the benchmarks of large stores.

    python benchmarks/synthetic.py /tmp/big --chunks 232523 --dimension 768 --papers 3875
    python benchmarks/synthetic.py /tmp/big --like vectorstore/        modelled on the passages of another store

The papers are added to a library as an ingest adds them, and the indexes are built from it. Texts are real sentences in
random order. Vectors are distributed like a model's: each paper is modelled on a real one and has its own topic, and
each passage is a weighted sum of a passage of that real paper, the topic, and a random direction. Without a store to
model it on, the sentences are the sample paper's, and the vectors are random ones with a common part, as those of
sentence embedders have.
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

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from folio.ingest import pipeline
from folio.ingest.chunking import chunk_id
from folio.papers.metadata import simple_metadata
from folio.papers.model import NewPaper, PageMap, SourceFile, Vectors
from folio.store import indexes
from folio.store.fingerprint import Reading, reading_fingerprint
from folio.store.library import Library
from folio.system.files import sha256_file
from folio.text import sentence_spans

SAMPLE = Path(__file__).resolve().parent.parent / "papers" / "folio-sample.pdf"
# Characters per passage: the average that CHUNK_SIZE=1500 gives on real papers.
PASSAGE_CHARS = 1200
# Weights in a passage's vector: its paper's topic, a real passage, a random direction. Modelled on 55 papers, an equal
# number of passages is then as hard to search by lists as the real ones: 31 % of 64 lists must be read to find 99 % of
# the best 20.
PASSAGE_WEIGHTS = (0.5, 1.0, 0.75)
# Weights in a question's vector: its passage, another passage, a random direction.
QUESTION_WEIGHTS = (1.0, 0.5, 1.0)
# Random vectors: the standard deviation of component k is k ** -DECAY.
DECAY = 0.5


@dataclass(frozen=True, slots=True)
class Template:
    """What a store is modelled on."""

    sentences: tuple[str, ...]
    papers: tuple[Vectors, ...]  # each (its passages, dimension), rows of unit length


@dataclass(frozen=True, slots=True)
class Question:
    """A question made from a passage of a store."""

    text: str
    vector: Vectors  # (dimension,), of unit length
    chunk: int  # the passage's id


class LookupEmbedder:
    """An embedder that returns the vectors of known questions, and embeds nothing else."""

    name = "lookup"

    def __init__(self, questions: Sequence[Question]) -> None:
        self._vectors = {question.text: question.vector for question in questions}
        self.dimension = len(questions[0].vector)

    def identity(self) -> dict[str, str]:
        return identity(self.dimension)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError("the passages of a synthetic store already have vectors")

    def embed_query(self, text: str) -> Vectors:
        return self._vectors[text]

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._vectors[text] for text in texts])


def identity(dimension: int) -> dict[str, str]:
    """The identity of an embedder for a synthetic store."""
    return {"embedder": "synthetic", "dimension": str(dimension)}


def template_from(folder: Path) -> Template:
    """The sentences and vectors of a store's passages."""
    library = Library(folder / indexes.LIBRARY)
    try:
        ids = [library.chunk_ids_of([paper.id]) for paper in library.papers()]
        vectors = tuple(library.vectors_of(own) for own in ids if own)
        sentences = [sentence for passage in library.passages() for sentence in _sentences(passage.text)]
    finally:
        library.close()
    return Template(tuple(dict.fromkeys(sentences)), vectors)


def random_template(dimension: int) -> Template:
    """The sample paper's sentences, and random vectors; any two have a cosine of about 0.2."""
    file = SourceFile(str(SAMPLE), SAMPLE.name, sha256_file(SAMPLE))
    paper = pipeline.read_paper(file, Reading(1500, 0), 10)
    rng = np.random.default_rng(5)
    scale = np.arange(1, dimension + 1, dtype=np.float32) ** -DECAY
    common, *centres = _unit(scale * rng.standard_normal((56, dimension), dtype=np.float32))
    noise = (_unit(scale * rng.standard_normal((18, dimension), dtype=np.float32)) for _ in centres)
    vectors = tuple(_unit(0.5 * common + centre + own) for centre, own in zip(centres, noise, strict=True))
    return Template(tuple(_sentences(paper.text)), vectors)


def generate_papers(
    template: Template, chunks: int, dimension: int, count: int, seed: int = 1
) -> Iterator[tuple[NewPaper, Vectors]]:
    """Papers with so many chunks in total, each with its vectors, shape (its chunks, dimension).

    Every passage has a word of its own and one of its paper's, which are in no template sentence.
    """
    rng = np.random.default_rng(seed)
    rotation = _rotation(template.papers[0].shape[1], dimension)
    real = [_unit(vectors @ rotation) for vectors in template.papers]
    centred = np.concatenate(real)
    centred -= centred.mean(axis=0)
    sizes = np.diff(np.linspace(0, chunks, count + 1).astype(int))
    for number, size in enumerate(sizes):
        model = real[rng.integers(len(real))]
        model_passages = model[rng.integers(len(model), size=size)]
        topic, *noise = _unit(rng.standard_normal((size + 1, len(centred)), dtype=np.float32) @ centred)
        topic_weight, model_weight, noise_weight = PASSAGE_WEIGHTS
        vectors = _unit(topic_weight * topic + model_weight * model_passages + noise_weight * np.stack(noise))
        passages = [_passage(template, rng, f"subject{number} item{number}x{index}.") for index in range(size)]
        yield _paper(f"paper{number:05}-{seed}", passages), vectors


def make_library(folder: Path, template: Template, chunks: int, dimension: int, count: int) -> Library:
    """Make a library of generated papers in this folder, without syncing to disk. Returns it, open.

    The indexes are left to the caller (indexes.update_indexes), who may measure that.
    """
    papers = generate_papers(template, chunks, dimension, count)
    return fill_library(folder, fingerprint(dimension), ((paper, vectors, None) for paper, vectors in papers))


def fill_library(
    folder: Path, made_with: dict[str, str], papers: Iterable[tuple[NewPaper, Vectors, SourceFile | None]]
) -> Library:
    """The same for given papers and a given fingerprint. A file of None means that it does not exist."""
    library = Library(folder / indexes.LIBRARY, create=True)
    library.set_fingerprint(made_with)
    library.database.execute("PRAGMA synchronous = OFF")
    for paper, vectors, file in papers:
        add_paper(library, paper, vectors, file)
    library.database.execute("PRAGMA synchronous = FULL")
    return library


def fingerprint(dimension: int) -> dict[str, str]:
    """The fingerprint of a synthetic store with the usual settings."""
    return {**identity(dimension), **reading_fingerprint(Reading(1500, 200))}


def add_paper(library: Library, paper: NewPaper, vectors: Vectors, file: SourceFile | None = None) -> None:
    """Add a paper as an ingest does. Without a file, a name is made up that does not exist."""
    ids = [chunk_id(paper.id, start, end) for start, end in paper.spans]
    name = f"{paper.title}.pdf"
    library.add(paper, file or SourceFile(f"/papers/{name}", name, paper.id), ids, vectors)


def make_questions(library: Library, count: int, seed: int = 2) -> list[Question]:
    """Questions about passages of a library: eight of the passage's words, and a vector near its own."""
    rng = np.random.default_rng(seed)
    ids = sorted(library.chunk_ids())
    chosen = [ids[index] for index in rng.choice(len(ids), size=min(count, len(ids)), replace=False)]
    others = [ids[index] for index in rng.choice(len(ids), size=len(chosen))]
    own, other = library.vectors_of(chosen), library.vectors_of(others)
    noise = _unit(rng.standard_normal(own.shape, dtype=np.float32))
    own_weight, other_weight, noise_weight = QUESTION_WEIGHTS
    vectors = _unit(own_weight * own + other_weight * other + noise_weight * noise)
    questions = []
    for (id, chunk), vector in zip(library.chunks(chosen).items(), vectors, strict=True):
        words = re.findall(r"[^\W\d_]{4,}", library.text(chunk.paper_id, chunk.start, chunk.end))
        start = int(rng.integers(max(1, len(words) - 8)))
        questions.append(Question(" ".join(words[start : start + 8]), vector, id))
    return questions


def _sentences(text: str) -> list[str]:
    sentences = (" ".join(text[start:end].split()) for start, end in sentence_spans(text))
    return [sentence for sentence in sentences if 40 <= len(sentence) <= 400]


def _passage(template: Template, rng: np.random.Generator, first: str) -> str:
    """Random sentences after this first one."""
    sentences = [first]
    while sum(map(len, sentences)) < PASSAGE_CHARS:
        sentences += [template.sentences[index] for index in rng.integers(len(template.sentences), size=4)]
    return " ".join(sentences)


def _paper(name: str, passages: Sequence[str]) -> NewPaper:
    """A paper with one passage per page."""
    ends = np.cumsum([len(passage) + 1 for passage in passages]).tolist()
    starts = [0, *ends[:-1]]
    spans = tuple((start, end - 1) for start, end in zip(starts, ends, strict=True))
    pages = PageMap(tuple(starts), tuple(str(page) for page in range(1, len(starts) + 1)))
    id = hashlib.sha256(name.encode()).hexdigest()
    return NewPaper(id, simple_metadata(name, ("A. Author",), 2020), "\n".join(passages), pages, spans)


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), dtype=np.float32)


def _rotation(before: int, after: int) -> Vectors:
    """A random rotation of vectors into another dimension, shape (before, after). Cosines stay the same unless it is
    smaller."""
    rng = np.random.default_rng(7)
    rotation, _ = np.linalg.qr(rng.standard_normal((max(before, after),) * 2))
    return rotation[:before, :after].astype(np.float32)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/synthetic.py", description="Make a store of any size.")
    parser.add_argument("folder", type=Path, help="where to make the store")
    parser.add_argument("--chunks", type=int, default=232_523)
    parser.add_argument("--dimension", type=int, default=768)
    parser.add_argument("--papers", type=int, default=3875)
    parser.add_argument("--like", type=Path, metavar="STORE", help="the store to model it on")
    arguments = parser.parse_args(argv)
    template = template_from(arguments.like) if arguments.like else random_template(arguments.dimension)
    with indexes.writing(arguments.folder):
        start = perf_counter()
        library = make_library(arguments.folder, template, arguments.chunks, arguments.dimension, arguments.papers)
        print(f"library: {perf_counter() - start:.1f} s")
        start = perf_counter()
        indexes.update_indexes(arguments.folder, library, "tantivy")
        print(f"indexes: {perf_counter() - start:.1f} s")
        library.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
