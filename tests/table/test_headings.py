"""A known heading is answered by the sentence that announces it, from the sections where authors do."""

from __future__ import annotations

from itertools import accumulate

import pytest

from folio.answer.about import own_sentences
from folio.papers.metadata import simple_metadata
from folio.papers.model import PageMap, Paper
from folio.papers.sections import Kind, PaperSection, SectionMap
from folio.table.cell import Column
from folio.table.headings import announced, asked, known_heading
from folio.table.paper_words import PaperWords
from tests.helpers.fakes import HashingEmbedder

TITLE = "Counting sea otters by sound"
METHOD = "We trained a computer for counting the sea otters by sound."
RESULT = "Our results show that counting by sound finds 95 percent of the sea otters."
SAMPLED = "A total of 76 animals took part in the study of the sound."
OTHER = "The sea otters of the coast have eaten 12 urchins and some clams for breakfast."
LIMITS = "Our counting by sound is limited to sea otters that open shells."


def found(name: str, *sections: tuple[Kind, str], question: str = "") -> list[str]:
    texts = [text + "\n\n" for _, text in sections]
    ends = list(accumulate(map(len, texts)))
    spans = zip(sections, texts, ends, strict=True)
    listed = [PaperSection(end - len(text), end, 1, "", kind, kind) for (kind, _), text, end in spans]
    pages = PageMap((0,), ("",))
    paper = Paper("a" * 64, "a.pdf", simple_metadata(TITLE), pages, ends[-1], 0, sections=SectionMap(tuple(listed)))
    heading = known_heading(Column(name, question))
    assert heading is not None
    words = PaperWords(paper, "".join(texts))
    quotes = announced(heading, words, own_sentences(paper, words.text), HashingEmbedder())
    return [quote.quote for quote in quotes]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("Method", METHOD), ("Main result", RESULT), ("Limits", LIMITS), ("sample size", SAMPLED)],
)
def test_each_heading_has_its_own_sentence_and_no_other(name: str, sentence: str) -> None:
    paper: list[tuple[Kind, str]] = [("abstract", f"{METHOD} {RESULT}"), ("methods", f"{OTHER} {SAMPLED}")]
    assert found(name, *paper, ("limitations", LIMITS))[0] == sentence
    without = [(kind, text.replace(sentence, OTHER)) for kind, text in (*paper, ("limitations", LIMITS))]
    assert sentence not in found(name, *without)


def test_what_stands_before_the_first_heading_is_an_abstract() -> None:
    assert found("Main result", ("other", OTHER), ("introduction", RESULT)) == []
    assert found("Main result", ("abstract", RESULT)) == [RESULT]


def test_a_question_of_its_own_is_asked_as_it_is() -> None:
    assert known_heading(Column("Method", "How was it cooked?")) is None
    assert asked(Column("LIMITATIONS")) == "What are the limitations of this paper?"


FUNDED = "This work was supported by the Swiss National Science Foundation under grant no. 77."
CODE = "The source code is available at https://github.com/otters/sea under a free licence."
PYTHON = "The simulator is implemented in about 900 lines of Python."
WEAK = "A major limitation is that only two of the bays were visited."


@pytest.mark.parametrize(
    ("name", "question", "sentence"),
    [
        ("Money", "Who funded the work?", FUNDED),
        ("Funding", "", FUNDED),
        ("Code", "Is the source code publicly available?", CODE),
        ("Programming language", "Which programming language is the software written in?", PYTHON),
        ("Limits", "What limitations do the authors state?", WEAK),
    ],
)
def test_what_is_announced_is_found_wherever_it_stands(name: str, question: str, sentence: str) -> None:
    paper: list[tuple[Kind, str]] = [
        ("methods", f"{OTHER} {PYTHON}"),
        ("discussion", f"{OTHER} {WEAK}"),
        ("acknowledgements", FUNDED),
        ("boilerplate", CODE),
        ("references", "Otter, A. The limitations of code in Python, supported by grants. 2001."),
    ]
    assert found(name, *paper, question=question) == [sentence]
    assert found(name, ("methods", OTHER), ("references", sentence), question=question) == []


def test_a_question_with_words_of_its_own_is_no_known_heading() -> None:
    for question in ("Who funded the dig at Troy?", "Is the code of Babylon available?", "How was the fuel tested?"):
        assert known_heading(Column("Funding", question)) is None, question


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("We report experiments on two clusters with forty threads each.", True),
        ("Learners were asked to complete a survey before and after the workshop.", True),
        ("This section has an empirical study of the queue on four architectures.", True),
        ("Measurements from a prototype indicate that the system is fast.", True),
        ("It teaches how do we choose a model, and how can we evaluate it.", False),
        ("The experiments show that the default order is slower.", False),
        ("The simulations were run on a machine with 24 cores.", False),
    ],
)
def test_an_evaluation_is_announced_by_what_was_done(sentence: str, *, says: bool) -> None:
    heading = known_heading(Column("Evaluation method"))
    assert heading is not None
    assert bool(heading.moves[0].says.search(sentence)) is says
