"""Dense search with fine passages: what brings what, the score, the highlights, and the index of the fine ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from folio.errors import StoreMismatch
from folio.question.question import Question
from folio.search.coarse_fine import COARSE_WEIGHT, HIGHLIGHTS, DenseSearch
from folio.search.filters import CandidateFilter
from folio.store.indexes import FINE, Indexes, open_indexes
from folio.store.library import Library
from folio.system import workers
from tests.helpers.factories import write_pdf
from tests.helpers.fakes import HashingApp, hashing_app, read_here

pytestmark = pytest.mark.fast

PAGES = {
    "otters": "Sea otters float in rafts of kelp. They sleep there. A pup weighs two kilograms at birth.",
    "glaciers": "The Aletsch glacier is long. Its ice is nine hundred metres thick. Snow feeds it in winter.",
    "bees": "Bees dance to tell where flowers are. The dance has an angle. The angle is that of the sun.",
}
SIZES: dict[str, Any] = {"COARSE_SIZE": 400, "FINE_SIZE": 40}


def three_papers(folder: Path) -> HashingApp:
    """Three papers of a passage each, of three or four fine ones."""
    app = hashing_app(folder, INDEX="dual", **SIZES)
    for name, text in PAGES.items():
        write_pdf(app.settings.PAPERS_DIR / f"{name}.pdf", [text], f"On {name}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_here)
        app.run()
    return app


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> HashingApp:
    return three_papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    """For a test that changes it."""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    return three_papers(tmp_path)


@pytest.fixture
def library(unchanged: HashingApp) -> Iterator[Library]:
    with closing(Library(unchanged.library_path)) as library:
        yield library


@pytest.fixture
def opened(unchanged: HashingApp, library: Library) -> Indexes:
    return open_indexes(unchanged.store_folder, library, "tantivy", unchanged.notice)


def names(library: Library, ids: tuple[int, ...]) -> list[str]:
    papers = {paper.id: paper.file.removesuffix(".pdf") for paper in library.papers()}
    return [papers[library.chunks([id])[id].paper_id] for id in ids]


def anything(library: Library) -> CandidateFilter:
    return CandidateFilter.of(library, Question(""), None)


def test_every_passage_has_fine_ones_with_vectors(unchanged: HashingApp, library: Library, opened: Indexes) -> None:
    passages, fine = library.chunk_ids(), library.chunk_ids(grain="fine")
    assert (len(passages), library.chunk_count(), library.chunk_count("fine")) == (3, 3, len(fine))
    assert opened.fine is not None
    assert (opened.vectors.ids(), opened.lexical.ids(), opened.fine.ids()) == (passages, passages, fine)
    inside = library.fine_in(passages)
    assert {chunk.id for chunks in inside.values() for chunk in chunks} == fine
    assert sorted(library.fine_ids_in(list(passages))) == sorted(fine)
    assert all(len(chunks) >= 3 for chunks in inside.values())
    assert sum(paper.chunks for paper in library.papers()) == 3
    assert unchanged.verify() == []


def test_a_fine_passage_brings_its_passage(unchanged: HashingApp, library: Library, opened: Indexes) -> None:
    query = unchanged.hashing.embed_query("A pup weighs two kilograms at birth.")
    found = DenseSearch(library, opened, query, (1, 1), None).find(anything(library))
    assert {stage: names(library, ids) for stage, ids in found.items()} == {"dense": ["otters"], "fine": ["otters"]}
    bees = [id for id in library.chunk_ids() if names(library, (id,)) == ["bees"]]
    only = frozenset(paper.id for paper in library.papers() if paper.file == "bees.pdf")
    found = DenseSearch(library, opened, query, (1, 1), only).find(anything(library))
    assert found == {"dense": tuple(bees), "fine": tuple(bees)}
    found = DenseSearch(library, opened, query, (1, 50), None).find(anything(library))
    assert sorted(found["fine"]) == sorted(found["dense"]) == sorted(library.chunk_ids())


def test_the_score_mixes_a_passage_and_its_best_part(unchanged: HashingApp, library: Library, opened: Indexes) -> None:
    query = unchanged.hashing.embed_query("How thick is the ice?")
    ids = sorted(library.chunk_ids())
    scores, highlights = DenseSearch(library, opened, query, (1, 1), None).scores(ids)
    assert [id for id, _ in scores] == ids
    for id, score in scores:
        fine = library.fine_in([id])[id]
        cosines = opened.vectors.cosines([chunk.id for chunk in fine], query)
        (own,) = opened.vectors.cosines([id], query)
        assert score == pytest.approx(COARSE_WEIGHT * own + (1 - COARSE_WEIGHT) * max(cosines))
        order = sorted(range(len(fine)), key=lambda place: (-cosines[place], fine[place].start))
        assert highlights[id] == tuple((fine[place].start, fine[place].end) for place in order[:HIGHLIGHTS])


def test_hits_have_highlights_word_for_word(unchanged: HashingApp, library: Library) -> None:
    retriever = unchanged.retriever(library)
    for question, said in (
        ("What does a pup weigh at birth?", "A pup weighs two kilograms at birth."),
        ("How thick is its ice?", "Its ice is nine hundred metres thick."),
    ):
        hit = retriever.search(question, 1).hits[0]
        texts = [library.text(hit.paper.id, start, end) for start, end in hit.highlights]
        assert " ".join(texts[0].split()) == said
        assert all(text in hit.text for text in texts)
        assert all(hit.chunk.start <= start < end <= hit.chunk.end for start, end in hit.highlights)


def test_a_single_index_has_no_highlights(tmp_path: Path, app: HashingApp) -> None:
    single = hashing_app(tmp_path, INDEX="single", CHUNK_SIZE=400, CHUNK_OVERLAP=0)
    with pytest.raises(StoreMismatch, match=r"index is dual in the index and single now"):
        single.run()
    assert (single.store_folder / FINE).is_dir()
    single.run(rebuild=True)
    assert not (single.store_folder / FINE).exists()
    library = Library(single.library_path)
    assert library.chunk_ids(grain="fine") == set()
    assert single.open_indexes(library).fine_passages is None
    assert single.retriever(library).search("How thick is its ice?", 1).hits[0].highlights == ()
    library.close()
    assert single.verify() == []
    dual = hashing_app(tmp_path, INDEX="dual", **SIZES)
    dual.run(rebuild=True)
    assert dual.verify() == []


def test_what_was_embedded_is_not_embedded_again(tmp_path: Path, app: HashingApp) -> None:
    again = hashing_app(tmp_path, INDEX="dual", **SIZES)
    again.run()
    assert again.hashing.passages == []
    write_pdf(app.settings.PAPERS_DIR / "otters.pdf", [PAGES["otters"], "They crack shells with stones."], "On otters")
    again.run()
    assert all("shells" in text for text in again.hashing.passages)
    assert again.verify() == []


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: shutil.rmtree(folder),
        lambda folder: (folder / "vectors.json").unlink(),
        lambda folder: _flip(next(folder.glob("*.faiss"))),
        lambda folder: next(folder.glob("*.faiss")).unlink(),
    ],
)
def test_a_damaged_index_of_fine_passages_is_made_again(
    tmp_path: Path, app: HashingApp, damage: Callable[[Path], None]
) -> None:
    damage(app.store_folder / FINE)
    assert app.verify() != []
    notices: list[str] = []
    noticing = HashingApp(app.settings, notices.append, app.hashing)
    library = noticing.open_library()
    hit = noticing.retriever(library).search("What does a pup weigh?", 1).hits[0]
    assert hit.highlights
    library.close()
    assert len(notices) == 1
    assert "fine vector index" in notices[0]
    assert app.verify() == []


def test_repair_makes_every_index_again(app: HashingApp) -> None:
    shutil.rmtree(app.store_folder / FINE)
    assert app.repair().passages == 3
    assert app.verify() == []


def test_a_passage_without_fine_ones_has_its_own_score(app: HashingApp) -> None:
    """As one of a library that is being changed by hand: nothing divides by zero, and nothing is highlighted."""
    with closing(Library(app.library_path)) as library:
        opened = open_indexes(app.store_folder, library, "tantivy", app.notice)
        id = min(library.chunk_ids())
        library.database.execute("DELETE FROM chunks WHERE parent = :id", id=id)
        query = app.hashing.embed_query("ice")
        scores, highlights = DenseSearch(library, opened, query, (1, 1), None).scores([id])
        (own,) = opened.vectors.cosines([id], query)
    assert (scores, highlights) == ([(id, COARSE_WEIGHT * own + (1 - COARSE_WEIGHT) * own)], {id: ()})
