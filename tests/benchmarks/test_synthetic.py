"""Synthetic stores: they have the requested size and pass verification, and their questions find their passages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from benchmarks import synthetic
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever
from folio.store import indexes
from folio.store.library import Library

CHUNKS, DIMENSION, PAPERS = 230, 48, 7


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    sizes = {"--chunks": CHUNKS, "--dimension": DIMENSION, "--papers": PAPERS}
    assert synthetic.main([str(folder), *(str(word) for size in sizes.items() for word in size)]) == 0
    return folder


@pytest.fixture
def library(made: Path) -> Iterator[Library]:
    with closing(Library(made / indexes.LIBRARY)) as opened:
        yield opened


def test_a_synthetic_store_is_complete(made: Path, library: Library) -> None:
    assert library.counts() == {
        "papers": PAPERS, "files": PAPERS, "failures": 0, "chunks": CHUNKS, "vectors": CHUNKS, "removed": 0,
    }  # fmt: skip
    assert indexes.verify(made, library, "tantivy") == []
    for ids, vectors in library.vectors():
        assert vectors.shape == (len(ids), DIMENSION)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(ids)), abs=1e-5)
    (paper, *_) = library.papers()
    assert library.text(paper.id, 0, paper.length).count("\n") == paper.chunks - 1


def test_its_questions_find_the_passages_they_were_made_from(made: Path, library: Library) -> None:
    questions = synthetic.make_questions(library, 40)
    embedder = synthetic.LookupEmbedder(questions)

    def opened() -> indexes.Indexes:
        return indexes.open_indexes(made, library, "tantivy", pytest.fail)

    retriever = Retriever(library, opened, embedder, None, FusionSettings(0.7, 0.3, 20))
    found = [[hit.chunk.id for hit in retriever.search(question.text, 20).hits] for question in questions]
    assert sum(question.chunk in hits for question, hits in zip(questions, found, strict=True)) >= 36


def test_the_papers_depend_only_on_the_seed() -> None:
    template = synthetic.random_template(DIMENSION)

    def texts(seed: int) -> list[str]:
        return [paper.text for paper, _ in synthetic.generate_papers(template, 20, DIMENSION, 2, seed)]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_a_store_modelled_on_another_has_its_sentences(made: Path) -> None:
    template = synthetic.template_from(made)
    assert sum(map(len, template.papers)) == CHUNKS
    (paper, vectors), *_ = synthetic.generate_papers(template, 12, 2 * DIMENSION, 3)
    assert vectors.shape == (4, 2 * DIMENSION)
    start, end = paper.spans[1]
    assert any(sentence in paper.text[start:end] for sentence in template.sentences)
