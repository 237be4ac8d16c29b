"""Questions about the library are answered from metadata, with a quote from the title page."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from folio.answer import library_lists
from folio.answer.library_lists import NOT_STORED, Shelf
from folio.answer.library_questions import answer, papers_described
from folio.answer_types import Answer, Evidence
from folio.papers.metadata import Field, Metadata, Origin, PersonName, simple_metadata
from folio.papers.model import Paper
from folio.question.library import (
    OPEN,
    Condition,
    FactsQuestion,
    LibraryQuestion,
    WantedPapers,
    library_question,
    wanted_papers,
)
from folio.question.question import Question
from folio.search.fusion import FusionSettings
from folio.search.names import PaperNames
from folio.search.retriever import Retriever
from folio.store.library import Library
from folio.store.readings import Use
from folio.system import workers
from tests.helpers.factories import hits_on, write_pdf
from tests.helpers.fakes import HashingApp, hashing_app, read_here


def listing(*conditions: Condition, **more: Any) -> LibraryQuestion:
    return LibraryQuestion(conditions, **more)


def author(words: str) -> Condition:
    return Condition("author", words)


def years(first: int, last: int) -> Condition:
    return Condition("year", bounds=(first, last))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many papers are there?", listing(asks="count")),
        ("how many papers do you have in my library?", listing(asks="count")),
        ("number of papers please", listing(asks="count")),
        ("Which papers are by Ada Otter?", listing(author("Ada Otter"))),
        ("Which papers did Otter write?", listing(Condition("author", "Otter", is_sure=False))),
        ("papers by Otter", listing(author("Otter"))),
        ("which of my papers have Ada Otter as an author?", listing(author("Ada Otter"))),
        ("papers with Otter among the authors", listing(author("Otter"))),
        ("Which papers were published since 2015?", listing(years(2015, OPEN))),
        ("papers from 2015", listing(years(2015, 2015))),
        ("papers from 2015 on", listing(years(2015, OPEN))),
        ("papers from 2015 to 2017", listing(years(2015, 2017))),
        ("Which papers appeared before 2015?", listing(years(0, 2014))),
        ("Which papers appeared between 2010 and 2012?", listing(years(2010, 2012))),
        ("papers from the 90s", listing(years(1990, 1999))),
        ("papers from the 30s", listing(years(1930, 1939))), ("papers from the 20s", listing(years(2020, 2029))),
        ("papers from the 00s", listing(years(2000, 2009))), ("papers from the 1920s", listing(years(1920, 1929))),
        ("papers by Otter from 2015 not by Seal",
         listing(author("Otter"), years(2015, 2015), Condition("author", "Seal", is_denied=True))),
        ("How many papers are about sea otters?", listing(Condition("about", "sea otters"), asks="count")),
        ("how many papers are from 2019", listing(years(2019, 2019), asks="count")),
        ("whats the oldest paper", listing(order="year", most=1)),
        ("the 3 longest papers by otter", listing(author("otter"), order="pages", is_falling=True, most=3)),
        ("which paper has the most authors", listing(order="authors", is_falling=True, most=1)),
        ("last paper i added", listing(order="added", is_falling=True, most=1)),
        ("list all papers sorted by title", listing(order="title")),
        ("which author has the most papers", listing(by="author")),
        ("who wrote the most papers?", listing(by="author")),
        ("how many papers per year", listing(asks="count", by="year")),
        ("which tags are there", listing(by="tag")),
        ("papers tagged to read", listing(Condition("tag", "to read"))),
        ("papers in Ice Letters from 2012",
         listing(Condition("venue", "Ice Letters", is_sure=False), years(2012, 2012))),
        ("which papers have more than 20 pages", listing(Condition("pages", bounds=(21, OPEN)))),
        ("papers without a year", listing(Condition("year", is_denied=True))),
        ("what did i add this week", listing(Condition("added", "this week"))),
        ("how many papers have I not read yet?", listing(Condition("opened", is_denied=True), asks="count")),
        ("papers i took notes on", listing(Condition("notes"))),
        ("papers from 2019 that cite Raft", listing(years(2019, 2019), Condition("cites", "Raft", is_sure=False))),
        ("papers from 2019 that use drones", listing(years(2019, 2019), Condition("about", "drones"))),
        ("everything by Otter", listing(author("Otter"))),
        ("papers sorted by number of pages", listing(order="pages", is_falling=True)),
        ("papers published this year", listing(Condition("year", "this year"))),
        ("does Otter have any papers here?", listing(Condition("author", "Otter", is_sure=False))),
        ("Otter's papers", listing(Condition("author", "Otter", is_sure=False))),
        ("papers by Seal without Otter",
         listing(author("Seal"), Condition("author", "Otter", is_denied=True, is_sure=False))),
        ("what are the papers about?", listing(asks="lines")), ("tldr of everything", listing(asks="lines")),
        ("what's in this folder?", listing(asks="lines")),
        ("papers written in French", listing(Condition("unknown", "written in French"))),
        ("summarise everything", listing(asks="lines")),
        ("each paper from 2019 in one sentence", listing(years(2019, 2019), asks="lines")),
        # about what papers say
        *((content, None) for content in (
            "Which papers use drones?", "What do otters eat?", "How many pages fit?", "Who measured the ice?",
            "How many papers did the survey read?", "How many layers has the oldest model?", "Which papers use drones?",
            "Which papers disagree on drones?", "papers not accepted at the workshop", "summarise this paper",
            "What are files?", "Which authors disagree?", "the oldest method", "papers that cite no Otter",
            "Which study population was used?", "How many studies were excluded?", "who are the most cited authors",
            "Which papers are about otters?", "papers by ???", "which papers are not by ,", "papers in ...",
            "how many papers are on ?!",
        )),
    ],
)  # fmt: skip
def test_which_questions_are_about_the_library(question: str, expected: LibraryQuestion | None) -> None:
    found = library_question(question)
    assert (None if isinstance(found, FactsQuestion) else found) == expected


@pytest.mark.parametrize(
    ("question", "topic", "without"),
    [
        ("which papers do not use python", "", ("python",)), ("papers that dont mention R", "", ("R",)),
        ("papers without experiments", "", ("experiments",)), ("In which papers is Rust not used?", "", ("Rust",)),
        ("Which papers use neither R nor Python?", "", ("R", "Python")),
        ("how many papers do not mention R", "", ("R",)), ("which paper does not mention R", "", ("R",)),
        ("papers not about otters and not about ice", "", ("otters", "ice")),
        ("Which paper could not repeat the results?", "", ()),
        ("in which papers is neither R nor Rust used", "", ("R", "Rust")),
        ("papers on otters that never mention ice", "otters", ("ice",)),
        ("which papers use Rust but not C", "Rust", ("C",)), ("which papers from 2019 do not use Rust", "", ("Rust",)),
        ("papers not only on otters", "not only on otters", ()),
    ],
)  # fmt: skip
def test_what_a_question_for_papers_denies(question: str, topic: str, without: tuple[str, ...]) -> None:
    assert wanted_papers(question) == WantedPapers(topic, without)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which papers, other than Raft, discuss elections?", WantedPapers("elections", other_than=("Raft",))),
        ("papers on elections other than Raft", WantedPapers("elections", other_than=("Raft",))),
        ("papers about anything but otters", WantedPapers(other_than=("otters",))),
        ("papers excluding those about otters", WantedPapers(other_than=("otters",))),
    ],
)
def test_papers_other_than_some(question: str, expected: WantedPapers) -> None:
    assert wanted_papers(question) == expected


def test_what_is_denied_may_not_be_understood() -> None:
    assert wanted_papers("papers that are not peer reviewed") == WantedPapers("not peer reviewed", is_understood=False)


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
    assert wanted_papers(question).topic == topic


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
        ("how many pages has On Sea Otters", "pages"), ("how long is the raft paper?", "pages"), ("doi of raft", "doi"),
        ("when did i add the raft paper", "added"), ("When was the raft paper added?", "added"),
        ("have i read raft", "opened"), ("do I have any notes on raft?", "notes"), ("what tags has raft", "tags"),
        ("how many authors does raft have", "authors"), ("How many pages of memory does Raft use?", ""),
        ("How long is the term of a leader?", ""), ("How old was Otter when she wrote on otters?", ""),
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


def shelf_of(papers: Mapping[Paper, Evidence], **more: Any) -> Shelf:
    """These papers: the first was added on 25 November 2026, opened and noted on, the others on the day before."""

    def uses() -> dict[str, Use]:
        first, *others = papers
        added = {other.id: Use("2026-11-24T12:00:00+00:00", "", 0) for other in others}
        return {first.id: Use("2026-11-25T12:00:00+00:00", "2026-11-26T12:00:00+00:00", 2), **added}

    def mentions(words: str, among: Collection[str] | None = None) -> frozenset[str]:
        read = [(paper.id, front.text) for paper, front in papers.items() if among is None or paper.id in among]
        return frozenset(id for id, text in read if words.casefold() in text.casefold())

    names = PaperNames(list(papers))
    return Shelf(
        list(papers), lambda: names, names.meant, papers.__getitem__, uses, mentions, lambda paper: set(),
        date(2026, 11, 25), **more,
    )  # fmt: skip


def replied(question: str, papers: Mapping[Paper, Evidence], **more: Any) -> Answer | None:
    return answer(Question(question), shelf_of(papers, **more))


OTTERS_BY = ("otters.pdf", "Ada Otter and José Nutria", 1)
OTTERS, RAFT = ("otters.pdf", "On Sea Otters", 1), ("raft.pdf", "Raft: A\nLog", 1)
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
        ("Who wrote Hamlet?", None), ("Which papers are by Adams?", []), ("What do otters eat?", None),
        ("the oldest paper", [("otters.pdf", "On Sea Otters", 1)]), ("who wrote the newest paper?", [RAFT_BY]),
        ("papers by Robert Seal", [RAFT]), ("what did seal write", [RAFT]), ("What did the committee write?", None),
        ("which papers did I add today", [OTTERS]), ("papers added yesterday", [RAFT]), ("papers with notes", [OTTERS]),
        ("papers not by Seal", [OTTERS]), ("all papers except Seal", [OTTERS]), ("papers except the 2014 ones", [RAFT]),
        ("papers that do not mention ice", [OTTERS]), ("papers added in the last 1000 days", [OTTERS, RAFT]),
        ("papers added in the last 9999 years", [OTTERS, RAFT]), ("papers added in 2026", [OTTERS, RAFT]),
        ("papers added in 1999", []),
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
        ("How many papers are about sea otters?",
         "The library has 1 paper about sea otters, by title, abstract or tags."),
        ("How many papers are by Nutria?", "The library has 1 paper by José Nutria."),
        ("How many papers are from 2014 to 2019?", "The library has 2 papers from 2014 to 2019."),
        ("How many papers are from 1990?", "The library has no papers from 1990."),
        ("how many papers have i not opened", "The library has 1 paper that you have not opened."),
        ("papers by Zimmer", "No paper in the library is by “Zimmer”."),
        ("Who wrote the oldest paper by Zorblax?", "No paper in the library is by “Zorblax”."),
        ("when was the longest paper by Nobody published?", "No paper in the library is by “Nobody”."),
        ("papers by Seall", "No paper in the library is by “Seall”. Similar names: Bob Seal."),
        ("papers tagged ice", "No paper in the library has the tag “ice”."), ("papers in German", NOT_STORED),
        ("which author has the most papers?", "Ada Otter; Bob Seal; José Nutria: 1 paper each, the most of 3"
         " authors among 2 papers."),
        ("papers per year", "2 years among 2 papers, with the number of papers of each: 2014: 1; 2019: 1."),
        ("how many pages has raft", "“Raft: A Log” has 1 page."),
        ("when did I add the raft paper?", "“Raft: A Log” was added on 2026-11-24."),
        ("have i read raft", "You never opened “Raft: A Log”."),
        ("do i have notes on on sea otters", "You have 2 notes on “On Sea Otters”."),
        ("how many authors has the otters paper", "“On Sea Otters” has 2 authors, as far as its first pages say."),
        ("Which papers do not mention the", None),
        ("which papers never mention o", "Each of the 2 papers mentions “o”."),
        ("How many papers are about trains?", None),  # their texts may be
    ],
)
def test_papers_are_counted_without_a_citation(question: str, said: str | None) -> None:
    found = replied(question, library())
    assert (found and (found.text, found.refused, found.citations)) == (said and (said, False, ()))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("the 2 oldest papers", "No year is known of 2 papers."), ("the newest paper", "No year is known of 2 papers."),
        ("the oldest paper by Seal", "No year is known of 1 paper by Bob Seal."),
        ("who wrote the oldest paper?", "No year is known of 2 papers."),
        ("which paper has the most tags", "No tag is known of 2 papers."),
        ("how many papers per author", "No author is known of 2 papers."),
        ("which venue has the most papers?", "No venue is known of 2 papers."),
    ],
)
def test_a_field_may_be_known_of_no_paper(question: str, said: str) -> None:
    people: list[tuple[str, ...]] = [(), ()] if "per author" in question else [("Ada Otter",), ("Bob Seal",)]
    papers = dict(
        front_of(f"Ice {name}", f"{name}.pdf", simple_metadata(f"Ice {name}", authors))
        for name, authors in zip("ab", people, strict=True)
    )
    found = replied(question, papers)
    assert (found and (found.text, found.citations)) == (said, ())


@pytest.mark.parametrize(
    ("question", "files"),
    [
        ("the oldest paper", "ab"), ("the 2 oldest papers", "ab"), ("the 3 oldest papers", "abcd"),
        ("the newest paper", "e"), ("the 2 newest papers", "ecd"), ("the 5 oldest papers", "abcde"),
    ],
)  # fmt: skip
def test_papers_that_tie_with_the_last_are_listed(question: str, files: str) -> None:
    dated = zip("abcde", (2001, 2001, 2002, 2002, 2003), strict=True)
    known = ((name, simple_metadata(f"Ice {name}", (), year)) for name, year in dated)
    papers = dict(front_of(f"Ice {name}", f"{name}.pdf", metadata) for name, metadata in known)
    found = replied(question, papers)
    assert found is not None
    assert [sentence.citations[0].paper.file for sentence in found.sentences] == [f"{name}.pdf" for name in files]


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A time zone 14 hours before UTC."""
    if not hasattr(time, "tzset"):
        pytest.skip("Windows has no such call")
    monkeypatch.setenv("TZ", "EAST-14")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("when did I add the raft paper?", "“Raft: A Log” was added on 2026-11-25."),
        ("have i read the otters paper?", "You last opened “On Sea Otters” on 2026-11-27."),
        ("how many papers did I add today", "The library has 1 paper added from 2026-11-25."),
    ],
)
def test_a_day_is_that_of_this_computer(question: str, said: str) -> None:
    found = replied(question, library())
    assert (found and found.text) == said


def test_names_are_compared_with_one_matcher(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    by_author = library_lists._TESTS["author"]

    def counted(name: str) -> Callable[[Paper], bool]:
        made.append(name)
        return by_author(name)

    monkeypatch.setitem(library_lists._TESTS, "author", counted)
    assert told("papers by Otter or Seal") == [OTTERS, RAFT]
    assert made == ["Otter", "Seal"]


def test_what_a_paper_cites_is_looked_up_in_its_own_text() -> None:
    text = "Raft: A Log\nBob Seal\nReferences: On Sea Otters Otter, and On Ice."
    papers = dict(
        front_of(text, f"{title}.pdf", simple_metadata(title, authors))
        for title, authors, text in (
            ("On Sea Otters", ("Ada Otter",), "They float."), ("Raft: A Log", ("Bob Seal",), text),
            ("On Ice", (), "It melts."),
        )
    )  # fmt: skip
    otters, raft, ice = papers
    plain = shelf_of(papers)
    searched: list[Collection[str] | None] = []
    cited: list[str] = []

    def mentions(words: str, among: Collection[str] | None = None) -> frozenset[str]:
        searched.append(among)
        return plain.mentions(words, among)

    def cited_by(paper: str) -> set[str]:
        cited.append(paper)
        return set()

    wanted = listing(Condition("cited_by", "Raft: A Log", is_sure=False))
    shelf = replace(plain, mentions=mentions, cited=cited_by, described=lambda words: [raft])
    found = library_lists.chosen(wanted, shelf)
    assert found is not None
    assert [paper.id for paper in found[0]] == [otters.id, ice.id]
    assert (set(searched), cited) == ({frozenset({raft.id})}, [raft.id])


# With a real library


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[HashingApp, Library, Retriever]]:
    """Two papers, one of which cites the other, and a retriever over them."""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    app = hashing_app(tmp_path)
    melting = "Glaciers melt. We follow On Sea Otters by Otter. "
    passages = "".join(f"In year {year} of our study the ice lost a metre, and then it snowed. " for year in range(9))
    for name, text in (("ice", melting + passages), ("otters", "Sea otters float.")):
        write_pdf(app.settings.PAPERS_DIR / f"{name}.pdf", [text], f"On {name}")
    app.run()
    with closing(app.open_library()) as library:
        fusion = FusionSettings(0.7, 0.3, 9, 9)
        yield app, library, Retriever(library, lambda: app.open_indexes(library), app.hashing, None, fusion)


@pytest.mark.fast
def test_a_title_is_mentioned_in_a_passage_of_some_papers(kept: tuple[HashingApp, Library, Retriever]) -> None:
    _, _, retriever = kept
    ids = {paper.file: paper.id for paper in retriever.papers()}
    ice, otters = ids["ice.pdf"], ids["otters.pdf"]
    words = "sea otters otter"
    assert retriever.mentions(words) == {ice, otters}
    assert retriever.mentions("glaciers by") == retriever.mentions("glaciers by", {ice, otters}) == {ice}
    assert retriever.mentions(words, {ice}) == {ice}
    assert retriever.mentions("glaciers", {otters}) == set()
    assert retriever.mentions("glaciers zorblax") == set()


@pytest.mark.fast
def test_titles_are_read_again_only_when_they_change(
    kept: tuple[HashingApp, Library, Retriever], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _, retriever = kept
    assert retriever.mentions("walrus drift") == set()
    (ice,) = (paper for paper in retriever.papers() if paper.file == "ice.pdf")
    question = Question("Is it about walrus drift?")
    assert retriever.has_new_topic(question, ice)
    with monkeypatch.context() as patch:
        patch.setattr(retriever, "papers", lambda: pytest.fail("read again"))
        assert retriever.mentions("glaciers") == {ice.id}
    with closing(app.open_library()) as other:
        other.set_metadata(ice.id, "person", simple_metadata("Walrus Drift", origin="person"))
    app.finish_ingest()
    assert retriever.mentions("walrus drift") == retriever.mentions("walrus drift", {ice.id}) == {ice.id}
    (ice,) = retriever.papers_by_id([ice.id])
    assert not retriever.has_new_topic(question, ice)


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


def test_other_words_say_what_of_a_thing_is_meant() -> None:
    simple = simple_metadata("Raft: A Log", ("Bob Seal",), 2019)
    about = replace(simple, abstract=Field("A log for the public.", "page"))
    paper, front = front_of("Raft: A\nLog\nBob Seal, 2019\nA log for the public.", "raft.pdf", about)
    papers = {next(iter(library())): next(iter(library().values())), paper: front}
    assert replied("When was Raft released?", papers)
    assert replied("When was Raft released to the public?", papers) is None
    assert replied("When was the paper Raft for the public released?", papers)
