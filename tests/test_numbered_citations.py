"""CITATION_STYLE=numbered: [1] in the text is the first of the sources, and nothing else looks like it."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from folio.answer_types import Answer, Sentence, SourceNumbers
from folio.cli import show
from folio.schema.answers import answer_json
from folio.shown_text import number_mark, without_numbers
from folio.web.export import markdown
from tests.helpers.answers import ANSWER, HITS, ICE_EVIDENCE, MODELS, TIMINGS, cite, evidence_of, paper_of
from tests.helpers.cli_runner import CliRunner

LENGTH = "How long is the Aletsch glacier?"


def numbered(answer: Answer) -> Answer:
    numbers = SourceNumbers()
    return replace(answer, sentences=tuple(map(numbers.numbered, answer.sentences)))


def printed(answer: Answer) -> str:
    """An answer and its sources as they come on a pipe."""
    out, marks = io.StringIO(), show.Marks(numbered=True)
    console = Console(file=out, width=240, soft_wrap=True, color_system=None)
    before: Sentence | None = None
    for sentence in answer.sentences:
        show.show_sentence(console, sentence, before, marks)
        before = sentence
    show.show_sources(console, answer.citations, [each.text for each in answer.sentences], marks)
    return out.getvalue()


def test_a_terminal_shows_the_numbers_of_the_sources() -> None:
    assert printed(numbered(ANSWER)) == (
        "It is 23 kilometres long and lies in the Alps. [1]\n"
        "Its tongue retreats by 40 metres each year. [2]\n"
        "But [3] says otherwise: “The tongue of the Aletsch glacier retreats by 50 metres each year.”\n"
        "\nSources\n"
        "1. alps/ice.pdf, p. 1 (printed iv) · Ice of the Alps\n"
        "   “The Aletsch glacier has a length of 23 kilometres.”\n"
        "   “It lies in the Bernese Alps.” · support 0.62\n"
        "2. alps/ice.pdf, p. 2 · Ice of the Alps\n"
        "3. melt.pdf, p. 1 · Melt\n"
        "   “The tongue of the Aletsch glacier retreats by 50 metres each year.”\n"
    )


def test_a_page_keeps_its_number_in_answers_and_json() -> None:
    again = replace(ANSWER, sentences=(*ANSWER.sentences, ANSWER.sentences[0]))
    numbers = [[cited.number for cited in sentence.citations] for sentence in numbered(again).sentences]
    assert numbers == [[1, 1], [2], [1, 1]]
    found = answer_json(numbered(ANSWER), HITS, MODELS, TIMINGS)
    ice = [(1, "[alps/ice.pdf p.1]"), (1, "[alps/ice.pdf p.1]"), (2, "[alps/ice.pdf p.2]")]
    assert [(cited.number, cited.shown) for cited in found.citations] == [*ice, (3, "[arXiv:2301.01234 p.1]")]


def test_exported_markdown_has_the_numbers_of_its_sources() -> None:
    reply = {**answer_json(ANSWER, HITS, MODELS, TIMINGS).model_dump(mode="json"), "message": ANSWER.question}
    text = markdown("How long is it?", [reply, reply], numbered=True)
    answer = (
        "It is 23 kilometres long and lies in the Alps. \\[1\\] Its tongue retreats by 40 metres each year."
        " \\[2\\] **But \\[3\\] says otherwise.**\n\n### Sources\n\n1. alps/ice.pdf, p. 1 (printed iv)"
    )
    assert text.count(answer) == 2
    assert "p.1" not in text


def test_a_paper_cannot_cite() -> None:
    paper, text = paper_of("refs.pdf", "It grows [1, 2] as ［3］ says, and [4-6] too [S7].")
    evidence = evidence_of(1, paper, text)
    sentence = Sentence(text.strip(), (cite(evidence, text.strip()),))
    answer = numbered(Answer("Why?", "Why?", (sentence,), (evidence,)))
    assert printed(answer).startswith("It grows (1, 2) as (3) says, and (4-6) too (S7). [1]\n\nSources\n1. refs.pdf")
    reply = {**answer_json(answer, HITS, MODELS, TIMINGS).model_dump(mode="json"), "message": answer.question}
    assert "It grows (1, 2) as (3) says, and (4-6) too (S7). \\[1\\]" in markdown("Why?", [reply], numbered=True)
    assert reply["sentences"][0]["text"] == text.strip()  # JSON has the true text


def test_evidence_has_other_numbers() -> None:
    out = io.StringIO()
    console = Console(file=out, width=240, soft_wrap=True, color_system=None)
    show.show_evidence(console, [ICE_EVIDENCE], show.Marks(numbered=True))
    assert out.getvalue().startswith("\nEvidence\n(1) alps/ice.pdf, pp. 1–2")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("[12]", "(12)"), ("[ 1 ; 2–4 ]", "( 1 ; 2–4 )"), ("〔9〕", "(9)"), ("[a]", "[a]"), ("[see 3]", "[see 3]")],
)  # fmt: skip
def test_brackets_around_numbers_become_round(text: str, shown: str) -> None:
    assert without_numbers(text) == shown


def test_a_mark_says_what_became_of_the_paper() -> None:
    assert [number_mark(2), number_mark(2, "RETRACTED")] == ["[2]", "[2, RETRACTED]"]


def test_an_answer_from_the_command_line(ready: CliRunner) -> None:
    ready.settings |= {"CITATION_STYLE": "numbered", "LLM": "builtin"}
    ran = ready.query(LENGTH)
    assert ran.code == 0
    said, sources = ran.out.split("\nSources\n")
    listed = re.findall(r"^(\d+)\. ", sources, re.MULTILINE)
    assert listed == [str(number) for number in range(1, len(listed) + 1)]
    assert list(dict.fromkeys(re.findall(r"\[(\d+)\]", said))) == listed
    assert " p." not in said
    found = ready.query("--json", LENGTH).object
    assert list(dict.fromkeys(cited["number"] for cited in found["citations"])) == list(map(int, listed))
