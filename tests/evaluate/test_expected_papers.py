"""Sets that name the papers they expect, such as eval_set.json: what is read, which papers are meant, what is wrong."""

from __future__ import annotations

import hashlib
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from folio.errors import UsageError
from folio.evaluate import dataset
from folio.evaluate.dataset import Gold, PaperLookup, Question, resolved
from folio.evaluate.relevance import RelevanceJudge
from folio.evaluate.runner import load
from folio.papers.metadata import Field, Metadata
from folio.papers.model import NewPaper, PageMap, SourceFile
from folio.papers.work import Work
from folio.store import works
from folio.store.library import Library
from tests.helpers.cli_runner import CliRunner

pytestmark = pytest.mark.fast

ATTENTION = {"question": "What is attention?", "arxiv_ids": ["1706.03762"]}
# The file of each paper -> its title, arXiv id and DOI
PAPERS = {
    "1706.03762v5.pdf": ("Attention Is All You Need", "", ""),
    "rag/survey.pdf": ("A Survey of Retrieval", "2312.10997v1", ""),
    "survey-new.pdf": ("A Survey of Retrieval", "2312.10997v5", ""),
    "glaciers.pdf": ("Glaciers of the Alps", "", "10.1000/ICE.1"),
    "hep.pdf": ("Strings", "hep-th/9901001", ""),
    "kept.pdf": ("Otters", "", ""),
}


def written(folder: Path, value: Any) -> Path:
    path = folder / "eval_set.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1), encoding="utf-8")
    return path


def read(folder: Path, value: Any) -> tuple[Question, ...]:
    return dataset.load(written(folder, value)).questions


@pytest.fixture
def filled(library: Library) -> Library:
    """A library of these papers, one of which is a work with an OpenAlex id and an arXiv version."""
    for file, (title, arxiv, doi) in PAPERS.items():
        id = hashlib.sha256(file.encode()).hexdigest()
        said = {"title": title, "arxiv": arxiv, "doi": doi}
        about = Metadata(**{name: Field(value, "page", True) for name, value in said.items() if value})  # type: ignore[arg-type]
        paper = NewPaper(id, about, "Text.", PageMap((0,), ("",)), ())
        library.add(paper, SourceFile(f"/papers/{file}", file, id), [], np.zeros((0, 64), dtype=np.float32))
    with library.database.transaction():
        (work,) = works.put(library.database, [Work("openalex", title="Otters", arxiv="2001.00001", openalex="W77")])
        works.link_paper(library.database, hashlib.sha256(b"kept.pdf").hexdigest(), work, "title", 0.95)
    return library


# What is read


def test_an_entry_by_any_names_of_its_fields(tmp_path: Path) -> None:
    keys = ("question", "query")
    answers = ("answer", "expected_answer", "ground_truth")
    names = ("arxiv_ids", "papers", "relevant_papers", "expected_papers", "relevant_docs")
    gold = (Gold("1706.03762"), Gold("rag.pdf"))
    twice = ["1706.03762", "rag.pdf", "1706.03762"]
    for key, answer, papers in product(keys, answers, names):
        entry = {key: " What is\nattention? ", answer: "A weighted sum.", papers: twice}
        (question,) = read(tmp_path, [{**entry, "topic": "transformers", "expected_keywords": ["heads"]}])
        assert question == Question("q1", "What is attention?", "", True, "A weighted sum.", gold, every=True)


def test_one_paper_needs_no_list(tmp_path: Path) -> None:
    for name in ("arxiv_id", "expected_arxiv_ids", "gold_ids", "papers"):
        (question,) = read(tmp_path, [{"id": 7, "question": "Why?", name: "1706.03762v5", "answer": None}])
        assert question == Question("7", "Why?", "", True, "", (Gold("1706.03762v5"),))


def test_a_list_in_an_object_is_read_like_lines(tmp_path: Path) -> None:
    entries = [ATTENTION, {"query": "Who sang?", "answerable": False, "paper": "a"}]  # what it is about
    asked = read(tmp_path, entries)
    assert [(question.id, question.answerable) for question in asked] == [("q1", True), ("q2", False)]
    assert read(tmp_path, {"version": 2, "questions": entries}) == asked
    assert read(tmp_path, "\n".join(map(json.dumps, entries))) == asked


def test_questions_are_read_beside_metadata(tmp_path: Path) -> None:
    rows = [
        {"id": "q_001", "question": "How long?", "category": "number", "expected_answer": "23 km",
         "source": "glaciers.pdf", "page": 4, "difficulty": "easy"},
        {"id": "q_002", "question": "How dense?", "ground_truth": ["Very.", "160,000 hairs"],
         "expectedPapers": ["a", "b"]},
        {"id": "q_003", "question": "Who?", "source_documents": [{"file": "a.pdf", "pages": "2-3"}, {"title": "B"}]},
        {"id": "q_004", "question": "Where?", "should_refuse": True},
    ]  # fmt: skip
    about = {"metadata": {"name": "Glaciers", "total_questions": 4, "questions": "by hand", "papers": ["x"]}}
    asked = read(tmp_path, {**about, "questions": rows})
    assert asked == (
        Question("q_001", "How long?", "number", True, "23 km", (Gold("glaciers.pdf", 4),), difficulty="easy"),
        Question("q_002", "How dense?", "", True, "Very.; 160,000 hairs", (Gold("a"), Gold("b")), every=True),
        Question("q_003", "Who?", "", True, "", (Gold("a.pdf", 2), Gold("a.pdf", 3), Gold("B")), every=True),
        Question("q_004", "Where?", "", False),
    )
    assert read(tmp_path, rows) == asked
    assert read(tmp_path, {**about, "samples": rows}) == asked
    assert read(tmp_path, "\n".join(map(json.dumps, [about, *rows]))) == asked


WHOLE = {
    "query_id": "q7", "query": "How long is the Aletsch glacier?", "difficulty": "hard", "papers": ["glaciers.pdf"],
    "pages": [3, 5], "expected_topics": ["glacier length", "the Alps"], "reference_answer": "23 km",
    "metadata": {"author": "Ada", "papers": 2, "difficulty": "easy"},
}  # fmt: skip


def test_difficulty_pages_and_topics_are_read_wherever_the_questions_are(tmp_path: Path) -> None:
    gold = (Gold("glaciers.pdf", 3), Gold("glaciers.pdf", 5))
    topics = ("glacier length", "the Alps")
    whole = Question(
        "q7", "How long is the Aletsch glacier?", "", True, "23 km", gold, difficulty="hard", topics=topics
    )
    about = {"metadata": {"version": 1, "papers": ["x"]}}
    for value in ([WHOLE], {"eval_set": [WHOLE]}, {**about, "questions": [WHOLE]}, {**about, "eval_set": [WHOLE]}):
        assert read(tmp_path, value) == (whole,)
    (inside,) = read(tmp_path, [{**WHOLE, "difficulty": None, "pages": "3-4"}])
    assert (inside.difficulty, [entry.page for entry in inside.gold]) == ("", [3, 4])
    (inside,) = read(tmp_path, [{name: value for name, value in WHOLE.items() if name != "difficulty"}])
    assert inside.difficulty == "easy"


def test_each_of_several_papers_may_have_its_pages(tmp_path: Path) -> None:
    entry = {**WHOLE, "papers": ["a.pdf", "b.pdf"]}
    expected = (Gold("a.pdf", 3), Gold("b.pdf", 5), Gold("b.pdf", 6))
    known: tuple[Any, ...] = ({"a.pdf": [3], "b.pdf": "5-6"}, [[3], [5, 6]], ["3", "5-6"])
    for pages in known:
        (question,) = read(tmp_path, [{**entry, "pages": pages}])
        assert (question.gold, question.every) == (expected, True)
    unknown: tuple[Any, ...] = ([3, 5, 6], 3, None, {})  # nobody can tell whose they are
    for pages in unknown:
        (question,) = read(tmp_path, [{**entry, "pages": pages}])
        assert question.gold == (Gold("a.pdf"), Gold("b.pdf"))
    with pytest.raises(UsageError, match="pages is not a page of the file"):
        read(tmp_path, [{**entry, "pages": [["x"], [1]]}])


PAPER_FIELDS = """paper source sources source_file fileName relevant_doc_ids ground_truth_papers paper_title
    expected_sources goldArxivIds reference_documents doi expected_ids pdf_path cited_papers"""


def test_a_field_that_is_called_after_papers_names_them(tmp_path: Path) -> None:
    for field in PAPER_FIELDS.split():
        (question,) = read(tmp_path, [{"id": "a", "question": "Why?", field: ["otters.pdf"], "source_type": "web"}])
        assert question.gold == (Gold("otters.pdf"),), field


def test_questions_below_a_paper_are_about_it(tmp_path: Path) -> None:
    groups = [
        {"paper": "a.pdf", "questions": [{"question": "Why?", "page": 2, "quote": "Because."}, {"question": "How?"}]},
        {"document": "b.pdf", "questions": [{"question": "Who?", "papers": ["c.pdf"]}]},
    ]
    assert [question.gold for question in read(tmp_path, groups)] == [
        (Gold("a.pdf", 2, "Because."),), (Gold("a.pdf"),), (Gold("c.pdf"),)
    ]  # fmt: skip


def test_of_several_lists_the_first_that_is_not_null_counts(tmp_path: Path) -> None:
    (question,) = read(tmp_path, [{"question": "?", "papers": ["Some title"], "arxiv_ids": ["1"], "arxiv_id": None}])
    assert question.gold == (Gold("1"),)


def test_questions_of_our_own_format_may_stand_beside_them(tmp_path: Path) -> None:
    own = {"id": "own", "question": "?", "gold": [{"paper": "ice.pdf", "page": 2}]}
    loaded = dataset.load(written(tmp_path, [own, ATTENTION]))
    assert [question.id for question in loaded.questions] == ["own", "q2"]
    assert loaded.is_by_name
    assert not dataset.load(written(tmp_path, [own])).is_by_name


NO_TEXT = "has no text in question, query, user_input or prompt; it has"
NO_PAPER = "names no paper: it has"
NO_PAGE = "is not a page of the file, counted from 1"


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({}, f"question 2 {NO_TEXT} no fields"),
        ({"question": " "}, f"question 2 {NO_TEXT} question"),
        ({"frage": "Warum?", "papers": "a"}, f"question 2 {NO_TEXT}"),
        ({"question": ["Why?"], "papers": "a"}, "question 2: question is not text"),
        ({"question": "Why?", "answer": "So."}, f"question 2 {NO_PAPER} question, answer, but no name in a"),
        ({"id": 7, "question": "Why?", "topic": "x"}, f"question 2 {NO_PAPER} id, question, topic, but no n"),
        ({"question": "Why?", "papers": []}, f"question 2 {NO_PAPER} question, papers, but no name in a fie"),
        ({"question": "Why?", "papers": ["a", ""]}, "question 2: papers has an empty name"),
        (
            {"question": "Why?", "papers": [{"year": 2014}]},
            "question 2: papers has a paper without a name; it has year",
        ),
        ({"question": "Why?", "papers": [{"title": 7}]}, "question 2: papers.title is not text"),
        ({"question": "Why?", "paper": "a", "page": 0}, f"question 2: page {NO_PAGE}"),
        ({"question": "Why?", "paper": "a", "page": "iv"}, f"question 2: page {NO_PAGE}"),
        ({"question": "Why?", "paper": "a", "pages": "9-3"}, f"question 2: pages {NO_PAGE}"),
        ({"question": "Why?", "paper": "a", "pages": "1-999999"}, f"question 2: pages {NO_PAGE}"),
        ({"question": "Why?", "arxiv_ids": [2005.1140]}, "question 2: arxiv_ids has a number, which loses its last"),
        ({"question": "Why?", "arxiv_id": True}, "question 2: arxiv_id is not text"),
        ({"question": "Why?", "papers": "a", "answerable": "no"}, "question 2: answerable is neither true nor false"),
        ({"question": "Why?", "papers": "a", "id": []}, "question 2: id is neither text nor a whole number"),
        ({"question": "Why?", "papers": "a", "ground_truth": [7]}, "question 2: ground_truth is not text"),
        ({"question": "W" * 10_001, "papers": "a"}, "question 2: question has 10,001 characters; at most 10,000"),
        ({"question": "Why?", "papers": ["a"] * 1001}, "question 2: papers has 1,001 papers; at most 1,000"),
        ({"question": "Why?", "papers": "a" * 501}, "question 2: papers has 501 characters; at most 500"),
        ({"question": "\ud800?", "papers": "a"}, "question 2: question has half a character"),
        ({**ATTENTION, "id": "q1"}, "the id q1 is used twice"),
    ],
)
def test_a_malformed_entry_is_named_by_its_line(tmp_path: Path, entry: dict[str, Any], fault: str) -> None:
    for value, line in (([ATTENTION, entry], 8), ({"questions": [ATTENTION, entry]}, 1)):
        path = written(tmp_path, value)
        with pytest.raises(UsageError) as raised:
            dataset.load(path)
        assert raised.value.happened.startswith(f"{path}, line {line}: {fault}")
        assert raised.value.happened.count(". ") == 0
        assert raised.value.remedy == "Correct this line; docs/evaluation-set.md shows the format."


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"questions": [7]}', "question 1 is not an object with a question and its papers"),
        ('{"questions": ["Why?"]}', "question 1 is not an object with a question and its papers"),
        ('{"questions": []}', "has no questions"),
        ('{"questions": "none"}', "line 1: questions is not a list of questions"),
        ('{"metadata": {}, "rows": []}', f"question 1 {NO_TEXT} meta"),
        ("[" + '{"question":' * 100_000, "it is nested too deeply"),
        ('[{"question": "Why?", "arxiv_id": ' + "1" * 5000 + "}]", "it has a number of thousands of digits"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, content: str, fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        read(tmp_path, content)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "LARGEST_MB", 0)
    with pytest.raises(UsageError, match=r"eval_set\.json has more than 0 MB"):
        read(tmp_path, [ATTENTION])


# Which papers are meant


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("1706.03762", {"1706.03762v5.pdf"}),
        ("1706.03762v1", {"1706.03762v5.pdf"}),
        ("arXiv:1706.03762v7", {"1706.03762v5.pdf"}),
        ("https://arxiv.org/abs/1706.03762", {"1706.03762v5.pdf"}),
        ("10.48550/arXiv.1706.03762", {"1706.03762v5.pdf"}),
        ("1706.03762.pdf", {"1706.03762v5.pdf"}),
        ("attention is all you need!", {"1706.03762v5.pdf"}),
        ("2312.10997v3", {"rag/survey.pdf", "survey-new.pdf"}),
        ("A survey of retrieval", {"rag/survey.pdf", "survey-new.pdf"}),
        ("survey.pdf", {"rag/survey.pdf"}),
        ("Survey", {"rag/survey.pdf"}),
        ("rag/survey.pdf", {"rag/survey.pdf"}),
        ("10.1000/ice.1", {"glaciers.pdf"}),
        ("https://doi.org/10.1000/ICE.1", {"glaciers.pdf"}),
        ("hep-th/9901001v2", {"hep.pdf"}),
        ("2001.00001v2", {"kept.pdf"}),
        ("W77", {"kept.pdf"}),
        ("2312.10998", set()),
        ("Attention", set()),
        ("?", set()),
    ],
)
def test_a_paper_is_found_by_any_of_its_names(filled: Library, name: str, files: set[str]) -> None:
    lookup = PaperLookup(filled)
    assert {lookup.files[paper] for paper in lookup.find(name)} == files


def test_a_set_gets_the_files_of_its_papers(filled: Library, tmp_path: Path) -> None:
    entries = [
        {"question": "Both?", "arxiv_ids": ["2312.10997", "1706.03762"]},
        {"question": "One of two?", "papers": ["Glaciers of the Alps", "9999.00001", "glaciers.pdf"]},
        {"question": "None?", "arxiv_id": "9999.00001"},
        {"question": "Nothing?", "answerable": False},
        {"question": "On a page?", "source": "Glaciers of the Alps", "page": 3},
        {"question": "On a page of none?", "source": "9999.00001", "page": 3},
    ]
    evalset = resolved(dataset.load(written(tmp_path, entries)), filled)
    assert [question.id for question in evalset.questions] == ["q1", "q2", "q4", "q5"]
    assert (evalset.unknown, evalset.left_out) == (("9999.00001",), 2)
    both, one, nothing, on_page = evalset.questions
    assert [(gold.paper, gold.page) for gold in on_page.gold] == [("glaciers.pdf", 3)]
    versions, attention = both.gold_groups
    assert {gold.paper for gold in versions} == {"rag/survey.pdf", "survey-new.pdf"}  # either version will do
    assert [gold.paper for gold in attention] == ["1706.03762v5.pdf"]
    assert (both.every, one.every) == (True, False)
    assert [[gold.paper for gold in group] for group in one.gold_groups] == [["glaciers.pdf"]]
    assert (nothing.gold, nothing.answerable) == ((), False)
    targets, problems = RelevanceJudge(evalset, filled).targets(both)
    assert ([len(group) for group in targets.groups], targets.units, problems) == ([2, 1], ("paper",), [])


def test_a_set_without_any_paper_of_the_library_is_refused(filled: Library, tmp_path: Path) -> None:
    asked = dataset.load(written(tmp_path, [{"question": "Why?", "papers": ["Nobody's"]}]))
    told = r"None of the papers that eval_set\.json asks about is in the index: Nobody's\."
    with pytest.raises(UsageError, match=told):
        resolved(asked, filled)


def test_it_is_asked_from_the_command_line(ready: CliRunner, tmp_path: Path) -> None:
    ready.settings["LLM"] = "builtin"
    entries = [
        {"question": "How long is the Aletsch glacier?", "papers": ["The Aletsch Glacier"], "answer": "23 km"},
        {"query": "How dense is the fur of a sea otter?", "relevant_docs": ["otters.pdf", "1706.03762"]},
        {"query": "What is attention?", "arxiv_ids": ["1706.03762", "evil\u202e\n\x1b[2Jname"]},
    ]
    path, run = written(tmp_path, entries), tmp_path / "run.json"
    ran = ready.evaluate(str(path), "--no-answers", "--out", str(tmp_path / "out"), "--json", str(run))
    assert ran.code == 0, ran.err
    assert "Found by paper, questions: 2" in ran.out
    told = " ".join((ran.out + ran.err).split())
    assert "Papers of the set that the index does not have: 2 (1706.03762, evil" in told
    assert "Questions left out, because the index has none of their papers: 1." in told
    assert "\x1b[2J" not in ran.out + ran.err
    assert "\u202e" not in ran.out + ran.err
    assert [question.ranks["reranked"]["paper"] for question in load(run).asked] == [(1,), (1,)]
    broken = ready.evaluate(str(written(tmp_path, [{"question": "Why?"}])))
    assert broken.code == 2
    assert len(broken.err.splitlines()) == 2


def test_a_set_with_papers_alone_gets_citation_accuracy_by_paper_and_a_breakdown(
    ready: CliRunner, tmp_path: Path
) -> None:
    ready.settings["LLM"] = "builtin"
    long, dense = "How long is the Aletsch glacier?", "How dense is the fur of a sea otter?"
    entries = [
        {"query_id": "a", "query": long, "papers": ["The Aletsch Glacier"], "difficulty": "easy",
         "expected_topics": ["glacier", "penguins"]},
        {"query_id": "b", "query": dense, "papers": ["The Aletsch Glacier"], "difficulty": "hard"},  # a wrong one
    ]  # fmt: skip
    path, run = written(tmp_path, {"eval_set": entries}), tmp_path / "run.json"
    ran = ready.evaluate(str(path), "--out", str(tmp_path / "out"), "--json", str(run))
    assert ran.code == 0, ran.err
    (report,) = (tmp_path / "out").glob("*.md")
    rows = {row.split("|")[1].strip(): row for row in report.read_text().splitlines() if row.startswith("| ")}
    assert "1 of 2" in rows["first citation of a gold paper"]
    assert "1 of 2" in rows["expected topics that the answer names"]
    assert "citations on a gold page" not in rows
    assert {"easy", "hard"} <= rows.keys()
    by_level = report.read_text().partition("Answers by difficulty of question")[2]
    assert "| any citation of a gold paper | 1.000 | 0.000 |" in " ".join(by_level.split())
    assert load(run).asked[1].difficulty == "hard"
