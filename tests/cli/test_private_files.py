"""What Folio writes is for its user alone, whatever the umask; what the user wrote keeps its mode."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from folio.evaluate.dataset import Gold, Question, save
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.serve_process import Served

if sys.platform == "win32":
    pytest.skip("Windows has no such modes", allow_module_level=True)

QUESTION = "How long is the Aletsch glacier?"


@pytest.fixture(params=[0o000, 0o022], ids="umask {:03o}".format)
def loose(request: pytest.FixtureRequest) -> Iterator[None]:
    """The umask that commands are started with."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def everything(*places: Path) -> list[Path]:
    """These files and folders, and all that is in the folders."""
    return [path for place in places for path in (place, *sorted(place.rglob("*")))]


def open_to_others(paths: Iterable[Path]) -> list[str]:
    return [f"{path.name} {mode(path):o}" for path in paths if mode(path) & 0o077]


@pytest.mark.usefixtures("loose")
def test_commands_write_for_their_user_alone(desk: CliRunner) -> None:
    own = write_pdf(desk.papers / "otters.pdf", OTTERS)
    before = mode(desk.papers), mode(own)
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    assert desk.ingest().code == 0
    assert desk.query(QUESTION).code == 0
    assert len(everything(desk.store)) > 8
    assert open_to_others(everything(desk.store, desk.folder / "ingested.json")) == []
    assert (mode(desk.papers), mode(own)) == before


@pytest.mark.parametrize("loose", [0], indirect=True)
@pytest.mark.usefixtures("loose")
def test_uploads_and_reports_are_for_their_user_alone(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    with Served(desk) as served:
        upload = {"file": ("ice.pdf", write_pdf(desk.folder / "ice.pdf", GLACIERS).read_bytes(), "application/pdf")}
        served.client.post("papers", files=upload).raise_for_status()
        served.client.post("chat", json={"message": QUESTION}).raise_for_status()
        assert (desk.store / "library.sqlite-wal").exists()  # only while it is open
        assert open_to_others(everything(desk.store, desk.papers / "ice.pdf", desk.folder / "ingested.json")) == []
    questions, saved, out = desk.folder / "questions.jsonl", desk.folder / "run.json", desk.folder / "out"
    save(questions, [Question("long", QUESTION, gold=(Gold("ice.pdf", 1),))])
    assert desk.evaluate(str(questions), "--no-answers", "--json", str(saved), "--out", str(out)).code == 0
    assert open_to_others(everything(desk.store, saved, out)) == []


def widen(*places: Path) -> None:
    """As a version that left it to the umask wrote them, or one that set none."""
    for path in everything(*places):
        path.chmod(0o777 if path.is_dir() else 0o666)


@pytest.fixture
def older(desk: CliRunner, two_papers: Path) -> CliRunner:
    """A desk whose store everybody may read and write."""
    shutil.copytree(two_papers / "vectorstore", desk.store)
    shutil.copy(two_papers / "ingested.json", desk.folder)
    made = ("chat_history", "library.sqlite-wal", "writer.lock", "takeover.lock")
    of_people = ("user-2026-01-01.sqlite", "user-2026-01-02.sqlite.new", "user.damaged-20260101T000000.sqlite-wal")
    for name in (*made, *of_people):
        (desk.store / name).touch()
    (desk.store / "takeover").mkdir()
    (desk.store / "evaluations" / "set").mkdir(parents=True)
    (desk.store / "evaluations" / "set" / "library.sqlite").touch()
    widen(desk.store, desk.folder / "ingested.json")
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    return desk


def test_the_next_command_closes_an_open_store(older: CliRunner) -> None:
    assert older.query("--stats").code == 0
    assert open_to_others(everything(older.store, older.folder / "ingested.json")) == []


def test_only_what_folio_wrote_is_closed(older: CliRunner) -> None:
    paper, link = write_pdf(older.store / "otters.pdf", OTTERS), older.store / "vectors-elsewhere"
    link.symlink_to(older.folder / "home")
    untouched = [older.store, paper, older.folder / "home"]
    for path in untouched:
        path.chmod(0o755)
    assert older.query("--stats").code == 0
    assert [mode(path) for path in untouched] == [0o755] * 3
    assert mode(older.store / "library.sqlite") == 0o600
