"""A move from one folder to another: the same code moves a library out of Milvus (tests/cluster/test_move.py)."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from folio import workers
from folio.errors import StoreMismatch, StoreMissing, StoreUnfinished, UsageError
from folio.ingest.move import Moved, move
from folio.store import indexes
from folio.store.database import Database
from folio.store.library import Library
from folio.store.migrations import STEPS
from tests.helpers.exhaustive import sample
from tests.helpers.fakes import HashingApp, hashing_app, read_once
from tests.helpers.libraries import READERS, everything, filled
from tests.helpers.milvus import Killed


@pytest.fixture(autouse=True)
def _no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a library."""
    return filled(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def whole(made: Path) -> dict[str, Any]:
    """All that there is to move."""
    return everything(hashing_app(made, **READERS))


def bring(source: HashingApp, target: HashingApp, *, replaces: bool = False) -> Moved:
    backends = source.backend_of("local"), target.backend_of("local")
    with indexes.writing(target.store_folder):
        return move(*backends, target.record_file, lambda *_: None, replaces=replaces)


def test_a_library_comes_into_a_folder_that_is_not_there(made: Path, whole: dict[str, Any], tmp_path: Path) -> None:
    target = hashing_app(tmp_path / "new", **READERS)
    assert bring(hashing_app(made), target).papers == 3
    assert everything(target) == whole
    assert target.verify() == []
    with pytest.raises(UsageError, match="There is a library at"):
        bring(hashing_app(made), target)


def test_fine_passages_go_with_the_others(made: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"INDEX": "dual", "COARSE_SIZE": 200, "FINE_SIZE": 60, "PAPERS_DIR": made / "papers"}
    source, target = (hashing_app(tmp_path / name, **settings) for name in ("old", "new"))
    source.run()
    assert bring(source, target).fine_passages == everything(source)["chunk counts"][1] > 0
    assert everything(target) == everything(source)
    assert target.verify() == []


class Steps:
    """Ends the process before its write step of a number: a transaction, its end, another statement, a rename."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.fatal = self.count = 0
        transaction, execute, rename = Database.transaction, Database.execute, os.replace

        @contextmanager
        def stepped(database: Database) -> Iterator[None]:
            self.step()
            with transaction(database):
                yield
                self.step()

        def executed(database: Database, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
            if sql.startswith(("INSERT", "UPDATE", "DELETE")) and not database._sqlite.in_transaction:
                self.step()
            return execute(database, sql, **values)

        def renamed(old: Any, new: Any) -> None:
            self.step()
            rename(old, new)

        patch.setattr(Database, "transaction", stepped)
        patch.setattr(Database, "execute", executed)
        patch.setattr(os, "replace", renamed)

    def step(self) -> None:
        self.count += 1
        if self.count == self.fatal:
            raise Killed


def says(app: HashingApp) -> str:
    """What the folder says to someone who asks."""
    try:
        app.open_library().close()
    except StoreMissing:
        return "missing"
    except StoreUnfinished:
        return "unfinished"
    return "whole"


@pytest.mark.parametrize("replaces", [False, True])
def test_a_kill_at_any_step_of_a_move_to_a_folder_leaves_nothing_half(
    made: Path, whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaces: bool
) -> None:
    source = hashing_app(made, **READERS)
    before: dict[str, Any] = {}
    if replaces:
        old = hashing_app(tmp_path / "old", PAPERS_DIR=made / "papers")
        old.run()
        before = everything(old)

    def into(name: str) -> HashingApp:
        if replaces:
            shutil.copytree(tmp_path / "old", tmp_path / name)
        (tmp_path / name).mkdir(exist_ok=True)
        return hashing_app(tmp_path / name, **READERS)

    steps = Steps(monkeypatch)
    bring(source, into("counted"), replaces=replaces)
    states = []
    for fatal in sample(range(1, steps.count + 1), 3):
        target = into(str(fatal))
        steps.count, steps.fatal = 0, fatal
        with pytest.raises(Killed):
            bring(source, target, replaces=replaces)
        steps.fatal = 0
        states.append(says(target))
        if states[-1] == "whole":  # still the one that is to be replaced
            assert everything(target) == before
        bring(source, target, replaces=replaces)
        assert everything(target) == whole
        assert target.verify() == []
        assert not (target.store_folder / "move.sqlite").exists()
        assert target.record_file.read_text() == (tmp_path / "counted" / "ingested.json").read_text()
    assert len(states) > 5
    assert "unfinished" in states


def test_a_library_that_is_only_read_is_not_changed(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite"
    shutil.copy(made / "store" / "library.sqlite", path)
    before = path.read_bytes()
    with closing(Library(path, only_read=True)) as library:
        assert len(library.papers()) == 3
        with pytest.raises(sqlite3.OperationalError), library.database._sqlite:
            library.database._sqlite.execute("DELETE FROM files")
    assert path.read_bytes() == before
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"PRAGMA user_version = {len(STEPS) - 1}")
    before = path.read_bytes()
    with pytest.raises(StoreMismatch, match="older version of Folio, and is not changed here") as told:
        Library(path, only_read=True)
    assert told.value.remedy.startswith("Run `python ingest.py --verify` first, which updates it;")
    assert path.read_bytes() == before
