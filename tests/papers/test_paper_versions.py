"""Two files of one paper, in whatever way they came: which is the newer one, what is said, and what is searched."""

from __future__ import annotations

import re
import shutil
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from folio.cli import papers
from folio.papers.metadata import Field, Metadata, PersonName
from folio.papers.model import PageMap, Paper
from folio.papers.versions import Other, PaperText, is_superseded, relation, with_versions
from tests.helpers.cli_runner import CliRunner
from tests.helpers.known_papers import known
from tests.helpers.paths import CASES
from tests.helpers.pdfs import save

ANN, BO, CY = PersonName("Otter", "Ann"), PersonName("Seal", "Bo"), PersonName("Walrus", "Cy")
OTTERS = known(title="Sea otters and the kelp that they keep", authors=(ANN, BO), year=2021)
SEALS = known(title="A comment on the diving of grey seals", authors=(CY,))


def arxiv(metadata: Metadata, number: str) -> Metadata:
    return replace(metadata, arxiv=Field(number, "page", True))


def doi(metadata: Metadata, value: str = "10.1234/otters", *, sure: bool = True) -> Metadata:
    return replace(metadata, doi=Field(value, "page", sure))


def titled(metadata: Metadata, title: str) -> Metadata:
    return replace(metadata, title=Field(title, "page", True))


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        (arxiv(OTTERS, "2101.01234v1"), arxiv(OTTERS, "2101.01234v2"), "older"),
        (arxiv(OTTERS, "2101.01234v2"), arxiv(OTTERS, "2101.01234v10"), "older"),
        (arxiv(OTTERS, "2101.01234v2"), arxiv(titled(OTTERS, "Kelp"), "2101.01234v1"), "newer"),
        (arxiv(OTTERS, "2101.01234v2"), arxiv(OTTERS, "2101.01234v2"), "same"),
        (arxiv(OTTERS, "2101.01234"), arxiv(OTTERS, "2101.01234v2"), "same"),  # nobody knows
        (arxiv(OTTERS, "2101.01234v1"), arxiv(OTTERS, "2101.01235v2"), ""),
        (arxiv(OTTERS, "2101.01234v1"), arxiv(SEALS, "2101.01234v2"), ""),  # a file with a wrong name
        (arxiv(OTTERS, "2101.01234v1"), arxiv(Metadata(), "2101.01234v2"), "older"),
        (doi(OTTERS), doi(OTTERS, "10.1234/OTTERS"), "same"),
        (doi(arxiv(OTTERS, "2101.01234v3")), doi(OTTERS), "older"),  # the preprint of an article
        (doi(replace(OTTERS, year=Field(2020, "page", True))), doi(OTTERS), "older"),
        (doi(OTTERS, sure=False), doi(OTTERS), ""),
        (doi(OTTERS), doi(SEALS), ""),  # a comment on it prints its DOI
        (doi(SEALS, "10.1234/otters"), doi(titled(SEALS, "Whiskers of seals"), "10.1234/otters"), ""),
        (doi(OTTERS), doi(titled(OTTERS, "Supplement to: Sea otters and the kelp that they keep, part B")), ""),
        (OTTERS, OTTERS, ""),
        (Metadata(), Metadata(), ""),
    ],
)
def test_what_one_paper_is_to_another(own: Metadata, other: Metadata, expected: str) -> None:
    assert relation(own, other) == expected
    assert relation(other, own) == {"older": "newer", "newer": "older"}.get(expected, expected)


def test_what_is_said_of_an_older_version() -> None:
    paper = Paper("ab" * 32, "otters.pdf", arxiv(OTTERS, "2101.01234v1"), PageMap((0,), ("",)), 10, 1)
    others = [arxiv(OTTERS, f"2101.01234v{n}") for n in (2, 10, 3)]
    older = with_versions(paper, map(Other, others))
    assert older.flag is not None
    assert (older.flag.text, older.flag.mark) == ("Older version: arXiv:2101.01234v10 is in the index", "")
    assert older.flag.note == ""
    assert is_superseded(older)
    newest = with_versions(replace(paper, metadata=others[1]), [Other(paper.metadata), Other(others[0])])
    assert (newest.flag, is_superseded(newest)) == (None, False)
    again = with_versions(paper, [Other(paper.metadata)])
    assert again.flag is not None
    assert (again.flag.text, is_superseded(again)) == ("In the index again: arXiv:2101.01234v1", False)


def page(number: int, lines: int = 40, *, word: str = "heron") -> str:
    """The text of a page, which no other page has."""
    numbers = ((n, n * 7919 % 1009, n * number % 97) for n in range(lines))
    return "\n".join(f"On line {n} of page {number} the {word} {one} {two} flew" for n, one, two in numbers)


ARTICLE = [page(number) for number in range(4)]


def other(own: list[str], pages: list[str]) -> Other:
    return Other(OTTERS, "b", lambda: (PaperText(own), PaperText(pages)))


def stamped(pages: list[str], stamp: str, *, top: str = "", everywhere: bool = True) -> list[str]:
    return [
        "\n".join(filter(None, [top, text, stamp])) if everywhere or not number else text
        for number, text in enumerate(pages)
    ]


@pytest.mark.parametrize(
    "pages",
    [
        ARTICLE,
        stamped(ARTICLE, "Downloaded by NORHAVEN INSTITUTE on 2 June 2021\nFor personal use", top="Library copy 17"),
        stamped(ARTICLE, "Downloaded on 2 June 2021", everywhere=False),
        ["A cover of the archive\nthat names the paper", *ARTICLE],
        [*ARTICLE[:3], ARTICLE[3] + "\nDownloaded on 2 June 2021"],
    ],
)
def test_downloads_that_differ_in_stamps_are_copies(pages: list[str]) -> None:
    mine = stamped(ARTICLE, "Authorized licensed use limited to: UNIVERSITY OF WESTMERE")
    assert other(ARTICLE, pages).is_copy
    assert other(pages, ARTICLE).is_copy
    assert other(mine, pages).is_copy
    assert other(mine, pages).shares_text


@pytest.mark.parametrize(
    "pages",
    [
        [ARTICLE[0].replace("line 20 of page 0 the heron", "line 20 of page 0 the 42 herons"), *ARTICLE[1:]],
        [*ARTICLE, page(4)],  # with an appendix
        ARTICLE[:2],
        [page(number, word="plover") for number in range(4)],
    ],
)
def test_texts_that_differ_are_no_copies(pages: list[str]) -> None:
    assert not other(ARTICLE, pages).is_copy
    assert not other(pages, ARTICLE).is_copy


def test_a_number_corrected_on_a_short_page_makes_no_copy() -> None:
    old = [*ARTICLE, "In all\n1200 urchins\nwere eaten"]
    new = [*ARTICLE, "In all\n1750 urchins\nwere eaten"]
    assert not other(old, new).is_copy


def test_a_supplement_is_no_version_of_its_article() -> None:
    """It prints the title, authors and DOI, and a later date; its text is its own."""
    article, later = doi(OTTERS), doi(replace(OTTERS, year=Field(2022, "page", True)))
    head = f"{TITLE}\nAnn Otter and Bo Seal\nhttps://doi.org/10.1234/otters\n"
    supplement = [head + page(9), page(10)]
    pair = other([head + ARTICLE[0], *ARTICLE[1:]], supplement)
    assert relation(article, later) == "older"
    assert relation(article, later, lambda: pair.shares_text) == ""
    revised = [text.replace("flew", "has flown", 12) for text in ARTICLE]
    assert relation(article, later, lambda: other(ARTICLE, revised).shares_text) == "older"


OLD = "The kelp of the bay was counted on 40 plots, and sea otters ate 1200 urchins in one year."
NEW = "The kelp of the bay was counted on 40 plots, and sea otters ate 1750 urchins in one year."
TITLE = "Sea otters and the kelp that they keep"


def version(path: Path, said: str, *more: str) -> None:
    lines = [(100.0, TITLE), (130.0, "Ann Otter and Bo Seal"), (170.0, said), *((200.0, line) for line in more)]
    save(path, [[(72.0, y, text) for y, text in lines]], metadata={"title": TITLE, "author": "Ann Otter; Bo Seal"})


def test_questions_are_answered_from_the_newer_version(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    version(desk.papers / "2101.01234v1.pdf", OLD)
    version(desk.papers / "2101.01234v2.pdf", NEW)
    said = " ".join(desk.ingest().out.split())
    assert "2101.01234v1.pdf: Older version: arXiv:2101.01234v2 is in the index." in said
    assert "Answers use the newer version" in said
    question = "How many urchins did sea otters eat in one year?"
    asked = desk.query(question, "--no-log")
    assert "1750 urchins" in asked.out
    assert "1200" not in asked.out
    named = desk.query(question, "--no-log", "--paper", "2101.01234v1")
    assert "1200 urchins" in named.out
    assert "Older version: arXiv:2101.01234v2 is in the index" in " ".join(named.out.split())
    assert desk.ingest().out.startswith("Nothing new")
    (desk.papers / "2101.01234v2.pdf").unlink()
    assert desk.ingest("--prune").code == 0
    assert "1200 urchins" in desk.query(question, "--no-log").out


def test_an_older_version_answers_only_if_named(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    version(desk.papers / "2101.01234v1.pdf", OLD)
    version(desk.papers / "2101.01234v2.pdf", NEW)
    save(desk.papers / "ice.pdf", [[(72, 100, "Ice of glaciers"), (72, 170, "The ice of glaciers flows downhill.")]])
    desk.ingest()
    question, named = "How many urchins did sea otters eat in one year?", ["--paper", "2101.01234v1"]
    for chosen, is_old in (
        *((each, False) for each in (["--deep"], ["--author", "Otter"], ["--year", "2020-2022"])),
        *((each, True) for each in (named, ["--deep", *named])),
    ):
        asked = desk.query(question, "--no-log", *chosen).out
        assert ("1750 urchins" in asked, "1200 urchins" in asked) == (not is_old, is_old), chosen
    both = [*named, "--paper", "2101.01234v2", "--author", "Otter"]
    assert "1200 urchins" in desk.query(question, "--no-log", *both).out


def test_two_files_with_one_doi_say_so(desk: CliRunner) -> None:
    desk.settings["EMBEDDER"] = "builtin"
    version(desk.papers / "a.pdf", OLD, "https://doi.org/10.1234/otters.21")
    version(desk.papers / "b.pdf", NEW, "https://doi.org/10.1234/otters.21")
    save(
        desk.papers / "comment.pdf",
        [[(72, 100, "Whiskers of grey seals"), (72, 130, "Cy Walrus"), (72, 170, "A comment."),
          (72, 200, "https://doi.org/10.1234/otters.21"), (72, 230, "We disagree with every number in that study.")]],
        metadata={"title": "Whiskers of grey seals", "author": "Cy Walrus"},
    )  # fmt: skip
    said = " ".join(desk.ingest().out.split())
    for name in ("a.pdf", "b.pdf"):
        assert f"{name}: In the index again: doi:10.1234/otters.21." in said
    assert "comment.pdf: " not in said


def _sources(desk: CliRunner, question: str, *chosen: str) -> list[str]:
    """The file of each passage that was found, the best first."""
    return re.findall(r"^\d+\. (\S+), p", desk.query(question, "--no-log", "--sources", *chosen).out, re.MULTILINE)


def test_two_downloads_without_a_doi_are_searched_once(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    for path in (CASES / "twice").iterdir():
        shutil.copy(path, desk.papers / path.name.replace(" (1)", "-again"))
    said = " ".join(desk.ingest().out.split())
    assert said.count("In the index again, with the same text.") == 1
    assert "Answers use one of several copies, unless you choose another with --paper." in said
    again = "paper-again.pdf" if "paper-again.pdf: In the index again" in said else "paper.pdf"
    searched = {"paper.pdf", "paper-again.pdf"} - {again}
    question = "What did the polished electrode release?"
    assert set(_sources(desk, question)) == searched
    assert set(_sources(desk, question, "--paper", again.removesuffix(".pdf"))) == {again}
    (desk.papers / searched.pop()).unlink()
    assert desk.ingest("--prune").code == 0
    assert set(_sources(desk, question)) == {again}


@pytest.mark.parametrize("case", ["supplement_later", "supplement_si_small"])
def test_an_article_and_its_supplement_are_both_searched(desk: CliRunner, case: str) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    for path in (CASES / case).iterdir():
        shutil.copy(path, desk.papers)
    said = desk.ingest().out
    assert "version" not in said
    assert "again" not in said
    question = "How many chicks did each pair fledge on the main island?"
    assert desk.query(question, "--no-log").out.startswith("1.37 chicks")
    assert _sources(desk, question)[0] == "coast500.pdf"
    assert _sources(desk, "Which table gives the ring numbers of adults that were trapped?")[0] == "coast500_supp.pdf"


PAGES = (
    "The polished electrode released two moles of gas in each hour of the trial, and the rough one released four.",
    "After nine weeks the rough electrode was worn, and its release fell to a third of what it had been at first.",
    "A coat of lead kept the polished electrode bright, but the cell had to be opened twice to put it on again.",
    "The price of the lead was small beside that of the current, which the trial took from the mains at night.",
)


def download(path: Path, pages: tuple[str, ...], *, stamp: str = "", cover: str = "") -> None:
    """A paper without a title that could be read. stamp: at the foot of its first page. cover: a page in front."""
    texts = [f"{text} {page(n, 24)}." for n, text in enumerate(pages)]
    lines = [[(72.0, 90 + 14.0 * n, line) for n, line in enumerate(textwrap.wrap(text, 70))] for text in texts]
    lines[0] += [(72.0, 760.0, stamp)] if stamp else []
    save(path, [[(72.0, 200.0, cover)], *lines] if cover else lines, metadata={"producer": path.name})


def test_copies_are_known_by_their_text_and_give_way_to_other_evidence(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    copies = {"cell": {}, "download_1": {}, "7f3a": {"stamp": "Lent by the library of Norhaven, 2 June 2021"},
              "s2.0-99": {"cover": "The archive of Norhaven keeps this copy."}, "x": {}}  # fmt: skip
    for name, more in copies.items():
        download(desk.papers / f"{name}.pdf", PAGES, **more)
    download(desk.papers / "later.pdf", ("A later trial of the polished electrode released five moles of gas.",))
    said = desk.ingest().out
    (line,) = (line for line in said.splitlines() if "In the index again" in line)
    assert line.count(".pdf") == 4
    sources = _sources(desk, "What did the polished electrode release?", "--top-k", "3")
    assert len(sources) == 3
    assert {source for source in sources if source in line} == set()
    assert "later.pdf" in sources
    stats = desk.query("--stats", "--json").object
    assert (stats["papers"], stats["copies"]) == (2, 4)
    assert "2 papers" in desk.query("How many papers are in the library?").out
    assert desk.query("How many pages does x.pdf have?").out == "“x.pdf” has 4 pages.\n"
    named = ["--paper", "cell", "--paper", "7f3a", "--paper", "x"]
    passages = desk.query("What did the polished electrode release?", "--sources", "--json", "--top-k", "3", *named)
    texts = [hit["text"] for hit in passages.object["hits"]]
    assert len(texts) == len(set(texts)) == 3  # one of each, though three files have it


def test_a_corrected_number_makes_another_text(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    download(desk.papers / "old.pdf", PAGES)
    download(desk.papers / "new.pdf", (PAGES[0].replace("two moles", "six moles"), *PAGES[1:]))
    assert "again" not in desk.ingest().out
    asked = desk.query("How much gas did the polished electrode release?", "--no-log", "--sources").out
    assert "two moles" in asked
    assert "six moles" in asked


def chapter(path: Path, *said: str) -> None:
    """A chapter that prints the title, editors, licence and DOI of its book."""
    head = (TITLE, "Ann Otter and Bo Seal", "https://doi.org/10.1234/book.7", "ISBN 978-3-16-148410-0. All",
            "rights are reserved by the society for the study of otters and the kelp that they keep.")  # fmt: skip
    lines = [(72.0, 100 + 22.0 * n, text) for n, text in enumerate((*head, *said))]
    save(path, [lines], metadata={"title": TITLE, "author": "Ann Otter; Bo Seal"})


def test_chapters_of_one_book_are_papers_of_their_own(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    chapter(desk.papers / "1.pdf", *(f"In the year {year} the otters of bay {year % 7} ate {year % 90} urchins."
                                     for year in range(1950, 1972)))  # fmt: skip
    chapter(desk.papers / "2.pdf", *(f"Rope {n} was hauled up with {n % 13} blades of kelp, {n % 5} of them torn."
                                     for n in range(40, 62)))  # fmt: skip
    assert "again" not in desk.ingest().out
    assert desk.query("--stats", "--json").object["papers"] == 2
    assert "index again" not in desk._here(papers, ["export"]).out


@pytest.mark.parametrize(
    ("number", "title"), [("2101.01234", TITLE), ("2101.01234v2", TITLE), ("2101.01234v1", f"Supplement to {TITLE}")]
)
def test_a_supplement_with_the_number_of_its_article_is_no_version(number: str, title: str) -> None:
    supplement = [f"{TITLE}\nAnn Otter and Bo Seal\n{page(9)}", page(10)]
    pair = other([f"{TITLE}\nAnn Otter and Bo Seal\n{ARTICLE[0]}", *ARTICLE[1:]], supplement)
    own, its = arxiv(OTTERS, "2101.01234v2"), arxiv(titled(OTTERS, title), number)
    assert relation(own, its, lambda: pair.shares_text) == ""
    assert relation(own, arxiv(OTTERS, "2101.01234v1"), lambda: pair.shares_text) == "newer"  # rewritten, or a bad scan
