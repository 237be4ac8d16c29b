"""Questions about the library are answered from what is known about its papers, with a quote from the title page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from folio.answer.library_questions import LibraryQuestion, answer, library_question
from folio.paper_metadata import simple_metadata
from folio.types import Hit, Paper
from tests.helpers.factories import hits_on


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many papers are there?", LibraryQuestion("all", is_count=True)),
        ("how many papers do you have in my library?", LibraryQuestion("all", is_count=True)),
        ("How many papers did the survey read?", None),
        ("Who wrote On Sea Otters?", LibraryQuestion("wrote", "On Sea Otters")),
        ("Who are the authors of the Raft paper?", LibraryQuestion("wrote", "the Raft paper")),
        ("authors of raft", LibraryQuestion("wrote", "raft")),
        ("Which papers are by Ada Otter?", LibraryQuestion("by", "Ada Otter")),
        ("Which papers did Otter write?", LibraryQuestion("by", "Otter")),
        ("papers by Otter", LibraryQuestion("by", "Otter")),
        ("Which papers were published since 2015?", LibraryQuestion("years", years=(2015, 9999))),
        ("papers from 2015", LibraryQuestion("years", years=(2015, 2015))),
        ("papers from 2015 on", LibraryQuestion("years", years=(2015, 9999))),
        ("papers from 2015 to 2017", LibraryQuestion("years", years=(2015, 2017))),
        ("Which papers appeared before 2015?", LibraryQuestion("years", years=(0, 2014))),
        ("Which papers appeared between 2010 and 2012?", LibraryQuestion("years", years=(2010, 2012))),
        ("Which papers are about sea otters?", LibraryQuestion("about", "sea otters")),
        ("How many papers are about sea otters?", LibraryQuestion("about", "sea otters", is_count=True)),
        ("how many papers are from 2019", LibraryQuestion("years", years=(2019, 2019), is_count=True)),
        ("How many papers are by Ada Otter?", LibraryQuestion("by", "Ada Otter", is_count=True)),
        ("when was NIST SP 800-207 published", LibraryQuestion("published", "NIST SP 800-207")),
        ("What year did the Raft paper come out?", LibraryQuestion("published", "the Raft paper")),
        ("When was the gauge built?", None),
        ("Which papers use drones?", None),
        ("What do otters eat?", None),
        ("Who measured the ice?", None),
    ],
)
def test_which_questions_are_about_the_library(question: str, expected: LibraryQuestion | None) -> None:
    assert library_question(question) == expected


def library() -> dict[Paper, Hit]:
    """Two papers with their title passages."""
    found: dict[Paper, Hit] = {}
    for file, title, authors, year, text in (
        ("otters.pdf", "On Sea Otters", ("Ada Otter", "José Nutria"), 2014,
         "Journal of Otters, May 2014\nOn Sea Otters\nAda Otter and José Nutria\nAbstract. They float."),
        ("raft.pdf", "Raft: A Log", ("Bob Seal",), 2019, "Raft: A\nLog\nBob Seal, University of Ice\nLogs are long."),
    ):  # fmt: skip
        (hit,) = hits_on(text, file=file, title=title)
        paper = replace(hit.paper, metadata=simple_metadata(title, authors, year))
        found[paper] = replace(hit, paper=paper)
    return found


def told(question: str) -> Sequence[tuple[str, str, int]] | None:
    papers = library()
    found = answer(question, list(papers), papers.__getitem__)
    return (
        None
        if found is None
        else [(s.citations[0].paper.file, s.citations[0].quote, s.citations[0].page) for s in found.sentences]
    )


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who wrote On Sea Otters?", [("otters.pdf", "Ada Otter and José Nutria", 1)]),
        ("who wrote raft", [("raft.pdf", "Bob Seal, University of Ice", 1)]),
        ("Which papers are by Nutria?", [("otters.pdf", "On Sea Otters", 1)]),
        ("Which papers are by Jose Nutria?", [("otters.pdf", "On Sea Otters", 1)]),
        ("Which papers appeared since 2015?", [("raft.pdf", "Raft: A\nLog", 1)]),
        ("Which papers are about logs?", [("raft.pdf", "Raft: A\nLog", 1)]),
        ("When was On Sea Otters published?", [("otters.pdf", "Journal of Otters, May 2014", 1)]),
        ("When was the raft paper published?", None),  # its title page does not say
        ("Who wrote Hamlet?", None),
        ("Which papers are by Adams?", None),
        ("What do otters eat?", None),
    ],
)
def test_an_answer_quotes_the_title_page(question: str, expected: object) -> None:
    assert told(question) == expected


def test_how_many_papers_there_are_cites_nothing() -> None:
    found = answer("How many papers are there?", list(library()), lambda paper: None)
    assert found is not None
    assert (found.text, found.refused, found.citations) == ("The library has 2 papers.", False, ())


def test_the_year_leads_where_it_is_asked_for() -> None:
    papers = library()
    found = answer("What year was On Sea Otters published?", list(papers), papers.__getitem__)
    assert found is not None
    (sentence,) = found.sentences
    assert sentence.short is not None
    assert sentence.text[slice(*sentence.short)] == "2014"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many papers are about sea otters?", "1 paper is about this, by title, abstract or tags."),
        ("How many papers are by Nutria?", "The library has 1 paper by this author."),
        ("How many papers are from 2014 to 2019?", "The library has 2 papers from these years."),
        ("How many papers are from 1990?", "The library has 0 papers from these years."),
        ("How many papers are about trains?", None),  # their texts may be
    ],
)
def test_papers_are_counted(question: str, said: str | None) -> None:
    found = answer(question, list(library()), lambda paper: None)
    assert (found.text if found else None) == said


def test_a_title_keeps_the_bracket_that_it_begins_with() -> None:
    title = "[Re] Otters drift in autumn"
    (hit,) = hits_on(f"Journal of Otters\n{title}\nBob Seal", title=title)
    paper = replace(hit.paper, metadata=simple_metadata(title, ("Bob Seal",), 2020))
    found = answer("papers by Seal", [paper], lambda _: replace(hit, paper=paper))
    assert found is not None
    assert [sentence.text for sentence in found.sentences] == [title]
