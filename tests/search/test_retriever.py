"""Searching a store: its indexes and extra candidates, fused and reranked; of passages alone, and with fine ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from folio.errors import UsageError
from folio.papers.metadata import simple_metadata
from folio.papers.model import Hit, Paper
from folio.protocols import Embedder, Reranker, TermWeights
from folio.question.question import Question
from folio.search.filters import PaperFilter
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever, SearchRequest, reranked
from folio.system import workers
from tests.helpers.factories import write_pdf
from tests.helpers.fakes import HashingApp, hashing_app, read_here
from tests.helpers.paths import SAMPLE

pytestmark = pytest.mark.fast

ICE = "How long is the Aletsch glacier?"
PASSAGES = {
    "glacier": "The Aletsch glacier is 23 kilometres long.",
    "thickness": "How thick the Aletsch is differs from place to place.",
    "otters": "Sea otters float in rafts of kelp and sleep there.",
    "warden": "A warden reads the gauge on every Monday.",
    "moon": "The moon has been visited by twelve people so far.",
    "bees": "Bees dance in order to tell where flowers are.",
}
Make = Callable[..., Retriever]


def test_a_search_can_skip_the_reranker(make: Make) -> None:
    reranker = PrefersWord("warden", None)
    found = make(reranker, 9).search(ICE, 3, rerank=False)
    assert found.hits == make(candidates=9).search(ICE, 3).hits
    assert (reranker.given, "rerank" in found.timings_ms, "reranked" in found.ranked) == ([], False, False)


def test_another_connection_finds_the_same_with_the_same_models(app: HashingApp, make: Make) -> None:
    first = make(PrefersWord("warden", None), 9)
    with closing(app.open_library()) as library:
        second = first.with_library(library, lambda: app.open_indexes(library))
        assert second.search(ICE, 3).hits == first.search(ICE, 3).hits
        assert (second.embedder, second.models) == (first.embedder, first.models)


class PrefersWord:
    """A reranker that puts passages containing a word first."""

    name = "prefers"

    def __init__(self, word: str, reads: int | None) -> None:
        self.word = word
        self.reads = reads
        self.question = ""
        self.given: list[str] = []

    def scores(self, question: Question, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        self.question = question.text
        self.given = [hit.text for hit in hits]
        return [1.0 if self.word in hit.text else 0.5 for hit in hits]


def six_papers(folder: Path, index: str) -> HashingApp:
    """Six papers of one passage each, in an index of passages alone, or with fine ones."""
    sizes: dict[str, Any] = {"CHUNK_SIZE": 400, "CHUNK_OVERLAP": 0, "COARSE_SIZE": 400, "FINE_SIZE": 50}
    app = hashing_app(folder, INDEX=index, **sizes)
    for name, text in PASSAGES.items():
        write_pdf(app.settings.PAPERS_DIR / f"{name}.pdf", [text], f"On {name}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_here)
        app.run()
    return app


@pytest.fixture(scope="module", params=["single", "dual"])
def app(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> HashingApp:
    """The papers, for tests that change nothing."""
    return six_papers(tmp_path_factory.mktemp("papers"), request.param)


@pytest.fixture(params=["single", "dual"])
def own_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> HashingApp:
    """The papers, for a test that reads others."""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    return six_papers(tmp_path, request.param)


@contextmanager
def retrievers(app: HashingApp) -> Iterator[Make]:
    with closing(app.open_library()) as library:

        def make(reranker: Reranker | None = None, candidates: int = 1, **switches: Any) -> Retriever:
            fusion = FusionSettings(0.7, 0.3, candidates, candidates, **switches)
            return Retriever(library, lambda: app.open_indexes(library), app.hashing, reranker, fusion)

        yield make


@pytest.fixture
def make(app: HashingApp) -> Iterator[Make]:
    with retrievers(app) as found:
        yield found


@pytest.fixture
def make_own(own_app: HashingApp) -> Iterator[Make]:
    with retrievers(own_app) as found:
        yield found


def named(hits: Sequence[Hit]) -> list[str]:
    return [hit.paper.file.removesuffix(".pdf") for hit in hits]


def ids_of(make: Make, *names: str) -> list[int]:
    found = make(candidates=50).search("What is this?", 50).hits
    assert sorted(named(found)) == sorted(PASSAGES)
    return [hit.chunk.id for name in names for hit in found if named([hit]) == [name]]


def test_the_best_of_both_searches_are_found_in_order(make: Make) -> None:
    found = make(candidates=20).search(ICE, 2)
    assert named(found.hits) == ["glacier", "thickness"]
    for hit in found.hits:
        assert hit.text == PASSAGES[named([hit])[0]]
        assert (hit.pages, hit.where) == ((1, 1), "p. 1")
        assert None not in (hit.dense, hit.lexical)
    assert found.hits[0].score == 1.0
    assert found.hits[0].score > found.hits[1].score > 0
    assert list(found.timings_ms) == ["open", "bm25", "embed", "dense", "read"]


def test_a_text_is_read_as_it_is_in_the_paper(make: Make) -> None:
    (hit,) = make().search(ICE, 1).hits
    assert make().text(hit.paper.id, hit.chunk.start, hit.chunk.end) == hit.text
    assert make().text(hit.paper.id, hit.chunk.start + 4, hit.chunk.start + 11) == hit.text[4:11]
    assert make().text("no paper", 0, 10) == ""


class OfAServer:
    """The methods of an embedder, but nobody can look up its words."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.identity, self.dimension = embedder.name, embedder.identity, embedder.dimension
        self.embed_query, self.embed_queries = embedder.embed_query, embedder.embed_queries
        self.embed_passages = embedder.embed_passages


@pytest.mark.parametrize(
    ("query", "expected"),
    [("xqzzyv blorfgh", False), ("xqzzyv automobile", True), ("Kraftfahrzeug glacier", True), ("?", True),
     ("冰川", True)],  # it may know Chinese
)  # fmt: skip
def test_nonsense_is_told_whatever_the_embedder(app: HashingApp, query: str, expected: bool) -> None:
    with closing(app.open_library()) as library:
        fusion, words = FusionSettings(0.7, 0.3, 1, 1), {"automobile"}
        embedder = OfAServer(app.hashing)
        retriever = Retriever(library, lambda: app.open_indexes(library), embedder, None, fusion, words.__contains__)
        assert retriever.is_understood(query) is expected


# Several readings of a question

GAUGE = "On which day does a warden read the gauge?"


def test_readings_are_embedded_in_one_call_and_their_agreement_decides(app: HashingApp, make: Make) -> None:
    retriever = make(candidates=20)
    before = len(app.hashing.queries)
    found = retriever.find(SearchRequest(Question("Why every Monday?"), 9, readings=[GAUGE, "Why every Monday?", ICE]))
    assert app.hashing.queries[before:] == ["Why every Monday?", GAUGE, ICE]  # each once
    alone = [
        {hit.chunk.id: hit.score for hit in make(candidates=20).search(reading, 9).hits}
        for reading in ("Why every Monday?", GAUGE, ICE)
    ]
    expected = {id: sum(scores[id] for scores in alone) / 3 for id in alone[0]}
    assert {hit.chunk.id: hit.score for hit in found.hits} == pytest.approx(expected)
    assert named(found.hits)[0] == "warden"


def test_a_passage_gets_a_cosine_from_every_reading(make: Make) -> None:
    found = make(candidates=1).find(SearchRequest(Question(ICE), 2, readings=[GAUGE]))
    assert sorted(named(found.hits)) == ["glacier", "warden"]
    assert all(hit.dense is not None for hit in found.hits)
    own = make(candidates=1).search(ICE, 2).ranked
    assert [found.ranked[stage] for stage in ("dense", "bm25")] == [own["dense"], own["bm25"]]


def test_the_reranker_reads_the_question_and_not_its_other_readings(make: Make) -> None:
    reranker = PrefersWord("warden", None)
    found = make(reranker, 20).find(SearchRequest(Question(ICE), 1, readings=[GAUGE]))
    assert (reranker.question, named(found.hits)) == (ICE, ["warden"])


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_without_a_reranker_an_earlier_passage_displaces_no_better_one(make: Make, top_k: int) -> None:
    own = make().search(ICE, top_k).hits
    assert make().search(ICE, top_k, None, ids_of(make, *PASSAGES)).hits == own
    found = make().search(ICE, 9, None, ids_of(make, *PASSAGES)).hits
    assert found[:top_k] == own
    assert sorted(named(found)) == sorted(PASSAGES)


@pytest.mark.parametrize("reads", [None, 1, 20])
def test_the_reranker_always_reads_an_earlier_passage(make: Make, reads: int | None) -> None:
    earlier = ids_of(make, "warden")
    reranker = PrefersWord("warden", reads)
    assert named(make(reranker).search(ICE, 1).hits) == ["glacier"]
    (best,) = make(reranker).search(ICE, 1, None, earlier).hits
    assert (best.chunk.id, best.score, best.text) == (earlier[0], 1.0, PASSAGES["warden"])
    assert best.dense == pytest.approx(_cosine(make, ICE, PASSAGES["warden"]), abs=1e-6)
    assert best.lexical is None
    assert reranker.given == [PASSAGES["glacier"], PASSAGES["warden"]]


@pytest.mark.parametrize("word", [None, "thick", "warden"])
def test_earlier_passages_found_again_gone_or_filtered_add_nothing(make: Make, word: str | None) -> None:
    reranker = PrefersWord(word, None) if word else None
    own = make(reranker, 20).search(ICE, 4).hits
    ids = [hit.chunk.id for hit in own]
    assert make(reranker, 20).search(ICE, 4, None, [*ids, *ids]).hits == own
    own = make(reranker).search(ICE, 2).hits
    assert make(reranker).search(ICE, 2, None, [1, 2**62]).hits == own
    papers = named_so(make, "glacier.pdf", "thickness.pdf")
    found = make(reranker).search("Who is the warden?", 9, papers, ids_of(make, "warden", "thickness")).hits
    assert sorted(named(found)) == ["glacier", "thickness"]
    assert make(reranker).search("Who is the warden?", 9, [], ids_of(make, "warden")).hits == ()


def test_an_earlier_passage_of_a_dropped_paper_is_left_out(own_app: HashingApp, make_own: Make) -> None:
    retriever = make_own(PrefersWord("warden", None))
    earlier = ids_of(make_own, "warden")
    assert named(retriever.search(ICE, 1, None, earlier).hits) == ["warden"]
    (own_app.settings.PAPERS_DIR / "warden.pdf").unlink()
    own_app.run(prune=True)
    assert named(retriever.search(ICE, 1, None, earlier).hits) == ["glacier"]


def _cosine(make: Make, question: str, text: str) -> float:
    embedder = make().embedder
    return float(embedder.embed_passages([text])[0] @ embedder.embed_query(question))


def test_the_sample_is_searched_alone_or_by_name(own_app: HashingApp, make_own: Make, tmp_path: Path) -> None:
    shutil.copy(SAMPLE, own_app.settings.PAPERS_DIR)
    own_app.run()
    assert "folio-sample" not in named(make_own(candidates=50).search("Which passages are found?", 99).hits)
    assert "folio-sample" in named(make_own(candidates=9).search("Which passages does Folio find?", 99).hits)
    papers = make_own().select(PaperFilter.parse(["folio-sample.pdf"])).papers
    assert set(named(make_own(candidates=9).search("Which passages are found?", 9, papers).hits)) == {"folio-sample"}
    own = make_own(candidates=1).search("Which passages and citations float in rafts?", 1).ranked
    assert len(own["dense"]) == len(own["bm25"]) == 1  # what is left out takes no place
    alone = hashing_app(tmp_path / "alone")
    alone.settings.PAPERS_DIR.mkdir(parents=True)
    shutil.copy(SAMPLE, alone.settings.PAPERS_DIR)
    alone.run()
    with closing(alone.open_library()) as library:
        fusion = FusionSettings(0.7, 0.3, 9)
        retriever = Retriever(library, lambda: alone.open_indexes(library), alone.hashing, None, fusion)
        assert set(named(retriever.search("Which passages are found?", 9).hits)) == {"folio-sample"}


def test_an_exact_name_goes_before_a_part(own_app: HashingApp, make_own: Make) -> None:
    for file, title in (("bert", "BERT: Guessing Words"), ("r", "RoBERTa: Guessing More Words than BERT")):
        write_pdf(own_app.settings.PAPERS_DIR / f"{file}.pdf", [f"{title} are guessed."], title)
    own_app.run()
    for name, files in (("BERT", ["bert.pdf"]), ("roberta", ["r.pdf"]), ("guessing", ["bert.pdf", "r.pdf"])):
        assert [paper.file for paper in named_so(make_own, name)] == files


def test_ties_keep_their_order(make: Make) -> None:
    hits = make(candidates=20).search(ICE, 4).hits
    assert [hit.chunk for hit in reranked(PrefersWord("nothing", None), Question(ICE), hits, {})] == [
        hit.chunk for hit in hits
    ]


def named_so(make: Make, *names: str) -> list[Paper]:
    papers = make().select(PaperFilter.parse(names)).papers
    assert papers is not None
    return list(papers)


def test_papers_are_named_by_part_of_a_title(make: Make) -> None:
    for names, files in ((["ON GLA"], ["glacier"]), (["warden.p", "glacier"], ["glacier", "warden"])):
        assert [paper.file for paper in named_so(make, *names)] == [f"{file}.pdf" for file in files]
    assert make().select(PaperFilter()).papers is None
    with pytest.raises(UsageError, match=r"is called “glaciers.pdf”. Similar names: glacier\.pdf"):
        named_so(make, "glaciers.pdf")


def test_dense_alone_and_bm25_alone(app: HashingApp, make: Make) -> None:
    dense = make(candidates=20, mode="dense").search(ICE, 9)
    assert {hit.lexical for hit in dense.hits} == {None}
    assert "bm25" not in dense.ranked
    assert len(dense.hits) == len(PASSAGES)
    (moon,) = ids_of(make, "moon")
    before = list(app.hashing.queries)
    lexical = make(candidates=20, mode="lexical").search(ICE, 9)
    assert named(lexical.hits) == ["glacier", "thickness"]  # no other passage has one of the words
    assert [(hit.dense, hit.lexical is None) for hit in lexical.hits] == [(None, False)] * 2
    assert (list(lexical.ranked), lexical.hits[0].score) == (["bm25", "fused"], 1.0)
    found = make(candidates=20, mode="lexical").search(ICE, 9, also=[moon]).hits  # evidence of earlier turns
    assert (named(found), found[2].score) == (["glacier", "thickness", "moon"], 0.0)
    assert app.hashing.queries == before  # no question was embedded


def test_too_few_hits_of_bm25_bring_the_dense_ones(make: Make) -> None:
    assert make(candidates=20, mode="lexical").search("astronauts", 9).hits == ()
    enough = make(candidates=20, mode="lexical", min_hits=2)
    assert named(enough.search(ICE, 9).hits) == ["glacier", "thickness"]
    fewer = make(candidates=20, mode="lexical", min_hits=3)
    assert fewer.search(ICE, 9).hits == make(candidates=20).search(ICE, 9).hits


def test_what_repeats_a_better_passage_comes_later(own_app: HashingApp, make_own: Make) -> None:
    again = "The Aletsch glacier is 23 kilometres long, they say."
    write_pdf(own_app.settings.PAPERS_DIR / "again.pdf", [again], "On ice again")
    own_app.run()
    plain = make_own(candidates=20).search(ICE, 3)
    assert set(named(plain.hits)[:2]) == {"glacier", "again"}
    spread = make_own(candidates=20, mmr_lambda=0.5).search(ICE, 3)
    assert named(spread.hits)[0] == named(plain.hits)[0]
    assert named(spread.hits)[1] != named(plain.hits)[1]
    assert spread.ranked["mmr"][0] == spread.hits[0].chunk.id
    assert make_own(candidates=20, mmr_lambda=1.0).search(ICE, 3).ranked.keys() == plain.ranked.keys()
    unranked = make_own(candidates=20, mmr_lambda=0.5).search(ICE, 3, rerank=False)
    assert unranked.hits == make_own(candidates=20).search(ICE, 3, rerank=False).hits


def test_names_of_papers_follow_the_library(own_app: HashingApp, make_own: Make) -> None:
    retriever = make_own(candidates=9)
    names = retriever.paper_names()
    assert retriever.paper_names() is names
    (warden,) = names.meant("what is in warden.pdf?")
    assert names.meant("who wrote Gauges at Dawn?") == ()
    with closing(own_app.open_library()) as library:
        library.set_metadata(warden.id, "person", simple_metadata("Gauges at Dawn", origin="person"))
    own_app.finish_ingest()
    assert [paper.id for paper in retriever.paper_names().meant("who wrote Gauges at Dawn?")] == [warden.id]


def test_a_bare_identifier_comes_first_where_it_is_defined(own_app: HashingApp) -> None:
    """With any reranker, and without; the order of papers is that of the fused scores."""
    mentions, defines = "XOF-128 calls XOF-128, then XOF-128.", "Rafts drift here. XOF-128 is a function without end."
    for name, text in (("mentions", mentions), ("defines", defines)):
        write_pdf(own_app.settings.PAPERS_DIR / f"{name}.pdf", [text], f"On {name}")
    own_app.run()
    with retrievers(own_app) as make:
        for reranker, rerank in ((None, True), (PrefersWord("calls", None), True), (PrefersWord("calls", None), False)):
            hits = make(reranker, 9).search("XOF-128", 5, rerank=rerank).hits
            assert hits[0].paper.file == "defines.pdf"
        fused = make(candidates=9).find(SearchRequest(Question("XOF-128"), 5, rerank=False, defined=False)).hits
        assert fused[0].paper.file == "mentions.pdf"
