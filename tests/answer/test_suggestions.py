"""Candidates for suggested questions: what papers define, in good English."""

from __future__ import annotations

import pytest

from folio.answer.suggestions import Examples, candidates
from folio.answer_types import CLOSEST, FROM_PAPERS, Answer, Citation, Evidence, Section, Sentence
from folio.papers.metadata import simple_metadata
from folio.papers.model import Chunk, Hit, PageMap, Paper

USES = " We read of {0}, of {0}, of {0}, and of {0} again."


def paper(title: str, text: str, id: str = "a") -> Paper:
    return Paper(id * 64, f"{id}.pdf", simple_metadata(title), PageMap((0,), ("",)), len(text), 0)


def questions(title: str, definition: str, subject: str) -> list[str]:
    text = definition + USES.format(subject)
    return [each.question for each in candidates(paper(title, text), text)]


@pytest.mark.parametrize(
    ("title", "definition", "subject", "question"),
    [
        ("OtterNet: A Network", "OtterNet is a network of buoys in the sea.", "OtterNet", "What is OtterNet?"),
        ("On hash trees", "A hash tree is a tree of keys and values.", "hash tree", "What is a hash tree?"),
        ("Cookies and macaroons", "Macaroons are the cookies of the cloud.", "macaroons", "What are macaroons?"),
        ("The join calculus", "The join calculus is a way to name.", "join calculus", "What is the join calculus?"),
        ("On atomic time", "Atomic time is a measure of days.", "atomic time", "What is atomic time?"),
    ],
)
def test_a_definition_gives_a_question(title: str, definition: str, subject: str, question: str) -> None:
    assert questions(title, definition, subject) == [question]


@pytest.mark.parametrize(
    ("title", "definition", "subject"),
    [
        ("On sea otters", "OtterNet is a network of buoys in the sea.", "OtterNet"),  # no subject of the paper
        ("The goal of otters", "The goal is a network of buoys in the sea.", "goal"),
        ("A package for otters", "The package is a network of buoys in the sea.", "package"),
        ("This and that", "This is a network of buoys in the sea.", "this"),
        ("OtterNet: A Network", "It follows that OtterNet is a network of buoys in the sea.", "OtterNet"),
    ],
)
def test_other_sentences_give_none(title: str, definition: str, subject: str) -> None:
    assert questions(title, definition, subject) == []


def test_a_subject_that_is_hardly_mentioned_gives_none() -> None:
    text = "OtterNet is a network of buoys in the sea."
    assert candidates(paper("OtterNet: A Network", text), text) == []
    assert candidates(paper("OtterNet: A Network", text), " \n") == []


# The choice of examples

NAMES = ("OtterNet", "SealCam", "WhaleEar", "GullEye", "CrabLeg", "FishFin", "KelpBed")
TEXTS = {name: f"{name} is a network of buoys in the sea." + USES.format(name) for name in NAMES}
PAPERS = [paper(f"{name}: A Network", TEXTS[name], "abcdefg"[place]) for place, name in enumerate(NAMES)]


def text_of(paper: Paper, start: int, end: int) -> str:
    return TEXTS[paper.title.partition(":")[0]][start:end]


def answer(question: str, section: Section = FROM_PAPERS, quoted: int = 40) -> Answer:
    """The answer of a tool that quotes the first `quoted` characters of the paper."""
    name = question.removeprefix("What is ").removesuffix("?")
    (of,) = (each for each in PAPERS if each.title.startswith(name))
    text = TEXTS[name][:quoted].strip()
    hit = Hit(Chunk(1, of.id, 0, len(TEXTS[name])), of, TEXTS[name], 0.5)
    evidence = Evidence(1, of, 0, len(TEXTS[name]), TEXTS[name], (hit,))
    sentence = Sentence(text, (Citation(of, 0, len(text), text, 1, 1.0),), section=section)
    return Answer(question, question, (sentence,), (evidence,))


def test_examples_are_at_most_five_of_different_papers() -> None:
    asked: list[str] = []

    def ask(question: str) -> Answer:
        asked.append(question)
        return answer(question, quoted=42)

    examples = Examples(PAPERS, text_of)
    assert examples.questions == []
    while not examples.is_complete:
        examples.look(ask)
    assert examples.questions == asked == [f"What is {name}?" for name in NAMES[:5]]


def test_questions_without_a_sure_answer_are_left_out() -> None:
    unsure, short = NAMES[0], NAMES[1]

    def ask(question: str) -> Answer:
        if unsure in question:
            return answer(question, CLOSEST, quoted=42)
        return answer(question, quoted=15 if short in question else 42)  # without the definition

    examples = Examples(PAPERS, text_of)
    while not examples.is_complete:
        examples.look(ask)
    assert examples.questions == [f"What is {name}?" for name in NAMES[2:]]


def test_few_papers_have_few_examples_and_keep_them_while_others_are_added() -> None:
    examples = Examples(PAPERS[:1], text_of)
    while not examples.is_complete:
        examples.look(lambda question: answer(question, quoted=42))
    assert examples.questions == [f"What is {NAMES[0]}?"]
    asked: list[str] = []

    def ask(question: str) -> Answer:
        asked.append(question)
        return answer(question, quoted=42)

    more = Examples(PAPERS, text_of, examples.answered)
    while not more.is_complete:
        more.look(ask)
    assert more.questions == [f"What is {name}?" for name in NAMES[:5]]
    assert asked == more.questions[1:]  # what was found is not asked again
    removed = Examples(PAPERS[1:2], text_of, examples.answered)
    while not removed.is_complete:
        removed.look(ask)
    assert removed.questions == [f"What is {NAMES[1]}?"]
    refused = Examples(PAPERS, text_of)
    while not refused.is_complete:
        refused.look(lambda question: Answer(question, question, ()))
    assert refused.questions == []
