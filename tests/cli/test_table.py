"""`folio table` and `query.py --table`: tables are made from a file of questions, filled, shown, written, deleted."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import docx
import pytest

import ingest
from folio.app import App
from folio.cli import table
from folio.papers.model import Paper
from folio.store import tables
from folio.store.library import Library
from folio.store.tables import Fill, TableColumn
from folio.table.cell import Column
from folio.table.filling import Filler
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.libraries import filled as filled_library
from tests.helpers.paths import ROOT
from tests.helpers.table_finder import WordFinder

QUESTIONS = "# what to ask\nKelp: kelp\nLength: length [number, km]\n"
FILLED = """
import sys, time
from pathlib import Path
from folio.store.tables import Fill
from folio.table.filling import Filler
from tests.helpers.fakes import hashing_app
from tests.helpers.table_finder import WordFinder

def before(paper, column):
    print(paper.id, column.name, flush=True)
    time.sleep(0.4)

app = hashing_app(Path(sys.argv[1]), LLM="builtin", RERANKER="builtin")
filler = Filler(app.open_library, lambda library: WordFinder(library, before))
filler.run(filler.begin(Fill(sys.argv[2]), resumes=True))
"""


@pytest.fixture
def desk(filled: CliRunner, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """A desk with a file of questions, whose tables are filled without a model."""
    (filled.folder / "questions.txt").write_text(QUESTIONS)
    monkeypatch.setattr(App, "cell_finder", lambda self, library: WordFinder(library))
    return filled


def run(desk: CliRunner, *arguments: str) -> CliResult:
    return desk._here(table, arguments)


def test_questions_are_put_to_each_paper_and_written(desk: CliRunner) -> None:
    questions, out = str(desk.folder / "questions.txt"), desk.folder / "out.csv"
    ran = desk.query("--table", questions, "--csv", str(out))
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    (found,) = [line for line in lines if line.startswith("  Kelp: “")]
    assert found.startswith("  Kelp: “Sea otters sleep on their backs and float in rafts of kelp.” [")
    assert "  Kelp: not found" in lines
    assert f"Written: {out}." in ran.err
    rows = list(csv.reader(io.StringIO(out.read_bytes().decode("utf-8-sig"))))
    assert rows[0] == ["Key", "Paper", "Year", "Title", "File", "Kelp", "Length (km)", "Length: quotes"]
    by_file = {row[4]: row for row in rows[1:]}
    assert by_file["alps/glaciers.pdf"][5:7] == ["not found", "23"]
    assert by_file["alps/glaciers.pdf"][7].startswith("23 “a length of 23 kilometres")
    assert by_file["otters.pdf"][6:] == ["", "not found"]
    again = desk.query("--table", questions, "--json")
    assert "is continued" in again.err
    assert (again.object["found"], again.object["not_found"], again.object["waiting"]) == (2, 2, 0)
    assert run(desk, "list").out.endswith("2 papers by 2 columns: 2 found, 2 not found\n1 table.\n")


def test_a_table_is_shown_exported_and_deleted(desk: CliRunner) -> None:
    questions = str(desk.folder / "questions.txt")
    ran = run(desk, "new", questions, "--name", "Mine", "--no-fill", "--paper", "otters")
    assert ran.code == 0, ran.err
    assert ran.err.endswith("Mine: 1 paper by 2 columns: 2 waiting.\n")
    assert "Kelp: (not asked yet)" in run(desk, "show", "mine").out
    ran = run(desk, "fill", "Mine")
    assert (ran.code, ran.err.splitlines()[-1][-41:]) == (0, "1 paper by 2 columns: 1 found, 1 not found."[-41:])
    shown = run(desk, "show", "Mine").out
    assert "Kelp: “Sea otters sleep on their backs and float in rafts of kelp.” [" in shown
    assert "Length: not found" in shown
    whole = run(desk, "show", "Mine", "--json").object
    assert whole["scope"] == "1 paper"
    assert run(desk, "list", "--json").objects[0]["id"] == whole["id"]
    begins = {"md": b"# Mine\n\n1 paper.", "csv": b"\xef\xbb\xbfKey,Paper", "json": b'{"id":', "bib": b"% title not"}
    for ending, begin in begins.items():
        file = desk.folder / f"mine.{ending}"
        assert run(desk, "export", whole["id"][:6], str(file)).code == 0
        assert file.read_bytes().startswith(begin), ending
    document = desk.folder / "mine.docx"
    assert run(desk, "export", "Mine", str(document)).code == 0
    (made,) = docx.Document(str(document)).tables
    assert [cell.text for cell in made.rows[0].cells] == ["Paper", "Kelp", "Length (km)"]
    assert json.loads(run(desk, "export", "Mine", "--format", "json").out)["id"] == whole["id"]
    assert run(desk, "delete", "Mine").out == "Deleted: the table Mine.\n"
    assert run(desk).out == "0 tables.\n"


def test_mistakes_are_said(desk: CliRunner) -> None:
    questions = str(desk.folder / "questions.txt")

    def refused(*arguments: str) -> str:
        ran = run(desk, *arguments)
        assert (ran.code, ran.out) == (2, "")
        return ran.err.splitlines()[0]

    assert refused("show", "None") == "No table is called “None”."
    assert refused("new", "nothing.txt") == "nothing.txt cannot be read: No such file or directory."
    assert refused("new", questions, "--section", "methods") == "A table asks whole papers, not sections."
    assert refused("new", questions, "--csv", "no/such/out.csv") == "The folder of no/such/out.csv does not exist."
    (desk.folder / "bad.txt").write_text("Size [number, flups]")
    assert refused("new", str(desk.folder / "bad.txt")).startswith("Line 1 has an unknown unit")
    for _ in range(2):
        assert run(desk, "new", questions, "--name", "Twice", "--no-fill").code == 0
    assert refused("show", "twice") == "2 tables are called so."
    assert refused("export", run(desk, "list", "--json").objects[0]["id"], "--format", "docx").startswith("A Word")
    ran = desk.query("--csv", "x.csv", "How long?")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "--csv needs --table.")
    ran = desk.query("--table", questions, "--batch", "x")
    assert ran.err.splitlines()[0].endswith("cannot be combined.")


def test_what_was_found_until_ctrl_c_is_kept_and_written(desk: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(paper: Paper, column: Column) -> None:
        if column.name == "Length":
            raise KeyboardInterrupt

    monkeypatch.setattr(App, "cell_finder", lambda self, library: WordFinder(library, interrupted))
    out = desk.folder / "out.md"
    ran = desk.query("--table", str(desk.folder / "questions.txt"), "--markdown", str(out))
    assert ran.code == 130
    assert "continues" in ran.err
    assert out.read_text().startswith("# questions\n")
    (listed,) = run(desk, "list", "--json").objects
    assert (listed["waiting"], listed["filling"]) == (3, False)


def test_a_table_outlives_a_rebuild(desk: CliRunner) -> None:
    assert desk.query("--table", str(desk.folder / "questions.txt")).code == 0
    before = run(desk, "show", "questions", "--json").object
    assert desk._here(ingest, ["--rebuild"]).code == 0
    after = run(desk, "show", "questions", "--json").object
    assert {**after, "changed": 0, "updated": ""} == {**before, "changed": 0, "updated": ""}
    assert not any(cell["stale"] for cell in after["cells"])


def test_a_killed_program_loses_no_cell_and_asks_none_twice(tmp_path: Path) -> None:
    """It is killed while it asks the third cell, and at once another program goes on."""
    app = filled_library(tmp_path)
    with closing(app.open_library()) as library:
        id = _new_table(library)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        [sys.executable, "-c", FILLED, str(tmp_path), id], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert child.stdout is not None
    asked = [child.stdout.readline().split() for _ in range(3)]
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with closing(app.open_library()) as library:
        assert tables.counts(library.database, [id])[id].waiting == 4
        filler = Filler(app.open_library, lambda opened: WordFinder(opened, lambda *cell: again.append(cell)))
        again: list[Any] = []
        assert filler.begin(Fill(id)) is None  # it may still be asked, as far as others know
        end = time.monotonic() + tables.FILLING_S + 5
        while (filling := filler.begin(Fill(id))) is None:
            assert time.monotonic() < end
            time.sleep(0.5)
        filler.run(filling)
        assert tables.counts(library.database, [id])[id].waiting == 0
        told = [[paper.id, column.name] for paper, column in again]
        assert sorted([*asked[:2], *told]) == sorted(map(list, {(paper, name) for paper, name in [*asked, *told]}))
        assert library.check() == []


def _new_table(library: Library) -> str:
    from folio.store.table_places import row_of

    columns = [TableColumn("c1", "Kelp", "kelp"), TableColumn("c2", "Bees", "bees")]
    return tables.add(library.database, "Kelp", {}, columns, list(map(row_of, library.papers())))
