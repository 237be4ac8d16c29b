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
from tests.helpers.fakes import HashingEmbedder

TITLE = "Counting sea otters by sound"
METHOD = "We trained a computer for counting the sea otters by sound."
RESULT = "Our results show that counting by sound finds 95 percent of the sea otters."
SAMPLED = "A total of 76 animals took part in the study of the sound."
OTHER = "The sea otters of the coast have eaten 12 urchins and some clams for breakfast."
LIMITS = "Our counting by sound is limited to sea otters that open shells."


def found(name: str, *sections: tuple[Kind, str]) -> list[str]:
    texts = [text + "\n\n" for _, text in sections]
    ends = list(accumulate(map(len, texts)))
    spans = zip(sections, texts, ends, strict=True)
    listed = [PaperSection(end - len(text), end, 1, "", kind, kind) for (kind, _), text, end in spans]
    pages = PageMap((0,), ("",))
    paper = Paper("a" * 64, "a.pdf", simple_metadata(TITLE), pages, ends[-1], 0, sections=SectionMap(tuple(listed)))
    heading = known_heading(Column(name))
    assert heading is not None
    quotes = announced(heading, paper, own_sentences(paper, "".join(texts)), HashingEmbedder())
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
