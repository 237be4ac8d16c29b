"""A citation key, and the letter of a label, that were given stay with their paper, whatever comes and goes."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from folio.cli import papers
from folio.store.indexes import LIBRARY
from folio.store.library import Library
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import write_pdf

AFTER = "The otters of the northern bay were counted from the air in each of the four winters of the survey."
BEFORE = "Rafts of resting otters were photographed by night, and their distance to the shore was measured."
THIRD = "The urchins that the otters leave behind grow back within two years, as the divers could show."


@pytest.fixture
def bay(desk: CliRunner) -> CliRunner:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    return desk


def run(desk: CliRunner, *arguments: str) -> CliResult:
    return desk._here(papers, arguments)


def add(desk: CliRunner, name: str, title: str, text: str, author: str = "Chen, Li", year: int = 2014) -> Path:
    """Add a paper, and correct its metadata."""
    path = write_pdf(desk.papers / f"{name}.pdf", [text], title)
    assert desk.ingest().code == 0
    assert run(desk, "edit", name, f"title={title}", f"authors={author}", f"year={year}").code == 0
    return path


def keys(desk: CliRunner) -> dict[str, str]:
    """File -> its key in the exported bibliography, which is the same in every export."""
    exported = dict(re.findall(r"@\w+\{([^,]+),.*?file = \{:(\w+)\.pdf:PDF\}", run(desk, "export").out, re.S))
    by_file = {file: key for key, file in exported.items()}
    items = json.loads(run(desk, "export", "--format", "csl-json").out)
    assert sorted(item["id"] for item in items) == sorted(by_file.values())
    for file, key in by_file.items():
        assert run(desk, "show", f"{file}.pdf", "--json").object["citation_key"] == key
    return by_file


def labels(desk: CliRunner) -> dict[str, str]:
    """File -> its label, as all papers are read, which is as each is."""
    with closing(Library(desk.store / LIBRARY)) as library:
        every = library.papers()
        assert {paper.label for paper in library.papers_by_id([each.id for each in every])} == {p.label for p in every}
    return {paper.file.removesuffix(".pdf"): paper.label for paper in every}


def test_a_key_stays_when_another_paper_comes_before_it(bay: CliRunner) -> None:
    add(bay, "winter", "Otters in Winter", AFTER)
    assert keys(bay) == {"winter": "chen2014otters"}
    add(bay, "rest", "Otters at Rest", BEFORE)
    assert keys(bay) == {"winter": "chen2014otters", "rest": "chen2014ottersa"}
    add(bay, "feast", "Otters and Urchins", THIRD)
    given = {"winter": "chen2014otters", "rest": "chen2014ottersa", "feast": "chen2014ottersb"}
    assert keys(bay) == given
    assert run(bay, "edit", "feast", "title=Animals", "authors=Otter, Ann", "year=1999").code == 0
    assert bay.ingest("--rebuild").code == 0
    assert keys(bay) == given
    # Not those of a paper that was removed either, which has them when it comes back
    aside = shutil.move(bay.papers / "rest.pdf", bay.folder / "rest.pdf")
    assert bay.ingest("--prune").code == 0
    add(bay, "nest", "Otters of the Nest", BEFORE + " " + THIRD)
    shutil.move(aside, bay.papers / "back.pdf")
    assert bay.ingest().code == 0
    assert keys(bay) == {"winter": "chen2014otters", "back": "chen2014ottersa", "feast": "chen2014ottersb",
                         "nest": "chen2014ottersc"}  # fmt: skip


def test_a_key_that_was_never_exported_stays_when_papers_come(bay: CliRunner) -> None:
    add(bay, "winter", "Otters in Winter", AFTER)
    add(bay, "feast", "Otters and Urchins", THIRD)
    assert keys(bay) == {"winter": "chen2014otters", "feast": "chen2014ottersa"}


def test_a_new_version_of_a_file_keeps_its_names(bay: CliRunner) -> None:
    add(bay, "winter", "Otters in Winter", AFTER)
    add(bay, "rest", "Otters at Rest", BEFORE)
    given = keys(bay), labels(bay)
    write_pdf(bay.papers / "winter.pdf", [f"{AFTER} {AFTER} They were 410 in all."], "Otters in Winter")
    assert bay.ingest().code == 0
    assert (keys(bay), labels(bay)) == given


def test_letters_of_labels_stay(bay: CliRunner) -> None:
    add(bay, "winter", "Otters in Winter", AFTER)
    assert labels(bay) == {"winter": "Chen 2014"}
    add(bay, "rest", "Otters at Rest", BEFORE)
    given = {"winter": "Chen 2014a", "rest": "Chen 2014b"}
    assert labels(bay) == given
    assert "[Chen 2014b, p. 1]" in bay.query("How were resting otters photographed by night?").out
    add(bay, "feast", "A Feast of Urchins", THIRD)
    assert labels(bay) == {**given, "feast": "Chen 2014c"}
    assert bay.ingest("--rebuild").code == 0
    (bay.papers / "winter.pdf").unlink()
    assert bay.ingest("--prune").code == 0
    assert labels(bay) == {"rest": "Chen 2014b", "feast": "Chen 2014c"}


def test_a_key_is_edited_like_any_field(bay: CliRunner) -> None:
    add(bay, "winter", "Otters in Winter", AFTER)
    add(bay, "rest", "Otters at Rest", BEFORE)
    assert keys(bay) == {"winter": "chen2014otters", "rest": "chen2014ottersa"}
    assert run(bay, "edit", "winter", "citation_key=Chen14").code == 0
    # What it was called before is no other paper's key.
    assert keys(bay) == {"winter": "Chen14", "rest": "chen2014ottersa"}
    refused = run(bay, "edit", "rest", "citation_key=chen14")
    assert (refused.code, refused.err) == (2, "The citation key chen14 is that of winter.pdf.\nChoose another key.\n")
    assert re.search(r"citation key +chen2014ottersa +made by Folio", run(bay, "show", "rest").out)
    # The key that was used last stays when the choice is taken back.
    assert run(bay, "edit", "winter", "--reset", "citation_key").code == 0
    assert keys(bay) == {"winter": "Chen14", "rest": "chen2014ottersa"}
    for key in ("chen2014otters", "Chen14", "other", "Chen14", "last"):
        assert run(bay, "edit", "winter", f"citation_key={key}").code == 0
        assert keys(bay)["winter"] == key
    assert run(bay, "edit", "winter", "--reset", "citation_key").code == 0
    assert keys(bay) == {"winter": "last", "rest": "chen2014ottersa"}


def test_a_key_of_a_bibliography_wins_and_is_said(bay: CliRunner) -> None:
    add(bay, "winter", "Otters in Winter", AFTER)
    add(bay, "rest", "Otters at Rest", BEFORE)
    assert keys(bay)["winter"] == "chen2014otters"
    entry = "@article{chen2014otters, title={Otters at Rest}, author={Li Chen}, year={2014}, file={rest.pdf}}\n"
    (bay.folder / "mine.bib").write_text(entry)
    done = bay.ingest("--bib", str(bay.folder / "mine.bib"))
    said = " ".join(done.err.split())
    assert "winter.pdf: its citation key is chen2014ottersb now, because chen2014otters was chosen for another" in said
    assert keys(bay) == {"winter": "chen2014ottersb", "rest": "chen2014otters"}
