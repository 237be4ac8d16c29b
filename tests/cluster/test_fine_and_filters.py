"""Fine passages (INDEX=dual) and filters by fields: a library in Milvus finds what one on this computer finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

from folio import workers
from folio.cluster import paper_filters
from folio.cluster.milvus_library import MilvusLibrary
from folio.cluster.paper_record import PaperRecord
from folio.errors import NotKnown, StoreDamaged, StoreMismatch
from folio.paper_metadata import NO_METADATA, Field, Metadata, PersonName
from folio.search.paper_filter import PaperFilter
from folio.search.paper_selection import PapersOfYears
from folio.search.retriever import Retriever
from folio.store.paper_store import PaperStore
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.fakes import HashingApp, hashing_app, make_pdf, read_once
from tests.helpers.milvus import again, lite_app

DUAL: dict[str, Any] = {"INDEX": "dual", "COARSE_SIZE": 200, "FINE_SIZE": 60, "DUAL_CANDIDATES": 6}
EVERYTHING = PaperFilter()
QUESTIONS = ("How long is the Aletsch glacier?", "What do sea otters eat?", "density of the fur", "keys of a tree")
SAID = {
    "otters.pdf": (2010, [PersonName("Ōtani", "Ken"), PersonName("Lee", "Ann")]),
    "alps/glaciers.pdf": (2015, [PersonName("van der Berg", "Jan")]),
    "trees.pdf": (2020, [PersonName("Lee", "Bo"), PersonName("李")]),
    "sponges.pdf": (None, [PersonName("NIST")]),
}


@pytest.fixture(autouse=True)
def _no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    write_pdf(folder / "otters.pdf", OTTERS, "On Sea Otters")
    write_pdf(folder / "alps" / "glaciers.pdf", GLACIERS, "The Aletsch Glacier")
    make_pdf(folder / "trees.pdf", "trees", headings=("1 Introduction", "2 Methods"))
    make_pdf(folder / "sponges.pdf", "sponges", headings=("1 Results", "References"))
    return folder


def fill(app: HashingApp) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        app.run()
    with closing(again(app).open_library(create=True)) as library:
        for paper in library.papers():
            library.set_metadata(paper.id, "person", said(*SAID[paper.file]))
        app.backend.update_indexes(library)


def said(year: int | None, authors: list[PersonName]) -> Metadata:
    metadata = replace(NO_METADATA, authors=Field(tuple(authors), "person", True))
    return replace(metadata, year=Field(year, "person", True)) if year else metadata


@pytest.fixture(scope="module")
def local(papers: Path, tmp_path_factory: pytest.TempPathFactory) -> HashingApp:
    app = hashing_app(tmp_path_factory.mktemp("local"), PAPERS_DIR=papers, **DUAL)
    fill(app)
    return app


@pytest.fixture(scope="module")
def milvus(papers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HashingApp]:
    with lite_app(tmp_path_factory.mktemp("milvus"), papers, **DUAL) as app:
        fill(app)
        yield app


@pytest.fixture
def both(local: HashingApp, milvus: HashingApp) -> Iterator[tuple[PaperStore, PaperStore]]:
    with closing(local.open_library()) as first, closing(milvus.open_library()) as second:
        yield first, second


@pytest.fixture
def retrievers(
    local: HashingApp, milvus: HashingApp, both: tuple[PaperStore, PaperStore]
) -> tuple[Retriever, Retriever]:
    return local.retriever(both[0]), milvus.retriever(both[1])


def shown(retriever: Retriever, question: str, wanted: PaperFilter = EVERYTHING) -> list[Any]:
    """All that is found, or the error."""
    try:
        chosen = retriever.select(wanted)
    except NotKnown as error:
        return [error.happened, error.remedy]
    found = retriever.search(question, 9, chosen.papers, sections=chosen.sections)
    hits = [(hit.chunk, hit.paper, hit.text, hit.highlights, hit.section, round(hit.score, 6)) for hit in found.hits]
    return [hits, found.ranked]


def test_fine_passages_are_found_as_on_this_computer(
    both: tuple[PaperStore, PaperStore], retrievers: tuple[Retriever, Retriever]
) -> None:
    here, there = both
    assert there.fingerprint() == here.fingerprint()
    assert there.chunk_count("fine") == here.chunk_count("fine") > here.chunk_count() == there.chunk_count()
    ids = here.chunk_ids_of(paper.id for paper in here.papers())
    inside = here.fine_in(ids)
    assert there.fine_in([*ids, 7]) == inside
    fine = [chunk.id for chunks in inside.values() for chunk in chunks]
    assert there.chunks(fine) == here.chunks(fine)
    assert np.allclose(there.vectors_of([fine[0], *ids]), here.vectors_of([fine[0], *ids]), atol=1e-6)
    assert [text for _, _, text in there.read_chunks(fine)] == [text for _, _, text in here.read_chunks(fine)]
    for question in QUESTIONS:
        assert shown(retrievers[1], question) == shown(retrievers[0], question)
    assert {len(hit[3]) for hit in shown(retrievers[1], QUESTIONS[0])[0]} >= {3}  # highlights


@pytest.mark.parametrize("listed", [0, 1_000])
def test_filters_find_the_same_by_fields_and_by_lists(
    retrievers: tuple[Retriever, Retriever], listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper_filters, "LISTED", listed)
    for wanted in (
        PaperFilter.parse(years=["2010"]),
        PaperFilter.parse(years=["2012-"]),
        PaperFilter.parse(years=["-2012, 2018-"]),
        PaperFilter.parse(years=["1990"]),
        PaperFilter.parse(years=["2012-"], sections=["methods"]),
        PaperFilter.parse(years=["2012-"], sections=["results"]),
        PaperFilter.parse(years=["2012-"], sections=["2 Methods"]),
        PaperFilter.parse(sections=["methods", "results"]),
        PaperFilter.parse(sections=["references"]),
        PaperFilter.parse(authors=["Lee"]),
        PaperFilter.parse(authors=["B. Lee"], years=["2020"]),
        PaperFilter.parse(authors=["Otani", "Berg"]),
        PaperFilter.parse(authors=["Ken"]),
        PaperFilter.parse(authors=["李"]),
        PaperFilter.parse(authors=["NIST"], sections=["results"]),
        PaperFilter.parse(authors=["Lee", "Nobody"]),
        PaperFilter.parse(papers=["glaciers.pdf"], years=["2015"]),
    ):
        for question in ("fur and ice", "keys of a tree"):
            assert shown(retrievers[1], question, wanted) == shown(retrievers[0], question, wanted), wanted


def test_papers_of_some_years_are_not_listed_in_a_large_library(
    retrievers: tuple[Retriever, Retriever], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper_filters, "LISTED", 0)
    here, there = retrievers
    wanted = PaperFilter.parse(years=["2012-"])
    found = there.select(wanted).papers
    assert isinstance(found, PapersOfYears)
    there.search("fur and ice", 3, found)
    assert "_papers" not in vars(found)
    assert list(found) == here.select(wanted).papers
    assert [hit.paper for hit in there.search_papers("keys", 3, papers=found)] == [
        hit.paper for hit in here.search_papers("keys", 3, papers=found)
    ]


def test_an_edit_is_seen_at_once_by_readers_that_are_open(milvus: HashingApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_filters, "LISTED", 0)
    wanted = PaperFilter.parse(years=["1999"])
    with closing(again(milvus).open_library()) as library, closing(again(milvus).open_library()) as other:
        retriever = milvus.retriever(library)
        (paper,) = (paper for paper in library.papers() if paper.file == "otters.pdf")
        assert retriever.search("fur", 3).hits[0].paper.year == 2010
        assert other.change_metadata(paper.id, "person", lambda old: replace(old, year=Field(1999, "person", True)))
        try:
            assert retriever.search("fur", 3).hits[0].paper.year == 1999
            assert {hit.paper.id for hit in retriever.search("ice", 9, retriever.select(wanted).papers).hits} == {
                paper.id
            }
            assert milvus.backend.index_faults(other) == ["The words of some papers are not counted yet"]
        finally:
            other.set_metadata(paper.id, "person", said(*SAID["otters.pdf"]))
            milvus.backend.update_indexes(other)
        with pytest.raises(NotKnown, match="No paper fits the year"):
            retriever.select(wanted)


def test_a_renamed_paper_keeps_its_fine_passages(milvus: HashingApp, local: HashingApp) -> None:
    with closing(milvus.open_library()) as library, closing(local.open_library()) as here:
        (paper,) = (paper for paper in library.papers() if paper.file == "trees.pdf")
        before = library.fine_in(library.chunk_ids_of([paper.id]))
        as_named = library.metadata_layers(paper.id)["person"]
        assert library.change_metadata(
            paper.id, "person", lambda old: replace(old, title=Field("Elms", "person", True))
        )
        assert library.fine_in(library.chunk_ids_of([paper.id])) == before
        library.set_metadata(paper.id, "person", as_named)
        milvus.backend.update_indexes(library)
        assert library.chunk_count("fine") == here.chunk_count("fine")
    assert again(milvus).verify() == []


def test_fine_passages_are_repaired_from_the_records(tmp_path: Path, papers: Path) -> None:
    with lite_app(tmp_path, papers, **DUAL) as app:
        fill(app)
        with closing(app.open_library()) as library:
            assert isinstance(library, MilvusLibrary)
            fine = library.fine_in(library.chunk_ids_of(paper.id for paper in library.papers()))
            kept = list(library.records.records(library.names.epoch))
            assert all(PaperRecord.from_text(record.to_text()).paper == record.paper for record, _ in kept)
            (row, *_) = library.milvus.rows(library.names.fine, "start >= 0", ["key"])
            library.milvus.delete(library.names.fine, f'key == "{row["key"]}"')
            assert any("fine passages, and should have" in fault for fault in again(app).verify())
            library.milvus.drop(library.names.fine)
        with pytest.raises(StoreDamaged, match=r"are missing: folio_\w+_fine\.$"):
            again(app).open_library()
        app.backend.repair()
        with closing(again(app).open_library()) as library:
            assert library.fine_in(library.chunk_ids_of(paper.id for paper in library.papers())) == fine
        assert again(app).verify() == []
        single = HashingApp(app.settings.model_copy(update={"INDEX": "single"}), app.notice, app.hashing)
        with closing(single.open_library()) as library, pytest.raises(StoreMismatch, match="index is dual in the"):
            single.retriever(library)


def test_a_record_with_a_fine_passage_outside_its_passage_is_refused() -> None:
    from folio.cluster.paper_record import nested

    assert nested([(0, 9), (9, 20), (0, 4), (10, 12)], [0, 1]) == (((0, 9), (9, 20)), (((0, 4),), ((10, 12),)))
    for chunks, places in (([(0, 9), (8, 10)], [0]), ([(0, 9), (0, 4)], [1]), ([(0, 4)], [0, 0])):
        with pytest.raises(ValueError, match="passage"):
            nested(chunks, places)
