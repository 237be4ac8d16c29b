"""Answers, sources, evidence and passages as they are printed."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from rich.console import Console

from folio.answer_types import SUMMARY, Answer, Section, Sentence
from folio.cli import show as render
from folio.papers.metadata import Field
from folio.schema.answers import StatsJson
from tests.helpers.answers import (
    ANSWER,
    MELT_EVIDENCE,
    OUTCOMES,
    PLACE,
    REPORT,
    cite,
    evidence_of,
    paper_of,
)
from tests.helpers.golden import check_golden


def printed(print_on: Callable[[Console], None], *, terminal: bool = False) -> str:
    """What is printed on a pipe, or in a terminal of 60 columns, as plain text."""
    out = io.StringIO()
    console = Console(
        file=out, width=60 if terminal else 240, soft_wrap=not terminal, force_terminal=terminal, color_system=None
    )
    print_on(console)
    return out.getvalue()


def test_a_quote_beneath_a_statement_is_whole() -> None:
    words = " ".join(f"word{number}" for number in range(110))
    paper, text = paper_of("x.pdf", words)
    cited = replace(cite(evidence_of(1, paper, text), words, 0.5), marks=((0, 11),))
    shown = printed(lambda console: render.show_sentence(console, Sentence("Said.", (cited,), outcome="reworded")))
    _, quote = shown.splitlines()
    assert quote == f"  “{words}”"


@pytest.mark.parametrize(
    ("verifiers", "checked"),
    [
        (("",), "Not checked by a verifier."),
        (("", ""), "Not checked by a verifier."),
        (("llama", "llama"), "Checked by llama."),
        (("llama", "nli"), "Checked by llama, nli."),
        (("", "llama", ""), "2 of 3 not checked by a verifier, the others by llama."),
    ],
)
def test_the_sign_is_explained_once(verifiers: tuple[str, ...], checked: str) -> None:
    reworded = OUTCOMES.sentences[1]
    sentences = [OUTCOMES.sentences[0], *(replace(reworded, verified_by=name) for name in verifiers)]
    shown = printed(lambda console: render.show_legend(console, sentences))
    assert shown == f"≈ in the model's own words; the quote stands beneath. {checked}\n"


def test_a_source_has_its_venue_where_that_is_sure() -> None:
    known = replace(
        PLACE.paper.metadata,
        venue=Field("Journal\x1b[2J of\nIce [Fake 2014, p. 6]", "crossref", True),
        year=Field(2021, "crossref", True),
    )
    cited = replace(PLACE, paper=replace(PLACE.paper, metadata=known))
    heading, published, _ = printed(lambda console: render.show_sources(console, [cited])).splitlines()[2:]
    assert "Ice of the Alps" in heading
    assert published.strip().startswith("Journal")
    assert published.endswith(", 2021")
    assert "\x1b" not in published
    assert "[Fake 2014, p. 6]" not in published


@pytest.mark.parametrize(
    ("authors", "year", "title", "line"),
    [
        ((), None, "", "x.pdf, p. 1"),
        ((), 1999, "", "(1999). x.pdf, p. 1"),
        ((), None, "A Title.", "A Title. x.pdf, p. 1"),
        (("A", "B", "C"), 1999, "T", "A, B and C (1999). T. x.pdf, p. 1"),
        (("A", "B", "C", "D"), 1999, "T", "A et al. (1999). T. x.pdf, p. 1"),
        (("A", "B", "C", "D et al."), None, "T", "A et al. T. x.pdf, p. 1"),
    ],
)
def test_a_reference_says_what_is_known(authors: tuple[str, ...], year: int | None, title: str, line: str) -> None:
    paper, text = paper_of("x.pdf", "Some words.", authors=authors, year=year, title=title)
    cited = cite(evidence_of(1, paper, text), "Some words.")
    shown = printed(lambda console: render.show_references(console, [cited]))
    assert shown == f"\nKey references\n{line}\n"


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[bold]x[red]\nnew"


def sentences(answer: Answer) -> Callable[[Console], None]:
    """An answer's sentences, one at a time."""

    def show(console: Console) -> None:
        for before, sentence in pairwise((None, *answer.sentences)):
            assert sentence is not None
            render.show_sentence(console, sentence, before)

    return show


def one(sentence: Sentence) -> Callable[[Console], None]:
    return lambda console: render.show_sentence(console, sentence)


def everything_of(file: str, *, title: str, author: str, question: str) -> Callable[[Console], None]:
    """All that is shown of a paper with these names."""
    paper, text = paper_of(file, "Some words.", title=title, authors=(author,))
    evidence = evidence_of(1, paper, text)
    cited = cite(evidence, "Some words.")

    def show(console: Console) -> None:
        render.show_question(console, question)
        render.show_sentence(console, Sentence("A sentence.", (cited,), (cited,), Section("Analysis", title)))
        render.show_sources(console, [cited])
        render.show_references(console, [cited])
        render.show_evidence(console, [evidence])
        render.show_hits(console, evidence.hits)

    return show


SHORTER = replace(
    OUTCOMES.sentences[1], text="Its tongue gets shorter " + "and shorter " * 5 + "each year.", against=()
)
STEPS = OUTCOMES.sentences[3]
(HIT,) = MELT_EVIDENCE.hits
BY_DENSE = replace(MELT_EVIDENCE, hits=(replace(HIT, lexical=None),))
BY_NONE = replace(MELT_EVIDENCE, hits=(replace(HIT, dense=None, lexical=None),))
STATS = StatsJson(
    papers=12, copies=1, pages=240, mean_pages=20.0, mean_length=54_321.0, chunks=3456, mean_chunk=1200.4,
    fine_chunks=0, mean_fine_chunk=0.0, bytes=98_765_432, questions=7, refused=2, good=3, bad=1, median_ms=1234.0,
    median_confidence=0.632,
)  # fmt: skip
SCREENS: dict[str, Callable[[Console], None]] = {
    "sentences": sentences(ANSWER),
    "sentences with every outcome": sentences(OUTCOMES),
    "sentences of a report": sentences(REPORT),
    "sentence of lines": one(replace(STEPS, outcome="quoted", verified_by="", text="1. Go.\n\n\n\tx = 1\n")),
    "sentence of a summary": one(replace(STEPS, section=SUMMARY, text="a\nb")),
    "sentence in a terminal": one(SHORTER),
    "no legend": lambda console: render.show_legend(console, ANSWER.sentences),
    "left out": lambda console: render.show_left_out(console, OUTCOMES),
    "nothing left out": lambda console: render.show_left_out(console, ANSWER),
    "left out of an older answer": lambda console: render.show_left_out(console, replace(ANSWER, dropped=2)),
    "sources": lambda console: render.show_sources(console, ANSWER.citations),
    "sources in a terminal": lambda console: render.show_sources(console, ANSWER.citations),
    "references": lambda console: render.show_references(console, REPORT.citations),
    "evidence": lambda console: render.show_evidence(console, ANSWER.evidence),
    "evidence of one search or none": lambda console: render.show_evidence(console, [BY_DENSE, BY_NONE]),
    "no evidence": lambda console: render.show_evidence(console, ()),
    "hits": lambda console: render.show_hits(console, MELT_EVIDENCE.hits),
    "stats": lambda console: render.show_stats(console, STATS),
    "names with line ends": everything_of("ice\nSources\n1. x.pdf", title="A\nB", author="C\nD", question="a\nb"),
    "names that would steer": everything_of(f"{EVIL}.pdf", title=EVIL, author=EVIL, question=EVIL),
}


@pytest.mark.parametrize("name", SCREENS)
def test_what_is_printed(name: str) -> None:
    check_golden("render.txt", name, printed(SCREENS[name], terminal="terminal" in name))


def test_nothing_from_a_paper_or_a_model_steers_the_terminal() -> None:
    shown = printed(SCREENS["names that would steer"])
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []
    assert "[bold]x[red]" in shown  # nor is it taken for a mark of type


def test_a_paper_is_cited_by_its_file_with_its_folder() -> None:
    files = ("numbat.pdf", "a/numbat.pdf", "a.b/c/numbat.v2.pdf", "numbat")
    assert [paper_of(file, "Words.")[0].key for file in files] == ["numbat", "a/numbat", "a.b/c/numbat.v2", "numbat"]
