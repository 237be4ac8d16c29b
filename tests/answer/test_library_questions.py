"""Questions about the library are answered from metadata, with a quote from the title page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from folio.answer.library_questions import answer, papers_described
from folio.answer_types import Answer, Evidence
from folio.papers.metadata import Field, Metadata, Origin, PersonName, simple_metadata
from folio.papers.model import Paper
from folio.question.library import FactsQuestion, LibraryQuestion, library_question, wanted_papers
from folio.question.question import Question
from folio.search.names import PaperNames
from tests.helpers.factories import hits_on


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many papers are there?", LibraryQuestion("all", is_count=True)),
        ("how many papers do you have in my library?", LibraryQuestion("all", is_count=True)),
        ("How many papers did the survey read?", None),
        ("Which papers are by Ada Otter?", LibraryQuestion("by", "Ada Otter")),
        ("Which papers did Otter write?", LibraryQuestion("by", "Otter")),
        ("papers by Otter", LibraryQuestion("by", "Otter")),
        ("which of my papers have Ada Otter as an author?", LibraryQuestion("by", "Ada Otter")),
        ("papers with Otter among the authors", LibraryQuestion("by", "Otter")),
        ("Which papers were published since 2015?", LibraryQuestion("years", years=(2015, 9999))),
        ("papers from 2015", LibraryQuestion("years", years=(2015, 2015))),
        ("papers from 2015 on", LibraryQuestion("years", years=(2015, 9999))),
        ("papers from 2015 to 2017", LibraryQuestion("years", years=(2015, 2017))),
        ("Which papers appeared before 2015?", LibraryQuestion("years", years=(0, 2014))),
        ("Which papers appeared between 2010 and 2012?", LibraryQuestion("years", years=(2010, 2012))),
        ("Which papers are about sea otters?", None),  # they are searched
        ("How many papers are about sea otters?", LibraryQuestion("about", "sea otters", is_count=True)),
        ("how many papers are from 2019", LibraryQuestion("years", years=(2019, 2019), is_count=True)),
        ("How many papers are by Ada Otter?", LibraryQuestion("by", "Ada Otter", is_count=True)),
        ("Which papers use drones?", None),
        ("What do otters eat?", None),
        ("Who measured the ice?", None),
    ],
)
def test_which_questions_are_about_the_library(question: str, expected: LibraryQuestion | None) -> None:
    assert library_question(question) == expected


@pytest.mark.parametrize(
    ("question", "described"),
    [
        ("short summary of the end to end argument paper", True),
        ("what is the article about end-to-end arguments about?", True),
        ("give me the gist of the paper on argument design", True),
        ("summarize end-to-end arguments", False),  # may be a subject
        ("summarize the paper on quorum arguments", False),
        ("summarize the papers on end-to-end arguments", False),
        ("what is the paper about?", False),
    ],
)
def test_a_paper_is_described_by_words_of_its_title(question: str, described: bool) -> None:
    hits = hits_on("A page.", title="End-to-End Arguments in System Design")
    (paper,) = (hit.paper for hit in hits)
    assert papers_described(question, [paper]) == ([paper] if described else [])


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("Which papers use or evaluate hazard pointers?", "hazard pointers"),
        ("show me the replication studies in neuroscience", "replication neuroscience"),
        ("What have I got about staying anonymous?", "staying anonymous"),
        ("is there a paper on wait-free queues", "wait-free queues"), ("Which papers are by Adams?", ""),
        ("papers since 2014", ""), ("Which papers are there?", ""), ("What does the paper say about costs?", ""),
        ("Which study population was used?", ""),
    ],
)  # fmt: skip
def test_questions_for_papers_have_a_topic(question: str, topic: str) -> None:
    assert wanted_papers(question) == topic


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("Who wrote On Sea Otters?", "who"), ("whos the author of raft", "who"), ("authors of raft", "who"),
        ("tell me the names of the authors of the raft paper", "who"), ("the raft paper is by who?", "who"),
        ("who came up with raft", "who"), ("when was NIST SP 800-207 published", "when"),
        ("What year did the Raft paper come out?", "when"), ("how old is the raft paper", "when"),
        ("who wrote Otter's paper, and when/where was it published?", "who when where"),
        ("date of on sea otters", "when"), ("where did raft appear", "where"),
        ("In which journal was the otters paper published?", "where"), ("who wrote raft and when?", "who when"),
        ("when and where was raft published?", "when where"), ("Where do otters live?", ""),
        ("Where is the code of the raft paper?", ""), ("How do the authors of Raft measure time?", ""),
        ("What did the authors publish?", ""), ("Who measured the ice?", ""),
        ("who did the otters reproduction, and when did it come out?", "who when"), ("Which papers use drones?", ""),
    ],
)  # fmt: skip
def test_facts_in_a_question(question: str, facts: str) -> None:
    asked = library_question(question)
    assert (" ".join(asked.facts) if isinstance(asked, FactsQuestion) else "") == facts


def library() -> dict[Paper, Evidence]:
    """Papers with their first pages."""
    found: dict[Paper, Evidence] = {}
    for file, title, authors, year, text in (
        ("otters.pdf", "On Sea Otters", ("Ada Otter", "José Nutria"), 2014,
         "Journal of Otters, May 2014\nOn Sea Otters\nAda Otter and José Nutria\nAbstract. They float."),
        ("raft.pdf", "Raft: A Log", ("Bob Seal",), 2019, "Raft: A\nLog\nBob Seal, University of Ice\nLogs are long."),
    ):  # fmt: skip
        paper, front = front_of(text, file, simple_metadata(title, authors, year))
        found[paper] = front
    return found


def front_of(text: str, file: str, metadata: Metadata) -> tuple[Paper, Evidence]:
    (hit,) = hits_on(text, file=file)
    paper = replace(hit.paper, metadata=metadata)
    return paper, Evidence(1, paper, 0, len(text), text, (replace(hit, paper=paper),))


def replied(question: str, papers: Mapping[Paper, Evidence]) -> Answer | None:
    return answer(Question(question), list(papers), lambda: PaperNames(list(papers)), papers.__getitem__)


OTTERS_BY = ("otters.pdf", "Ada Otter and José Nutria", 1)
RAFT_BY = ("raft.pdf", "Bob Seal, University of Ice", 1)


def told(question: str) -> Sequence[tuple[str, str, int]] | None:
    found = replied(question, library())
    cited = [] if found is None else [sentence.citations[0] for sentence in found.sentences]
    return None if found is None else [(quote.paper.file, quote.quote, quote.page) for quote in cited]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who wrote On Sea Otters?", [OTTERS_BY]), ("who wrote raft", [RAFT_BY]),
        ("Which papers are by Nutria?", [("otters.pdf", "On Sea Otters", 1)]),
        ("Which papers are by Jose Nutria?", [("otters.pdf", "On Sea Otters", 1)]),
        ("Which papers appeared since 2015?", [("raft.pdf", "Raft: A\nLog", 1)]),
        ("Which papers are about logs?", None),
        ("When was On Sea Otters published?", [("otters.pdf", "Journal of Otters, May 2014", 1)]),
        ("when did the otters paper by nutria come out", [("otters.pdf", "Journal of Otters, May 2014", 1)]),
        ("who came up with Raft?", [RAFT_BY]), ("who wrote raft and on sea otters", [RAFT_BY, OTTERS_BY]),
        ("Who wrote the code of Raft?", None),  # it does not ask for the paper's authors
        ("When was the raft leader released?", None), ("When was raft presented at workshops?", None),
        ("When was the gauge built?", None),
        ("Who created the log?", None),  # what a title speaks of is not its authors' invention
        ("Who wrote this paper?", None),  # one of two
        ("Who wrote Hamlet?", None), ("Which papers are by Adams?", None), ("What do otters eat?", None),
    ],
)  # fmt: skip
def test_an_answer_quotes_the_title_page(question: str, expected: object) -> None:
    assert told(question) == expected


def test_the_year_is_the_short_answer() -> None:
    found = replied("What year was On Sea Otters published?", library())
    assert found is not None
    assert [one.short and one.text[slice(*one.short)] for one in found.sentences] == ["2014"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many papers are there?", "The library has 2 papers."),
        ("How many papers are about sea otters?", "1 paper is about this, by title, abstract or tags."),
        ("How many papers are by Nutria?", "The library has 1 paper by this author."),
        ("How many papers are from 2014 to 2019?", "The library has 2 papers from these years."),
        ("How many papers are from 1990?", "The library has 0 papers from these years."),
        ("How many papers are about trains?", None),  # their texts may be
    ],
)
def test_papers_are_counted_without_a_citation(question: str, said: str | None) -> None:
    found = replied(question, library())
    assert (found and (found.text, found.refused, found.citations)) == (said and (said, False, ()))


def test_a_title_keeps_its_first_bracket() -> None:
    title = "[Re] Otters drift in autumn"
    known = simple_metadata(title, ("Bob Seal",), 2020)
    found = replied("papers by Seal", dict([front_of(f"Journal of Otters\n{title}\nBob Seal", "re.pdf", known)]))
    assert (found and [sentence.text for sentence in found.sentences]) == [title]


def one_paper(text: str, **fields: Field[Any]) -> dict[Paper, Evidence]:
    paper, front = front_of(text, "ice.pdf", Metadata(title=Field("Ice", "page", True), **fields))
    return {paper: front}


UNKNOWN_YEAR = "The year of “Ice” is not known: its first pages do not say."


@pytest.mark.parametrize(
    ("origin", "year", "sure", "said"),
    [
        ("page", 2003, True, ("Ice Letters, 2003", "")),
        ("page", 2003, False, ("Ice Letters, 2003", "Not sure of the year of “Ice”: see the page.")),
        ("file date", 2005, False,
         ("Not sure: 2005 for “Ice” (from the file's date; its first pages do not say).", "")),
        ("crossref", 2004, True, ("2004 for “Ice” (from Crossref; its first pages do not say).", "")),
        ("page", 2006, True, ("2006 for “Ice” (from its first pages).", "")),  # in a running foot, which is no text
        ("cited works", 2003, False, (UNKNOWN_YEAR, "")),
        ("", None, False, (UNKNOWN_YEAR, "")),
    ],
)  # fmt: skip
def test_an_unsure_or_unprinted_year_has_a_remark(
    origin: Origin, year: int | None, sure: bool, said: tuple[str, str]
) -> None:
    paper = one_paper("Ice\nIce Letters, 2003\nIt melts.", year=Field(year, origin, sure))
    found = replied("when was this paper published", paper)
    assert (found and (found.text, found.notice)) == said


def test_a_title_is_never_an_author() -> None:
    seal: dict[str, Field[Any]] = {"authors": Field((PersonName("Seal", "Bob"),), "person", True)}
    for fields, said in (
        (seal, "Bob Seal for “Ice” (edited; its first pages do not say)."),
        ({}, "The authors of “Ice” are not known: its first pages do not say."),
    ):
        found = replied("who wrote Ice", one_paper("Ice\nIt melts.", **fields))
        assert (found and (found.text, found.citations)) == (said, ())


def test_venues_and_authors_with_separate_accents_are_quoted() -> None:
    paper = one_paper(
        "Ice\nG¨un Sirer\nIce  Letters 12 (2003)\nIt melts, as Ice Letters say.",
        venue=Field("Ice Letters", "page", True), authors=Field((PersonName("Gün", "S."),), "page", True),
    )  # fmt: skip
    told = [replied(f"{asked} Ice", paper) for asked in ("which journal published", "who wrote")]
    assert [found and found.text for found in told] == ["Ice Letters 12 (2003)", "G¨un Sirer"]
