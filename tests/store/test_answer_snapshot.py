"""Answer snapshots: restored unchanged, or not at all if the papers' text has changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer_types import Answer, Citation, Evidence, RejectedSentence, Section, Sentence, Style
from folio.papers.model import Chunk, Hit, NewPaper, PageMap, Paper, SourceFile, Vectors
from folio.store.conversations import restore, snapshot_of
from folio.store.library import Library
from folio.system import workers
from tests.helpers.answers import ANSWER, ICE_PAPER, ICE_TEXT, MELT_PAPER, MELT_TEXT, REFUSED, REPORT
from tests.helpers.fakes import hashing_app, make_pdf, read_here

pytestmark = pytest.mark.fast

TEXTS = {ICE_PAPER.id: ICE_TEXT, MELT_PAPER.id: MELT_TEXT}
PAPERS = (ICE_PAPER, MELT_PAPER)


def land(library: Library, paper: Paper, text: str) -> None:
    """A paper as one passage."""
    new = NewPaper(paper.id, paper.metadata, text, paper.pages, ((0, len(text)),))
    vector: Vectors = np.zeros((1, 4), dtype=np.float32)
    library.add(new, SourceFile(f"/papers/{paper.file}", paper.file, paper.id), [PAPERS.index(paper) + 1], vector)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """With both papers that the answers are made from."""
    made = Library(tmp_path_factory.mktemp("store") / "library.sqlite", create=True)
    land(made, ICE_PAPER, ICE_TEXT)
    land(made, MELT_PAPER, MELT_TEXT)
    yield made
    made.close()


def test_the_papers_are_those_of_the_answers(library: Library) -> None:
    assert library.papers() == [ICE_PAPER, MELT_PAPER]


LEFT_OUT = (RejectedSentence("The ice is blue.", "it does not say this"),)


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER,
        REPORT,
        REFUSED,
        replace(ANSWER, dropped=3, notice="It was cut."),
        replace(ANSWER, dropped=1, left_out=LEFT_OUT),
        replace(ANSWER, sentences=(replace(ANSWER.sentences[0], instead_of="The ice is blue."),)),
    ],
)
def test_an_answer_is_restored_unchanged(library: Library, answer: Answer) -> None:
    assert restore(snapshot_of(answer), library) == answer


def test_a_reworded_sentence_is_restored_as_one(library: Library) -> None:
    (first, *_) = ANSWER.sentences
    near = tuple(replace(citation, support=0.8) for citation in first.citations)
    reworded = replace(first, citations=near, outcome="reworded", verified_by="llama3.1:8b")
    answer = replace(ANSWER, sentences=(reworded,))
    assert restore(snapshot_of(answer), library) == answer


def test_an_answer_that_an_older_version_kept_is_restored(library: Library) -> None:
    kept = json.loads(snapshot_of(ANSWER))
    del kept["left_out"]
    for sentence in kept["sentences"]:
        del sentence["outcome"], sentence["verified_by"], sentence["instead_of"]
    assert restore(json.dumps(kept), library) == ANSWER


def test_a_snapshot_has_no_text_of_the_papers() -> None:
    kept = snapshot_of(replace(ANSWER, sentences=(replace(ANSWER.sentences[0], text="Said."),)))
    assert not [word for word in ("length", "Bernese", "tongue") if word in kept]
    assert kept.isascii()


# Any answer


@st.composite
def spans(draw: st.DrawFn, within: tuple[int, int]) -> tuple[int, int]:
    start = draw(st.integers(within[0], within[1] - 1))
    return start, draw(st.integers(start + 1, within[1]))


SCORES = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text(st.characters(), max_size=40)  # including lone surrogates
SECTIONS = st.just(Section()) | st.builds(Section, st.sampled_from(["Summary", "Analysis"]), WORDS)


@st.composite
def pieces(draw: st.DrawFn, number: int) -> Evidence:
    """Evidence, with hits that may extend beyond it."""
    paper = draw(st.sampled_from(PAPERS))
    text = TEXTS[paper.id]
    hits = []
    for start, end in draw(st.lists(spans((0, len(text))), min_size=1, max_size=3)):
        chunk = Chunk(draw(st.integers(0, 2**63 - 1)), paper.id, start, end)
        dense, lexical = draw(st.none() | SCORES), draw(st.none() | SCORES)
        hits.append(Hit(chunk, paper, text[start:end], draw(SCORES), dense, lexical))
    start, end = draw(spans((0, len(text))))
    return Evidence(number, paper, start, end, text[start:end], tuple(hits))


@st.composite
def citations(draw: st.DrawFn, evidence: list[Evidence]) -> Citation:
    """From one word of the evidence to another on the same page."""
    source = draw(st.sampled_from(evidence))
    page_at, text = source.paper.pages.page_at, TEXTS[source.paper.id]
    words = [word.span() for word in re.compile(r"\S+").finditer(text, source.start, source.end)]
    start, _ = draw(st.sampled_from(words))
    _, end = draw(st.sampled_from([word for word in words if word[0] >= start and page_at(word[0]) == page_at(start)]))
    support = draw(st.floats(0, 1, exclude_min=True))
    return Citation(source.paper, start, end, text[start:end], source.number, support)


@st.composite
def whole_answers(draw: st.DrawFn) -> Answer:
    evidence = [draw(pieces(number)) for number in range(1, draw(st.integers(0, 3)) + 1)]
    quotable = [e for e in evidence if e.text.strip()]
    cited, against = (st.lists(citations(quotable), min_size=least, max_size=2).map(tuple) for least in (1, 0))
    said = st.builds(Sentence, WORDS.filter(str.strip), cited, against, SECTIONS)
    sentences = draw(st.lists(said, max_size=3)) if quotable else []
    style: Style = draw(st.sampled_from(["plain", "report"]))
    question, alone, notice, dropped = draw(WORDS), draw(WORDS), draw(WORDS), draw(st.integers(0, 9))
    return Answer(question, alone, tuple(sentences), tuple(evidence), dropped, notice, style)


@given(whole_answers())
def test_any_answer_is_restored_unchanged(library: Library, answer: Answer) -> None:
    assert restore(snapshot_of(answer), library) == answer


def test_real_answers_are_restored_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    app = hashing_app(tmp_path, LLM="builtin")
    for subject in ("lattices", "sponges", "trees"):
        make_pdf(tmp_path / "papers" / f"{subject}.pdf", subject)
    app.run()
    opened = app.open_library()
    answers = []
    for style in ("plain", "report"):
        chat = app.chat(opened, top_k=4, style=style)
        for question in ("How are trees balanced after an insertion?", "What does a sponge absorb?", "Who wrote it?"):
            answers.append(chat.ask(question).answer)
    assert [restore(snapshot_of(answer), opened) for answer in answers] == answers
    assert sum(not answer.refused for answer in answers) > 1
    opened.close()


# A library that has changed


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Library]:
    made = Library(tmp_path / "other" / "library.sqlite", create=True)
    land(made, ICE_PAPER, ICE_TEXT)
    yield made
    made.close()


def test_an_answer_is_not_restored_without_one_of_its_papers(other: Library) -> None:
    snapshot = snapshot_of(ANSWER)
    assert restore(snapshot, other) is None
    assert restore(snapshot_of(REFUSED), other) == REFUSED  # made from the first paper alone
    land(other, MELT_PAPER, MELT_TEXT)
    assert restore(snapshot, other) == ANSWER
    other.drop(f"/papers/{ICE_PAPER.file}")
    assert restore(snapshot, other) is None


@pytest.mark.parametrize("text", [MELT_TEXT.replace("50", "60"), MELT_TEXT[:-3], f" {MELT_TEXT}", "x"])
def test_an_answer_is_not_restored_if_its_text_has_changed(other: Library, text: str) -> None:
    land(other, MELT_PAPER, text)
    assert restore(snapshot_of(ANSWER), other) is None


def test_an_answer_whose_quote_now_spans_pages_is_not_restored(other: Library) -> None:
    other.drop(f"/papers/{ICE_PAPER.file}")
    again = replace(ICE_PAPER, pages=PageMap((0, 10), ("", "")))
    vector: Vectors = np.zeros((1, 4), dtype=np.float32)
    new = NewPaper(again.id, again.metadata, ICE_TEXT, again.pages, ((0, len(ICE_TEXT)),))
    other.add(new, SourceFile("/papers/again.pdf", "again.pdf", again.id), [1], vector)
    land(other, MELT_PAPER, MELT_TEXT)
    assert restore(snapshot_of(ANSWER), other) is None


def test_a_renamed_paper_is_the_same(other: Library) -> None:
    other.link([SourceFile("/papers/renamed.pdf", "renamed.pdf", ICE_PAPER.id)], gone=[f"/papers/{ICE_PAPER.file}"])
    again = restore(snapshot_of(REFUSED), other)
    assert again is not None
    assert [evidence.paper.file for evidence in again.evidence] == ["renamed.pdf"]
    assert again.evidence[0].text == ICE_TEXT


def test_a_snapshot_is_small() -> None:
    assert len(json.dumps(snapshot_of(ANSWER))) < 1500
