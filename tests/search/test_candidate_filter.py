"""Which passages may be found: those of chosen sections, and references or licences only if they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from folio.papers.model import NewPaper, PageMap, SourceFile
from folio.papers.sections import Kind, PaperSection
from folio.question.question import Question
from folio.search.filters import CandidateFilter, SectionFilter, deep_enough, first_depth
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever, SearchRequest
from folio.store import indexes
from folio.store.library import Library
from tests.helpers.factories import shelf
from tests.helpers.fakes import HashingApp, HashingEmbedder

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("Which papers does Raft cite?", {"references"}), ("List the references on otters.", {"references"}),
        ("Who is cited for the sampling theorem?", {"references"}), ("Is there a bibliography?", {"references"}),
        ("Who funded the study?", {"acknowledgements", "boilerplate"}),
        ("Which grants supported the work?", {"acknowledgements"}),
        ("Whom do the authors thank?", {"acknowledgements", "boilerplate"}),
        ("Which foundation paid for it?", {"acknowledgements"}),
        ("Under which licence is the paper released?", {"boilerplate"}), ("Who holds the copyright?", {"boilerplate"}),
        ("What are the affiliations of the authors?", {"boilerplate"}),
        ("Who is the corresponding author?", {"boilerplate"}), ("At which university was it written?", {"boilerplate"}),
        ("When was the manuscript accepted?", {"boilerplate"}), ("Are there conflicts of interest?", {"boilerplate"}),
        ("How do sea otters sleep?", set()), ("What is a log entry?", set()),
        ("How fast is leader election in Raft?", set()), ("Which threshold is preferred?", set()),
    ],
)  # fmt: skip
def test_what_a_question_asks_for(question: str, kinds: set[Kind]) -> None:
    assert Question(question).kinds == kinds


OTTERS = "Otters sleep on kelp."
HEADS: tuple[tuple[str, Kind], ...] = (
    ("Methods", "methods"), ("Results", "results"), ("Threats to the validity of it", "limitations"),
    ("Acknowledgements", "acknowledgements"), ("References", "references"),
)  # fmt: skip
COUNT = 120


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> HashingApp:
    """A paper whose references say much more about otters than its sections do."""
    app = shelf(tmp_path_factory.mktemp("store"))
    embedder = HashingEmbedder(256)
    text, spans, sections = "", [], []
    for title, kind in HEADS:
        start = len(text)
        for number in range(COUNT if kind == "references" else 2):
            words = f"[{number}] {OTTERS} Otters sleep." if kind == "references" else f"{title} {number}. {OTTERS}"
            spans.append((len(text), len(text) + len(words)))
            text += f"{words}\n\n"
        sections.append(PaperSection(start, len(text), 1, "", title, kind))
    library = Library(app.library_path, create=True)
    paper = NewPaper(
        "p" * 64, library.papers()[0].metadata, text, PageMap((0,), ("",)), tuple(spans), (), tuple(sections)
    )
    vectors = embedder.embed_passages([text[start:end] for start, end in spans])
    library.add(paper, SourceFile("/p/sleep.pdf", "sleep.pdf", paper.id), range(1, len(spans) + 1), vectors)
    indexes.update_indexes(app.settings.VECTORSTORE_DIR, library, "tantivy")
    library.close()
    return app


@pytest.fixture
def library(app: HashingApp) -> Iterator[Library]:
    library = Library(app.library_path)
    yield library
    library.close()


@pytest.fixture
def retriever(app: HashingApp, library: Library) -> Retriever:
    fusion = FusionSettings(0.5, 0.5, 4)
    return Retriever(library, lambda: app.open_indexes(library), HashingEmbedder(256), None, fusion)


def kinds(retriever: Retriever, question: str, top_k: int, *wanted: str) -> list[str]:
    sections = SectionFilter(wanted) if wanted else None
    hits = retriever.find(SearchRequest(Question(question), top_k, sections=sections)).hits
    return [section.kind for hit in hits for section in hit.paper.sections.of(hit.chunk.start, hit.chunk.end)]


def test_searches_and_earlier_evidence_keep_to_the_sections(retriever: Retriever) -> None:
    question = "Where do otters sleep?"
    found = kinds(retriever, question, 6)
    assert sorted(found) == ["limitations", "limitations", "methods", "methods", "results", "results"]
    assert set(kinds(retriever, "Which references tell where otters sleep?", 6)) == {"references"}
    assert kinds(retriever, question, 4, "methods") == ["methods"] * 2
    assert kinds(retriever, question, 4, "Result") == ["results"] * 2
    assert kinds(retriever, question, 4, "validity threats") == ["limitations"] * 2
    assert set(kinds(retriever, question, 9, "methods", "threats")) == {"methods", "limitations"}
    assert set(kinds(retriever, question, 4, "references")) == {"references"}
    assert kinds(retriever, question, 4, "proofs") == []
    earlier = retriever.search(question, 20, None, [9, 10]).hits
    assert not {hit.chunk.id for hit in earlier} & {9, 10}


def test_a_filtered_search_is_the_whole_ranking_filtered(retriever: Retriever, library: Library) -> None:
    question = "Where do otters sleep?"
    whole = retriever.search("Which references tell where otters sleep, thanks?", 500, rerank=False).ranked["dense"]
    vector = retriever.embedder.embed_query(question)
    index = retriever._indexes.passages  # type: ignore[union-attr]
    everything = index.search(vector, 999)
    candidates = CandidateFilter.of(library, Question(question), None)
    allowed = candidates.allowed(chunk for chunk, _ in everything)
    expected = [pair for pair in everything if pair[0] in allowed]
    assert len(whole) > len(expected) > 5
    for wanted in (1, 3, len(expected), 999):
        first = index.search(vector, first_depth(wanted))
        found = deep_enough(lambda depth: index.search(vector, depth), wanted, candidates, first)
        assert found == expected[:wanted]


def test_a_passage_counts_by_where_most_of_it_lies(library: Library, tmp_path: Path) -> None:
    paper = next(paper for paper in library.papers() if paper.file == "sleep.pdf")
    border = next(section.start for section in paper.sections.sections if section.kind == "acknowledgements")
    candidates = CandidateFilter.of(library, Question("Where do otters sleep?"), None)
    candidates.allowed([1])  # reads the paper
    allows = candidates._allows
    chunk = candidates.chunks[1]
    cases = {(border - 20, border + 10): True, (border - 10, border + 20): False, (border - 10, border + 10): True}
    for (start, end), is_allowed in cases.items():
        moved = type(chunk)(chunk.id, chunk.paper_id, start, end)
        assert allows(moved) is is_allowed
