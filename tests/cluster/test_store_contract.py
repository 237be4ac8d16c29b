"""The contract of PaperStore: a library in Milvus finds, cites and refuses as one on this computer does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

from folio import workers
from folio.errors import StoreRefused
from folio.ingest.chunking import chunk_id
from folio.paper_metadata import NO_METADATA, simple_metadata
from folio.search.candidate_filter import SectionFilter
from folio.search.paper_filter import PaperFilter
from folio.search.retriever import Retriever
from folio.search.retriever_pool import RetrieverPool
from folio.store import indexes
from folio.store.paper_store import PaperStore
from folio.types import Failure, Hit, NewPaper, PageMap, SourceFile
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.fakes import HashingApp, hashing_app, read_once
from tests.helpers.milvus import Killed, KilledAt, again, lite_app, milvus_of

BEES = (
    "Bees dance to tell where flowers are. The angle of the dance is that of the sun.",
    "References\n[1] A. Bee. 1923.",
)
PLACE = ("number", "paper", "start", "end", "text")  # of evidence
QUESTIONS = (
    "How long is the Aletsch glacier?",
    "What do sea otters eat?",
    "Where is melt water measured?",
    "How do bees tell where flowers are?",
    "density of the fur",
)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    write_pdf(folder / "otters.pdf", OTTERS, "On Sea Otters")
    write_pdf(folder / "alps" / "glaciers.pdf", GLACIERS, "The Aletsch Glacier")
    write_pdf(folder / "bees.pdf", BEES, "The Dance of Bees")
    return folder


@pytest.fixture(scope="module")
def local(papers: Path, tmp_path_factory: pytest.TempPathFactory) -> HashingApp:
    app = hashing_app(tmp_path_factory.mktemp("local"), PAPERS_DIR=papers, **_READERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        app.run()
    return app


@pytest.fixture(scope="module")
def milvus(papers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HashingApp]:
    with lite_app(tmp_path_factory.mktemp("milvus"), papers, **_READERS) as app:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers, "run_guarded", read_once)
            app.run()
        yield app


_READERS: dict[str, Any] = {"LLM": "builtin", "RERANKER": "builtin"}


@pytest.fixture(autouse=True)
def _no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


def about(hits: tuple[Hit, ...]) -> list[tuple[Any, ...]]:
    """All that is shown of hits."""
    return [(hit.chunk, hit.paper, hit.text, hit.pages, hit.section) for hit in hits]


def numbers(hits: tuple[Hit, ...]) -> list[tuple[float, float, float]]:
    return [(hit.score, hit.dense or 0.0, hit.lexical or 0.0) for hit in hits]


def test_the_same_papers_give_the_same_hits(local: HashingApp, milvus: HashingApp) -> None:
    with closing(local.open_library()) as first, closing(milvus.open_library()) as second:
        here, there = local.retriever(first), milvus.retriever(second)
        assert second.papers() == first.papers()
        assert second.files() == first.files()
        for rerank in (False, True):
            for question in QUESTIONS:
                expected, found = here.search(question, 8, rerank=rerank), there.search(question, 8, rerank=rerank)
                assert about(found.hits) == about(expected.hits)
                assert found.ranked == expected.ranked
                assert np.allclose(numbers(found.hits), numbers(expected.hits), atol=1e-6)
                assert there.term_weights(question) == here.term_weights(question)
        assert there.respelled("Aletch glaciar") == here.respelled("Aletch glaciar")
        assert [hit.paper for hit in there.search_papers("glacier ice", 3)] == [
            hit.paper for hit in here.search_papers("glacier ice", 3)
        ]
        assert there.papers_without_vector() == 0


def test_the_same_papers_give_the_same_citations_and_refusals(local: HashingApp, milvus: HashingApp) -> None:
    with closing(local.open_library()) as first, closing(milvus.open_library()) as second:
        here, there = local.chat(first, top_k=3), milvus.chat(second, top_k=3)
        refused = []
        for question in (*QUESTIONS, "What is the mass of the electron?", "And how thick is its ice?"):
            expected, found = here.ask(question).answer, there.ask(question).answer
            shown = [field.name for field in fields(found) if field.name != "evidence"]
            assert [getattr(found, each) for each in shown] == [getattr(expected, each) for each in shown]
            for ours, theirs in zip(found.evidence, expected.evidence, strict=True):
                assert [getattr(ours, each) for each in PLACE] == [getattr(theirs, each) for each in PLACE]
                assert about(ours.hits) == about(theirs.hits)
                assert np.allclose(numbers(ours.hits), numbers(theirs.hits), atol=1e-6)
            refused.append(found.refused)
        assert True in refused
        assert False in refused


def test_filters_choose_the_same(local: HashingApp, milvus: HashingApp) -> None:
    with closing(local.open_library()) as first, closing(milvus.open_library()) as second:
        here, there = local.retriever(first), milvus.retriever(second)
        one = PaperFilter.parse(["glaciers.pdf"])
        for papers, sections in ((one, None), (PaperFilter(), SectionFilter(("references",)))):
            chosen = [retriever.select(papers).papers for retriever in (here, there)]
            found = [
                retriever.search("flowers and ice", 9, only, sections=sections).hits
                for retriever, only in zip((here, there), chosen, strict=True)
            ]
            assert about(found[0]) == about(found[1])
        assert {hit.paper.file for hit in there.search("fur", 9, chosen[1] or there.papers()[:1]).hits} <= {
            "alps/glaciers.pdf"
        }


def random_paper(name: str, count: int, seed: int) -> tuple[NewPaper, list[int], Any]:
    """A paper of `count` passages with random vectors."""
    rng = np.random.default_rng(seed)
    words = [" ".join(f"word{n}" for n in rng.integers(0, 300, 12)) for _ in range(count)]
    starts = np.cumsum([0, *(len(each) + 1 for each in words)]).tolist()
    spans = tuple((start, start + len(each)) for start, each in zip(starts, words, strict=False))
    paper = NewPaper(name, simple_metadata(f"Paper {name}"), "\n".join(words), PageMap((0,), ("",)), spans)
    vectors = rng.normal(size=(count, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return paper, [chunk_id(name, start, end) for start, end in spans], vectors


FINGERPRINT = {"embedder": "hashing", "dimension": "64", "index": "single"}


def add(library: PaperStore, name: str, count: int = 4, *, seed: int = 0, path: str = "") -> None:
    paper, ids, vectors = random_paper(name, count, seed)
    library.add(paper, SourceFile(path or f"/p/{name}.pdf", f"{name}.pdf", name), ids, vectors)


@pytest.fixture(params=["local", "milvus"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HashingApp]:
    """A store of each kind, empty."""
    if request.param == "local":
        yield hashing_app(tmp_path)
    else:
        with lite_app(tmp_path, tmp_path / "papers") as made:
            yield made


def filled(app: HashingApp, *names: str, count: int = 4) -> PaperStore:
    library = app.open_library(create=True)
    library.set_fingerprint(FINGERPRINT)
    for seed, name in enumerate(names):
        add(library, name, count, seed=seed)
    app.backend.update_indexes(library)
    return library


def test_a_search_finds_what_an_exact_one_finds(app: HashingApp) -> None:
    with closing(filled(app, "a", "b", count=300)) as library, library.reading():
        index = app.open_indexes(library)
        ids = library.chunk_ids_of(["a", "b"])
        vectors = library.vectors_of(ids)
        hit = 0
        for seed in range(20):
            query = np.random.default_rng(100 + seed).normal(size=64).astype(np.float32)
            query /= np.linalg.norm(query)
            exact = sorted(zip(ids, (vectors * query).sum(axis=1).tolist(), strict=True), key=lambda p: (-p[1], p[0]))
            found = index.passages.search(query, 20)
            assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))
            hit += len({chunk for chunk, _ in found} & {chunk for chunk, _ in exact[:20]})
        assert hit >= 0.99 * 20 * 20
        words = [chunk for chunk, _ in index.lexical.search("word7 word8 word9", 20)]
        assert len(words) == 20


def test_a_file_with_another_paper_replaces_the_old_one(app: HashingApp) -> None:
    with closing(filled(app, "a", "b")) as library:
        before = library.papers_stamp()
        add(library, "c", path="/p/a.pdf", seed=7)
        assert library.papers_stamp() != before
        assert {paper.id for paper in library.papers()} == {"b", "c"}
        assert {file.path: file.sha256 for file in library.files()} == {"/p/a.pdf": "c", "/p/b.pdf": "b"}
        app.backend.update_indexes(library)
        with library.reading():
            found = app.open_indexes(library).lexical.search("paper", 99)
            chunks = library.chunks(chunk for chunk, _ in found)
        assert {chunk.paper_id for chunk in chunks.values()} == {"b", "c"}
        assert library.chunk_count() == 8


def test_removed_papers_leave_no_trace_in_scores(app: HashingApp) -> None:
    with closing(filled(app, "a", "b", "c")) as library:
        library.link([SourceFile("/p/copy.pdf", "copy.pdf", "b")])
        library.drop("/p/b.pdf")
        assert len(library.papers()) == 3  # the copy holds it
        library.drop("/p/copy.pdf")
        assert [paper.id for paper in library.papers()] == ["a", "c"]
        assert library.text("b", 0, 99) == ""
        app.backend.update_indexes(library)
        with library.reading():
            index = app.open_indexes(library)
            assert index.lexical.passages_with("paper") == 8
            assert {library.chunks([c])[c].paper_id for c, _ in index.lexical.search("paper", 9)} == {"a", "c"}
        assert app.verify() == []


def test_what_people_say_of_a_paper_renames_it_and_outlives_it(app: HashingApp) -> None:
    with closing(filled(app, "a", "b")) as library:
        assert library.change_metadata("a", "person", lambda _: simple_metadata("Zebras", origin="person"))
        assert not library.change_metadata("a", "person", lambda old: old)
        app.backend.update_indexes(library)
        with library.reading():
            found = app.open_indexes(library).lexical.search("zebras", 9)
            assert {chunk.paper_id for chunk in library.chunks(c for c, _ in found).values()} == {"a"}
        library.drop("/p/a.pdf")
        add(library, "a")
        assert [paper.title for paper in library.papers_by_id(["a"])] == ["Zebras"]


def test_papers_that_are_cited_alike_get_letters(app: HashingApp) -> None:
    with closing(filled(app, "a", "b", "c")) as library:
        for paper, title in (("a", "Yaks"), ("b", "Apes"), ("c", "Bears")):
            said = simple_metadata(title, ["Ann Lee"] if paper != "c" else ["Bo Li"], 2020, origin="person")
            library.set_metadata(paper, "person", said)
        everyone = {paper.id: paper.label for paper in library.papers()}
        assert {id: paper.label for id in everyone for paper in library.papers_by_id([id])} == everyone


def test_of_which_papers_sources_say_something(app: HashingApp) -> None:
    with closing(filled(app, "a", "b")) as library:
        assert library.described() == set()
        for paper in ("a", "absent"):
            library.set_metadata(paper, "online", simple_metadata("Yaks", origin="openalex"))
        assert library.described() == {"a", "absent"}
        library.set_metadata("a", "online", NO_METADATA)
        assert library.described() == {"absent"}


def test_when_a_paper_was_added_may_be_told(app: HashingApp) -> None:
    with closing(filled(app, "a")) as library:
        paper, ids, vectors = random_paper("b", 3, 5)
        then = "2020-02-03T04:05:06+00:00"
        library.add(paper, SourceFile("/p/b.pdf", "b.pdf", "b"), ids, vectors, added=then)
        added = library.added()
        assert added["b"] == then
        assert added["a"] > then


def test_failures_are_kept_until_the_file_is_read(app: HashingApp) -> None:
    with closing(filled(app, "a")) as library:
        failure = Failure(SourceFile("/p/x.pdf", "x.pdf", "x"), "It is empty.", "Save it again.")
        library.record_failure(failure)
        assert library.failures() == [failure]
        add(library, "x", path="/p/x.pdf")
        assert library.failures() == []


def test_vectors_of_an_ingest_that_was_ended_are_found_again(app: HashingApp) -> None:
    with closing(filled(app, "a")) as library:
        _, _, vectors = random_paper("b", 3, 5)
        hashes = [bytes([n]) * 16 for n in range(3)]
        library.remember(hashes, vectors)
        found = library.recall([*hashes, b"?" * 16])
        assert {key: value.tobytes() for key, value in found.items()} == {
            key: value.tobytes() for key, value in zip(hashes, vectors, strict=True)
        }
        library.forget_pending()
        assert library.recall(hashes) == {}


def test_a_changed_file_is_replaced_by_an_ingest(app: HashingApp, tmp_path: Path) -> None:
    write_pdf(tmp_path / "papers" / "otters.pdf", OTTERS, "On Sea Otters")
    assert [outcome.status for outcome in app.run()] == ["added"]
    assert [outcome.status for outcome in again(app).run()] == ["unchanged"]
    write_pdf(tmp_path / "papers" / "otters.pdf", GLACIERS, "The Aletsch Glacier")
    assert [outcome.status for outcome in again(app).run()] == ["replaced"]
    shutil.rmtree(tmp_path / "papers")
    (tmp_path / "papers").mkdir()
    write_pdf(tmp_path / "papers" / "bees.pdf", BEES, "The Dance of Bees")
    assert [outcome.status for outcome in again(app).run(prune=True)] == ["added", "pruned"]
    with closing(again(app).open_library()) as library:
        assert [paper.file for paper in library.papers()] == ["bees.pdf"]
    assert app.verify() == []


def test_a_kill_leaves_a_paper_whole_or_not_at_all(tmp_path: Path) -> None:
    with lite_app(tmp_path, tmp_path / "papers") as app:
        filled(app, "a", "b").close()
        sound = milvus_of(app)
        ended = step = 0
        while ended == step:
            step += 1
            with closing(again(app).open_library(create=True)) as library:
                library.milvus = KilledAt(sound, step)  # type: ignore[attr-defined]
                try:
                    add(library, "c", path="/p/b.pdf", seed=step)
                except Killed:
                    ended += 1
            with closing(again(app).open_library()) as library:
                state = {paper.id: library.text(paper.id, 0, 10**6) for paper in library.papers()}
                held = {file.path: file.sha256 for file in library.files()}
                assert held in ({"/p/a.pdf": "a", "/p/b.pdf": "b"}, {"/p/a.pdf": "a", "/p/b.pdf": "c"})
                assert state.keys() == set(held.values())
                with library.reading():
                    found = app.open_indexes(library).passages.search(np.eye(64, dtype=np.float32)[0], 99)
                    assert {c.paper_id for c in library.chunks(c for c, _ in found).values()} == state.keys()
            with closing(again(app).open_library(create=True)) as library:  # as it was
                add(library, "b", path="/p/b.pdf", seed=1)
        assert ended > 5
        with closing(again(app).open_library(create=True)) as library:
            app.backend.update_indexes(library)
            names = library.names  # type: ignore[attr-defined]
            assert len(list(sound.rows(names.chunks, 'key >= ""', ["key"]))) == library.chunk_count() == 8
            assert list(sound.rows(names.store, 'key like "intent.%"', ["key"])) == []
        assert again(app).verify() == []


def test_readers_see_whole_papers_while_a_writer_adds_and_removes(app: HashingApp) -> None:
    app = HashingApp(app.settings, lambda text: None, app.hashing)  # a reader may say that indexes lag
    with closing(filled(app, "a", "b")) as library:

        def retriever_of(library: PaperStore) -> Retriever:
            return app.retriever_over(library, app.hashing, lambda: app.open_indexes(library))

        pool = RetrieverPool(app.open_library, retriever_of, app.open_indexes)

        def read(_: int) -> set[str]:
            with pool.acquire() as reader:
                hits = reader.retriever.search("word1 word2 paper", 12).hits
                texts = {hit.paper.id: reader.library.text(hit.paper.id, 0, 10**6) for hit in hits}
                assert all(
                    hit.text in texts[hit.paper.id] or not texts[hit.paper.id] for hit in hits
                )  # or removed since
                return {hit.paper.id for hit in hits}

        with closing(pool), ThreadPoolExecutor(3) as threads:
            reading = [threads.submit(read, n) for n in range(9)]
            with indexes.writing(app.store_folder, 30):
                add(library, "c", seed=3)
                library.drop("/p/a.pdf")
                app.backend.update_indexes(library)
            found = [future.result() for future in reading]
            assert {frozenset(papers) for papers in found} <= {frozenset(each) for each in ("ab", "abc", "bc")}
            assert read(0) == {"b", "c"}


def test_what_milvus_cannot_hold_is_refused(tmp_path: Path) -> None:
    with lite_app(tmp_path, tmp_path / "papers") as app, closing(filled(app, "a")) as library:
        with pytest.raises(StoreRefused, match="cannot hold the paper"):
            add(library, '"] or id != "')
        assert [paper.id for paper in library.papers()] == ["a"]
