"""Two files of one paper, in whatever way they came: which is the newer one, what is said, and what is searched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from folio.papers.metadata import Field, Metadata, PersonName
from folio.papers.model import PageMap, Paper
from folio.papers.versions import is_superseded, relation, with_versions
from tests.helpers.cli_runner import CliRunner
from tests.helpers.known_papers import known
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
    older = with_versions(paper, others)
    assert older.flag is not None
    assert (older.flag.text, older.flag.mark) == ("Older version: arXiv:2101.01234v10 is in the index", "")
    assert older.flag.note == older.flag.text
    assert is_superseded(older)
    newest = with_versions(replace(paper, metadata=others[1]), [paper.metadata, others[0]])
    assert (newest.flag, is_superseded(newest)) == (None, False)
    again = with_versions(paper, [paper.metadata])
    assert again.flag is not None
    assert (again.flag.text, is_superseded(again)) == ("In the index again: arXiv:2101.01234v1", False)


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
    version(desk.papers / "a.pdf", OLD, "https://doi.org/10.1234/otters")
    version(desk.papers / "b.pdf", NEW, "https://doi.org/10.1234/otters")
    save(
        desk.papers / "comment.pdf",
        [[(72, 100, "Whiskers of grey seals"), (72, 130, "Cy Walrus"), (72, 170, "A comment."),
          (72, 200, "https://doi.org/10.1234/otters"), (72, 230, "We disagree with every number in that study.")]],
        metadata={"title": "Whiskers of grey seals", "author": "Cy Walrus"},
    )  # fmt: skip
    said = " ".join(desk.ingest().out.split())
    for name in ("a.pdf", "b.pdf"):
        assert f"{name}: In the index again: doi:10.1234/otters." in said
    assert "comment.pdf: " not in said
