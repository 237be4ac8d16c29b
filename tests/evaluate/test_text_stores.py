from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from folio.errors import ModelError
from folio.evaluate.dataset import Document
from folio.evaluate.runner import build_text_store
from folio.ingest import chunking
from folio.papers.model import Vectors
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever
from folio.store import indexes
from folio.store.fingerprint import Reading
from folio.store.library import Library
from tests.helpers.fakes import HashingEmbedder

READING = Reading(80, 10)
OTTERS = (
    "Sea otters float in rafts of kelp. Their fur is dense. The diet is made of urchins, clams and crabs of the shore."
)
ICE = "The glacier is 23 kilometres long. Its ice has a thickness of 800 metres at the Konkordiaplatz."
DOCUMENTS = (
    Document("otters", "On Otters", OTTERS),
    Document("ice", "", ICE),
    Document("copy", "Other", OTTERS),
    Document("empty", "", " "),
)


def spans_of(text: str) -> tuple[tuple[int, int], ...]:
    return chunking.split(text, READING.chunk_size, READING.chunk_overlap)


def library_in(made: Path) -> Library:
    return Library(made / indexes.LIBRARY)


class Stops(HashingEmbedder):
    """Embeds for a while, then fails."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.left -= 1
        if self.left < 0:
            raise ModelError("The model stopped.", "Start it again.")
        return super().embed_passages(texts)


def test_each_document_is_a_paper_of_one_page(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    made = build_text_store(
        tmp_path, DOCUMENTS, HashingEmbedder(), READING, progress=lambda label, done, of: told.append((done, of))
    )
    library = library_in(made)
    papers = {paper.file: paper for paper in library.papers()}
    assert {name: (paper.title, paper.page_count) for name, paper in papers.items()} == {
        "copy": ("Other", 1),
        "ice": ("", 1),
        "otters": ("On Otters", 1),
    }
    assert papers["otters"].id != papers["copy"].id
    for name, text in (("otters", OTTERS), ("ice", ICE)):
        paper = papers[name]
        assert library.text(paper.id, 0, paper.length) == text
        found = sorted((c.start, c.end) for c in library.chunks(library.chunk_ids_of([paper.id])).values())
        assert tuple(found) == spans_of(text)
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert indexes.verify(made, library, "tantivy") == []
    library.close()


def test_the_retriever_searches_it(tmp_path: Path) -> None:
    embedder = HashingEmbedder(256)
    made = build_text_store(tmp_path, DOCUMENTS, embedder, READING)
    library = library_in(made)
    retriever = Retriever(
        library,
        lambda: indexes.open_indexes(made, library, "tantivy", lambda text: pytest.fail(text)),
        embedder,
        None,
        FusionSettings(0.7, 0.3, 20),
    )
    (hit,) = retriever.search("How long is the glacier?", 1).hits
    assert (hit.paper.file, hit.pages) == ("ice", (1, 1))
    assert ICE[hit.chunk.start : hit.chunk.end] == hit.text
    library.close()


def _of_passages(embedder: HashingEmbedder) -> list[str]:
    """What was embedded, but for the texts of documents as a whole: their titles."""
    return [text for text in embedder.passages if text not in {document.title for document in DOCUMENTS}]


def test_a_second_run_embeds_nothing(tmp_path: Path) -> None:
    first, second = HashingEmbedder(), HashingEmbedder()
    made = build_text_store(tmp_path, DOCUMENTS, first, READING)
    told: list[tuple[int, int]] = []
    again = build_text_store(
        tmp_path, DOCUMENTS[::-1], second, READING, progress=lambda label, done, of: told.append((done, of))
    )
    assert (again, second.passages, told) == (made, [], [(3, 3)])
    # The same text stands in two documents and is embedded once.
    spans = [text[start:end] for text in (OTTERS, ICE) for start, end in spans_of(text)]
    assert sorted(_of_passages(first)) == sorted(spans)


def test_a_run_that_was_broken_off_is_gone_on_with(tmp_path: Path) -> None:
    stops = Stops(after=1)
    with pytest.raises(ModelError):
        build_text_store(tmp_path, DOCUMENTS, stops, READING, batch=len(spans_of(OTTERS)))
    goes_on = HashingEmbedder()
    made = build_text_store(tmp_path, DOCUMENTS, goes_on, READING)
    assert _of_passages(stops) == [OTTERS[start:end] for start, end in spans_of(OTTERS)]
    assert _of_passages(goes_on) == [ICE[start:end] for start, end in spans_of(ICE)]
    library = library_in(made)
    assert indexes.verify(made, library, "tantivy") == []
    library.close()


def test_an_index_that_was_lost_is_made_again_without_embedding(tmp_path: Path) -> None:
    made = build_text_store(tmp_path, DOCUMENTS, HashingEmbedder(), READING)
    for lost in made.glob("vectors*"):
        lost.unlink()
    embedder = HashingEmbedder()
    assert build_text_store(tmp_path, DOCUMENTS, embedder, READING) == made
    assert embedder.passages == []
    library = library_in(made)
    assert indexes.verify(made, library, "tantivy") == []
    library.close()


def test_another_set_or_fingerprint_is_another_store(tmp_path: Path) -> None:
    made = {
        build_text_store(tmp_path, DOCUMENTS, HashingEmbedder(), READING),
        build_text_store(tmp_path, DOCUMENTS[:2], HashingEmbedder(), READING),
        build_text_store(tmp_path, DOCUMENTS, HashingEmbedder(32), READING),
        build_text_store(tmp_path, DOCUMENTS, HashingEmbedder(), Reading(90, 10)),
        build_text_store(tmp_path, DOCUMENTS, HashingEmbedder(), READING, whole=True),
    }
    assert len(made) == 5
    assert build_text_store(tmp_path, DOCUMENTS, HashingEmbedder(), READING) in made


def test_a_whole_document_is_one_passage_with_its_title(tmp_path: Path) -> None:
    embedder = HashingEmbedder()
    made = build_text_store(tmp_path, DOCUMENTS[:2], embedder, READING, whole=True)
    assert embedder.passages == [f"On Otters {OTTERS}", ICE]
    library = library_in(made)
    assert [(paper.file, paper.title, paper.chunks) for paper in library.papers()] == [
        ("ice", "", 1),
        ("otters", "", 1),
    ]
    library.close()
    # However papers are cut, whole documents stay the same.
    assert build_text_store(tmp_path, DOCUMENTS[:2], embedder, Reading(9, 1), whole=True) == made
