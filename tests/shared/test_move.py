"""A library is moved into PostgreSQL and back, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from folio.app import Place
from folio.errors import StoreMissing, UsageError
from folio.shared.store import SharedLibrary
from folio.store.conversations import Turn
from folio.system import workers
from tests.helpers.cli_runner import CliRunner
from tests.helpers.engines import rows_of
from tests.helpers.fakes import HashingApp, read_once
from tests.helpers.forks import forks_of
from tests.helpers.kill_move import app_of, move
from tests.helpers.libraries import awkward_papers, fill
from tests.helpers.paths import ROOT

OTHER: dict[Place, Place] = {"local": "postgres", "postgres": "local"}
PLACES: list[Any] = ["postgres", "local"]
QUESTIONS = ("How long is the Aletsch glacier?", "otters asleep", "the angle of the sun")


@pytest.fixture
def filled(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., HashingApp]:
    """Makes a library in a place, with something of everything in it; returns the tool over it."""
    monkeypatch.setattr(workers, "run_guarded", read_once)

    def made(place: Place, **settings: Any) -> HashingApp:
        awkward_papers(tmp_path / "papers")
        return fill(replace(app_of(tmp_path, url, STORE=place, **settings), notice=lambda text: None))

    return made


def at(app: HashingApp, place: Place) -> HashingApp:
    """The same tool over the other place."""
    return replace(app, settings=app.settings.model_copy(update={"STORE": place}))


def rows(app: HashingApp) -> dict[str, list[Any]]:
    with closing(app.open_library()) as library:
        assert library.check() == []
        return rows_of(library.database)


def hits(app: HashingApp) -> list[list[tuple[str, int, float, str]]]:
    with closing(app.open_library()) as library:
        retriever = app.retriever(library)
        found = [retriever.search(question, 5).hits for question in QUESTIONS]
        return [[(hit.paper.label, hit.chunk.id, hit.score, hit.text) for hit in each] for each in found]


def turns(app: HashingApp) -> list[tuple[Turn, ...]]:
    with closing(app.open_library()) as library, closing(app.conversations()) as conversations:
        return [conversations.turns(each.id, library) for each in conversations.summaries()]


@pytest.mark.parametrize("to", PLACES)
@pytest.mark.parametrize(
    "settings", [{}, {"INDEX": "dual", "COARSE_SIZE": 200, "FINE_SIZE": 60}], ids=["plain", "dual"]
)
def test_everything_is_moved(filled: Callable[..., HashingApp], to: Place, settings: dict[str, Any]) -> None:
    app = filled(OTHER[to], **settings)
    before, found, said = rows(app), hits(app), turns(app)
    moved = move(app, to)
    new = at(app, to)
    assert rows(new) == before == rows(app)
    assert hits(new) == found
    assert turns(new) == said
    assert (moved.papers, moved.files, moved.questions, moved.conversations, moved.works) == (3, 4, 4, 1, 2)
    with closing(app.open_library()) as old, closing(new.open_library()) as other:
        with old.reading() as one, other.reading() as two:
            assert one.epoch != two.epoch
            assert one.generation == two.generation
        if isinstance(other, SharedLibrary):
            kept = {paper for (paper,) in other._query("SELECT DISTINCT paper FROM pdfs")}
            assert kept == set(other.added())
    assert [outcome.status for outcome in new.run()].count("unchanged") == 4  # nothing is read or embedded again
    back = move(new, OTHER[to], replaces=True)
    assert back == moved
    assert rows(app) == rows(new)


def test_a_place_that_is_taken_is_not_replaced_unasked(filled: Callable[..., HashingApp], url: str) -> None:
    app = filled("local")
    move(app, "postgres")
    server = at(app, "postgres")
    with closing(server.open_library()) as library:
        library.drop(library.files()[0].path)
    before = rows(server)
    with pytest.raises(UsageError, match="There is a library in the database"):
        move(app, "postgres")
    assert rows(server) == before
    move(app, "postgres", replaces=True)
    assert rows(server) == rows(app)
    with psycopg.connect(url) as connection:  # the one before is gone
        assert connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'folio%'").fetchall() == [(2,)]


@pytest.mark.parametrize("to", PLACES)
def test_nothing_is_moved_from_an_empty_place(tmp_path: Path, url: str, to: Place) -> None:
    app = app_of(tmp_path, url)
    with pytest.raises(StoreMissing):
        move(app, to)
    at(app, OTHER[to]).backend.open(create=True).close()
    with pytest.raises(StoreMissing, match="has no papers to move"):
        move(app, to)
    assert not at(app, to).has_library()


@pytest.mark.parametrize("to", PLACES)
def test_a_killed_move_leaves_both_places_as_they_were(
    filled: Callable[..., HashingApp], tmp_path: Path, url: str, to: Place
) -> None:
    app = filled(OTHER[to])
    before, found = rows(app), hits(app)
    new = at(app, to)
    step, steps = 1, 0
    while True:
        code, out = forks_of("tests.helpers.kill_move").run(to, tmp_path, url, step)
        if code == 0:  # it has fewer steps
            break
        assert code == -9, out
        steps += 1
        assert rows(app) == before
        if new.has_library():  # what was made for the move has nothing in it, or it has been done
            is_empty = not any(rows(new)[table] for table in ("papers", "queries", "turns", "works"))
            assert is_empty or rows(new) == before
            if not is_empty:
                break
        step *= 2
    assert steps >= 5
    if not new.has_library() or rows(new) != before:
        move(app, to)
    assert rows(new) == before
    assert hits(new) == found
    if isinstance(library := new.open_library(), SharedLibrary):
        assert {paper for (paper,) in library._query("SELECT DISTINCT paper FROM pdfs")} == set(library.added())
    library.close()


def test_the_command(desk: CliRunner, url: str) -> None:
    awkward_papers(desk.papers)
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    desk.ingest()
    command = [sys.executable, "-m", "folio", "move", "--to"]

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        environment = {**desk.environment(), "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "", **settings}
        environment |= {name: os.environ[name] for name in ("VIRTUAL_ENV",) if name in os.environ}
        return subprocess.run(
            [*command, *arguments], cwd=desk.folder, env=environment, capture_output=True, text=True, check=False
        )

    without = run("postgres")
    assert (without.returncode, without.stdout) == (2, "")
    assert "DATABASE_URL is not set" in without.stderr
    done = run("postgres", DATABASE_URL=url)
    assert done.returncode == 0, done.stderr
    assert "Copied, and compared row by row: papers: 3, files: 4" in " ".join(done.stdout.split())
    again = run("postgres", DATABASE_URL=url)
    assert again.returncode == 2
    assert "Add --yes to replace it" in " ".join(again.stderr.split())
    assert "Traceback" not in again.stderr
    assert run("postgres", "--yes", DATABASE_URL=url).returncode == 0
    back = run("local", "--yes", DATABASE_URL=url, STORE="postgres")
    assert back.returncode == 0, back.stderr
