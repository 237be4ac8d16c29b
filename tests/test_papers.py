"""The whole tool on real papers: some of ../shared/papers are read, and five questions are asked of them.

With EXHAUSTIVE=1 all 55 papers are read, and ten questions asked.

Each question was written from a page that was read, and names the paper and that page. None stands in any set of
questions that the search was measured with.
"""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

import ingest
import query
from folio.answer_types import shown_citation
from folio.papers.model import Paper
from folio.store.library import Library
from scripts.make_schema import SCHEMA
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.paths import SHARED

PAPERS = SHARED / "papers"

ALL_QUESTIONS = [
    ("How can students use ThermoState without installing software on their computers?", "jose.00033.pdf", 3),
    ("Which labs make up the second part of the Liverpool Geographic Data Science module?", "jose.00042.pdf", 2),
    ("How long did each session of the FAIR_Bioinfo training course last?", "jose.00068.pdf", 3),
    ("How many participants were trained in the five introductory conda workshops?", "jose.00130.pdf", 3),
    ("Under which license are the PCP notebooks?", "jose.00148.pdf", 3),
    ("Of approximately how many floats does Argo consist?", "jose.00193.pdf", 2),
    ("In which format is the metadata of a ReScience article kept, now that it is a separate file?",
     "rescience-zenodo.3069619.pdf", 2),
    ("With which version of OCaml did the old OCamlP3l code compile unchanged?", "rescience-zenodo.3763416.pdf", 3),
    ("What damping factor was PageRank implemented with in the graph ordering replication?",
     "rescience-zenodo.4836230.pdf", 3),
    ("How does a zero trust enterprise let a visiting service technician access the internet?",
     "NIST.SP.800-207.pdf", 34),
]  # fmt: skip
QUESTIONS = ALL_QUESTIONS if EXHAUSTIVE else ALL_QUESTIONS[::2]
# How many may be answered from another page with the built-in models alone: what was reached when this was written.
WRONG = 1

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PAPERS.is_dir(), reason="the real papers are not here (../shared/papers)"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The store of all the papers, made with the built-in models by `python ingest.py`."""
    folder = tmp_path_factory.mktemp("papers")
    (folder / "papers").mkdir()
    asked = {file for _, file, _ in QUESTIONS}
    for paper in PAPERS.glob("*.pdf"):
        if EXHAUSTIVE or paper.name in asked:
            shutil.copy(paper, folder / "papers")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "PAPERS_DIR": str(folder / "papers"),
            "VECTORSTORE_DIR": str(folder / "vectorstore"),
            "INGESTED_JSON": str(folder / "ingested.json"),
            "EMBEDDER": "builtin",
            "LLM": "builtin",
            "RERANKER": "builtin",
        }.items():
            patch.setenv(name, value)
        assert ingest.main([]) == 0
        yield folder


def test_every_paper_is_read_and_nothing_is_done_twice(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads((store / "ingested.json").read_text(encoding="utf-8"))
    papers = list((store / "papers").glob("*.pdf"))
    assert len(record) == len(papers) >= len(QUESTIONS)
    assert sum(paper["pages"] for paper in record) == sum(_page_count(paper) for paper in papers)
    assert all(paper["chunks"] > 0 and paper["title"] and 1990 < paper["year"] < 2027 for paper in record)
    assert ingest.main([]) == 0
    assert f"Nothing new: all {len(papers)} papers" in capsys.readouterr().out
    assert ingest.main(["--verify"]) == 0


@pytest.mark.parametrize(("style", "count"), [("plain", len(QUESTIONS)), ("report", 2)])
def test_questions_are_answered_from_the_page_that_was_read(
    store: Path, capsys: pytest.CaptureFixture[str], style: str, count: int
) -> None:
    asked = store / "questions.txt"
    asked.write_text("\n".join(question for question, _, _ in QUESTIONS[:count]), encoding="utf-8")
    assert query.main(["--json", "--style", style, "--batch", str(asked)]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["question"] for answer in answers] == [question for question, _, _ in QUESTIONS[:count]]
    right = [
        any((citation["file"], citation["page"]) == (paper, page) for citation in answer["citations"])
        for answer, (_, paper, page) in zip(answers, QUESTIONS[:count], strict=True)
    ]
    assert right.count(False) <= WRONG, right
    schema = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    with closing(Library(store / "vectorstore" / "library.sqlite")) as library:
        papers = {paper.id: paper for paper in library.papers()}
        for answer in answers:
            schema.validate(answer)
            for citation in answer["citations"]:
                _stands_where_it_says(citation, papers[citation["paper"]], library, answer["evidence"])
            for sentence in answer["sentences"]:
                assert all(citation in answer["citations"] for citation in sentence["citations"] + sentence["against"])
                assert {citation["support"] for citation in sentence["citations"]} == {1.0}
            for evidence in answer["evidence"]:
                paper = papers[evidence["paper"]]
                start = library.text(paper.id, 0, paper.length).index(evidence["text"])
                assert tuple(evidence["pages"]) == paper.pages.pages_of(start, start + len(evidence["text"]))
            for found in (*answer["hits"], *answer["evidence"]):
                first, last = found["pages"]
                lines = [line for line in found["text"].splitlines() if line]  # no line runs over a page's end
                assert _as_printed(lines[0]).search(_page(found["file"], first))
                assert _as_printed(lines[-1]).search(_page(found["file"], last))


def _stands_where_it_says(citation: Any, paper: Paper, library: Library, evidence: list[Any]) -> None:
    """The quote is on the page of the PDF, at its offsets in that page's text, and in the evidence that it names."""
    assert _as_printed(citation["quote"]).search(_page(citation["file"], citation["page"])), citation
    start, end = paper.pages.bounds(citation["page"], paper.length)
    assert library.text(paper.id, start, end)[citation["start"] : citation["end"]] == citation["quote"]
    source = evidence[citation["evidence"] - 1]
    assert (source["number"], source["paper"]) == (citation["evidence"], citation["paper"])
    assert citation["quote"] in source["text"]
    assert (citation["file"], citation["title"]) == (paper.file, paper.title)
    assert citation["shown"] == shown_citation(paper, citation["page"])


def _page_count(path: Path) -> int:
    with pymupdf.open(path) as document:
        return int(document.page_count)


@lru_cache
def _page(file: str, number: int) -> str:
    """A page's text as PyMuPDF reads it now."""
    with pymupdf.open(PAPERS / file) as document:
        return unicodedata.normalize("NFKC", document[number - 1].get_text())


def _as_printed(quote: str) -> re.Pattern[str]:
    """The quote letter for letter and sign for sign, as it may stand on a page.

    A page has ligatures, which NFKC undoes, line ends anywhere between words, and hyphens where a line ends in a word.
    It shows the notation of raised and lowered characters by their heights, and note marks without a space before them.
    """

    def printed(char: str) -> str:
        return r"[-\u2010−]\s*" if char in "-\u2010−" else f"{re.escape(char)}{'?' if char in '^_()' else ''}"

    pattern = ""
    for word in quote.split():
        is_raised = word[0] == "^" or unicodedata.normalize("NFKC", word[0]) != word[0]
        pattern += (r"\s*" if is_raised else r"\s+") if pattern else ""
        pattern += r"(?:\xad|[-\u2010]\s*\n\s*)?".join(map(printed, unicodedata.normalize("NFKC", word)))
    return re.compile(pattern)
