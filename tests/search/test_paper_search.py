"""Papers ranked as a whole: by their words, vectors and passages; after edits, rebuilds, and in stores made before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from folio.errors import ModelError, StoreDamaged
from folio.papers.edits import edited, parse_edits
from folio.papers.model import PaperHit, Vectors
from folio.search.filters import SectionFilter
from folio.search.papers import PaperScores, PaperWeights
from folio.search.retriever import Retriever
from folio.store.rows import text_hash
from folio.system import workers
from tests.helpers.fakes import LINES, HashingApp, HashingEmbedder, hashing_app, make_pdf, read_once

pytestmark = pytest.mark.fast


def four_papers(folder: Path) -> HashingApp:
    app = hashing_app(folder)
    for subject in LINES:
        make_pdf(folder / "papers" / f"{subject}.pdf", subject, headings=("1 Introduction", "2 Methods"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        app.run()
    return app


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> HashingApp:
    """A store of four papers with sections, for tests that change nothing."""
    return four_papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    """Another one, for a test that changes it."""
    monkeypatch.setattr(workers, "run_guarded", read_once)
    return four_papers(tmp_path)


@contextmanager
def searching(app: HashingApp) -> Iterator[Retriever]:
    with closing(app.open_library()) as library:
        yield app.retriever(library)


def found(app: HashingApp, query: str, limit: int = 10, offset: int = 0) -> list[PaperHit]:
    with searching(app) as retriever:
        return retriever.search_papers(query, limit, offset)


def files(hits: list[PaperHit]) -> list[str]:
    return [hit.paper.file for hit in hits]


def edit(app: HashingApp, file: str, *changes: str) -> None:
    with closing(app.open_library()) as library:
        (paper,) = (paper for paper in library.papers() if paper.file == file)
        renamed = library.change_metadata(paper.id, "person", lambda person: edited(person, parse_edits(changes, ())))
    app.finish_edit(is_renamed=renamed)


def outdated(app: HashingApp) -> int:
    with searching(app) as retriever:
        return retriever.papers_without_vector()


def state(app: HashingApp) -> dict[str, tuple[str, list[float]]]:
    """File -> what its vector was made from, and the vector."""
    with closing(app.open_library()) as library:
        kept = library.paper_vectors()
        papers = library.papers()
        assert set(kept) == {paper.id for paper in papers}
        return {paper.file: (kept[paper.id].text_hash, kept[paper.id].vector.tolist()) for paper in papers}


def test_a_paper_is_found_by_title_and_text(unchanged: HashingApp) -> None:
    for query in ("lattices", "a discrete group of points"):
        best = found(unchanged, query)[0]
        assert best.paper.file == "lattices.pdf"
        assert best.passage is not None
        assert best.passage.paper == best.paper
    assert found(unchanged, "papers on Lattices!")[0].words == ("on", "Lattices")[1:]


def test_pages_of_results_follow_each_other(unchanged: HashingApp) -> None:
    everything = found(unchanged, "the order of keys in a lattice")
    assert len(everything) == len(LINES)
    assert sorted((hit.score for hit in everything), reverse=True) == [hit.score for hit in everything]
    pages = [found(unchanged, "the order of keys in a lattice", 2, offset) for offset in (0, 2, 4)]
    assert [file for page in pages for file in files(page)] == files(everything)
    assert found(unchanged, "the order of keys in a lattice", 2, 4) == []


def test_only_the_papers_that_are_given_are_ranked(unchanged: HashingApp) -> None:
    with searching(unchanged) as retriever, closing(unchanged.open_library()) as library:
        chosen = [paper for paper in library.papers() if paper.file != "lattices.pdf"]
        assert "lattices.pdf" not in files(retriever.search_papers("lattices", 10, papers=chosen))
        assert retriever.search_papers("lattices", 10, papers=[]) == []


def test_passages_are_taken_from_the_sections_that_are_given(unchanged: HashingApp) -> None:
    with searching(unchanged) as retriever:
        hits = retriever.search_papers("sponge", 10, sections=SectionFilter(("methods",)))
    shown = {hit.passage.section for hit in hits if hit.passage is not None}
    assert shown
    assert all("Methods" in section for section in shown)


def test_paper_scores_are_scaled_and_added() -> None:
    scores = PaperScores(np.array([4.0, 2.0, 0.0]), np.array([np.nan, -0.5, 0.5]), np.array([0.0, 0.0, 0.5]))
    assert scores.fused(PaperWeights(0.5, 0.25, 0.25)).tolist() == [0.5, 0.25, 0.375]
    nothing = PaperScores(np.zeros(2), np.full(2, np.nan), np.zeros(2))
    assert nothing.fused(PaperWeights()).tolist() == [0, 0]


def test_a_query_of_no_words_finds_no_word(unchanged: HashingApp) -> None:
    assert all(hit.lexical is None and hit.words == () for hit in found(unchanged, "?!"))


def test_an_edit_reaches_the_vector_at_the_next_ingest(app: HashingApp) -> None:
    before, embedded = state(app), len(app.hashing.passages)
    assert outdated(app) == 0
    edit(app, "sponges.pdf", "abstract=Zanzibar has corals")
    (best, *_) = found(app, "Zanzibar")
    assert (best.paper.file, best.words) == ("sponges.pdf", ("Zanzibar",))
    assert best.dense is not None  # the old vector serves
    assert (state(app), outdated(app), len(app.hashing.passages)) == (before, 1, embedded)
    app.run()
    after = state(app)
    assert {file for file in after if after[file] != before[file]} == {"sponges.pdf"}
    assert "Zanzibar has corals" in app.hashing.passages[-1]
    assert (outdated(app), len(app.hashing.passages), app.verify()) == (0, embedded + 1, [])


def test_an_open_retriever_sees_an_edit(app: HashingApp) -> None:
    with searching(app) as retriever:
        assert retriever.search_papers("Zanzibar", 1)[0].words == ()
        edit(app, "trees.pdf", "abstract=Zanzibar")
        assert files(retriever.search_papers("Zanzibar", 1)) == ["trees.pdf"]
        edit(app, "trees.pdf", "abstract=Corals")
        assert retriever.search_papers("Zanzibar", 1)[0].words == ()


def test_a_rebuild_makes_vectors_with_what_people_said(app: HashingApp) -> None:
    edit(app, "trees.pdf", "year=2014")
    assert outdated(app) == 0  # it names no subject
    edit(app, "sponges.pdf", "abstract=Zanzibar has corals")
    app.run()
    before = state(app)
    app.run(rebuild=True)
    assert (state(app), outdated(app), app.verify()) == (before, 0, [])


def test_a_model_that_cannot_be_used_leaves_the_old_vector(app: HashingApp) -> None:
    class Broken(HashingEmbedder):
        def embed_passages(self, texts: object) -> Vectors:
            raise ModelError("The server does not answer.", "Start it.")

    before = state(app)
    edit(app, "sponges.pdf", "abstract=Zanzibar has corals")
    HashingApp(app.settings, app.notice, Broken()).run()
    assert (state(app), outdated(app)) == (before, 1)


def test_missing_paper_vectors_are_made_by_an_ingest(app: HashingApp) -> None:
    made = state(app)
    with closing(app.open_library()) as library:
        library.database.execute("DELETE FROM paper_vectors")
    assert outdated(app) == len(LINES)
    hits = found(app, "lattices")
    assert hits[0].paper.file == "lattices.pdf"
    assert {hit.dense for hit in hits} == {None}
    app.run()
    assert (state(app), outdated(app), app.verify()) == (made, 0, [])


def test_a_removed_paper_takes_its_vector_with_it(app: HashingApp) -> None:
    (app.settings.PAPERS_DIR / "trees.pdf").unlink()
    app.run(prune=True)
    assert "trees.pdf" not in state(app)
    assert "trees.pdf" not in files(found(app, "trees"))
    assert app.verify() == []


def test_the_ranking_depends_on_the_library_alone(app: HashingApp, tmp_path: Path) -> None:
    (app.settings.PAPERS_DIR / "trees.pdf").unlink()
    app.run(prune=True)
    make_pdf(app.settings.PAPERS_DIR / "trees.pdf", "trees", headings=("1 Introduction", "2 Methods"))
    app.run()
    fresh = hashing_app(tmp_path, VECTORSTORE_DIR=tmp_path / "fresh")
    fresh.run()
    for query in ("trees", "the order of keys", "sponge"):
        ours, theirs = ([(hit.paper.id, hit.score) for hit in found(each, query)] for each in (app, fresh))
        assert ours == theirs


def test_any_changed_bit_of_a_vector_is_noticed(app: HashingApp) -> None:
    with closing(app.open_library()) as library:
        (paper, value) = library.database.query("SELECT paper, data FROM paper_vectors LIMIT 1")[0]
    for place in (5, len(value) // 2, len(value) - 1):
        changed = bytes([*value[:place], value[place] ^ 4, *value[place + 1 :]])
        for wrong, is_fault in ((changed, True), (value, False)):
            with closing(app.open_library()) as library:
                sql = "UPDATE paper_vectors SET data = :value WHERE paper = :paper"
                library.database.execute(sql, value=wrong, paper=paper)
            assert bool(app.verify()) == is_fault, place
            if is_fault:
                with pytest.raises(StoreDamaged, match="a vector has changed since it was stored"):
                    found(app, "lattices")


def test_a_known_text_is_not_embedded_again(unchanged: HashingApp) -> None:
    with closing(unchanged.open_library()) as library:
        kept = library.paper_vectors()
        hashes = [each.text_hash for each in kept.values()]
        assert library.recall(hashes).keys() == set(hashes)
        assert library.recall([text_hash("another")]) == {}


@pytest.mark.parametrize(
    "damage", ["UPDATE meta SET value = 'x' WHERE key = 'described'", "DELETE FROM meta WHERE key = 'described'"]
)
def test_a_lost_count_of_changes_is_noticed(app: HashingApp, damage: str) -> None:
    with closing(app.open_library()) as library:
        library.database.execute(damage)
    assert "The number of changes to what is known about papers is missing." in app.verify()
