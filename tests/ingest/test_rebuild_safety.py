"""A rebuild where something other than damage is in its way: the library that was there stays, and serves."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from folio.errors import DiskFull, FolioError, StoreBusy, StoreDamaged, StoreError, StoreMismatch, StoreProtected
from folio.papers.model import Vectors
from folio.store import replacing, sqlite
from folio.store.check import LibraryCheck
from folio.store.database import LIBRARY_VERSION
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.store.user_file import set_aside, user_file_of
from folio.system import workers
from tests.helpers.damage import tamper
from tests.helpers.exhaustive import EXHAUSTIVE, sample
from tests.helpers.fakes import LINES, HashingApp, HashingEmbedder, hashing_app, make_pdf, overwrite, read_once
from tests.helpers.libraries import ENTRY
from tests.helpers.permissions import read_only
from tests.helpers.sqlite_faults import KINDS, sqlite_faults

PAPERS, QUESTIONS = 8, 40
LIBRARY = "library.sqlite"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with papers, a store of them in `base`, and a log of questions."""
    folder = tmp_path_factory.mktemp("sound")
    for subject in LINES:
        for number in range(PAPERS // len(LINES)):
            make_pdf(folder / "papers" / f"{subject}{number}.pdf", subject, change=f"Number {number} is another.")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        app = hashing_app(folder / "base", PAPERS_DIR=folder / "papers", LLM="builtin")
        app.run()
    with closing(app.open_library()) as library:
        for _ in range(QUESTIONS):
            QueryLog(library.database).add(ENTRY)
    return folder


@pytest.fixture(autouse=True)
def _reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


@dataclass
class Place:
    """A copy of the store, somewhere."""

    sound: Path
    folder: Path
    notices: list[str] = field(default_factory=list)

    @property
    def library(self) -> Path:
        return self.folder / "store" / LIBRARY

    def app(self, embedder: HashingEmbedder | None = None) -> HashingApp:
        settings = hashing_app(self.folder, PAPERS_DIR=self.sound / "papers", LLM="builtin").settings
        return HashingApp(settings, self.notices.append, embedder or HashingEmbedder())

    def restart(self) -> None:
        """Make it hold the sound store, and nothing else."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.sound / "base", self.folder, dirs_exist_ok=True)
        self.notices.clear()

    def rebuild(self, embedder: HashingEmbedder | None = None) -> FolioError | None:
        """Returns the error that a person would see."""
        try:
            self.app(embedder).run(rebuild=True)
        except FolioError as error:
            return error
        return None

    def require_sound(self) -> None:
        """No file was set aside; the library answers, has all that was in it, and verifies."""
        assert set_aside(self.library) == set_aside(user_file_of(self.library)) == []
        assert not [said for said in self.notices if "damaged" in said]
        with closing(Library(self.library)) as library:
            assert len(library.papers()) == PAPERS
            assert library.database.query("SELECT count(*) FROM queries") == [(QUESTIONS,)]
            assert library.check() == []
            hits = self.app().retriever(library).search("the shortest vector of a lattice", 1).hits
            assert hits[0].paper.file.startswith("lattices")

    def require_rebuilt(self) -> None:
        """A rebuild with nothing in its way ends well."""
        assert self.rebuild() is None
        self.require_sound()
        assert self.app().verify() == []
        assert not self.library.with_name(replacing.UNFINISHED).exists()


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Place:
    made = Place(sound, tmp_path)
    made.restart()
    return made


class SmallDisk(Place):
    """The same on a disk of its own."""

    def leave(self, free: int | None) -> None:
        """Leave so many bytes of space; None for plenty."""
        room = os.statvfs(self.folder)
        used = (room.f_blocks - room.f_bfree) * room.f_frsize
        size = 2**26 if free is None else used + free
        subprocess.run(["mount", "-o", f"remount,size={size}", self.folder], check=True)


@pytest.fixture
def small_disk(sound: Path, tmp_path: Path) -> Iterator[SmallDisk]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs Linux and root")
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(tmp_path)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(sound, tmp_path)
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


def _sizes(sound: Path, count: int) -> list[int]:
    """Bytes of free space, from none to what every rebuild has enough of."""
    most = 14 * (sound / "base" / "store" / LIBRARY).stat().st_size
    return [most * step // (count - 1) for step in range(count)]


def test_a_small_disk_is_no_damage(small_disk: SmallDisk, sound: Path) -> None:
    ended: list[str] = []
    for free in _sizes(sound, 60 if EXHAUSTIVE else 8):
        small_disk.leave(None)
        small_disk.restart()
        small_disk.leave(free)
        error = small_disk.rebuild()
        ended.append(type(error).__name__)
        small_disk.leave(None)
        small_disk.require_sound()
    assert set(ended) == {"DiskFull", "NoneType"}
    assert ended == sorted(ended)  # less space never helps
    small_disk.require_rebuilt()


def test_a_damaged_library_on_a_small_disk_stays_until_replaced(small_disk: SmallDisk, sound: Path) -> None:
    small_disk.leave(None)
    ended: list[str] = []
    for free in _sizes(sound, 6):
        small_disk.leave(None)
        small_disk.restart()
        tamper(small_disk.library, "DROP TABLE vectors")
        damaged = small_disk.library.read_bytes()
        small_disk.leave(free)
        error = small_disk.rebuild()
        ended.append(type(error).__name__)
        small_disk.leave(None)
        if error is not None and not set_aside(small_disk.library):
            assert small_disk.library.read_bytes() == damaged
            assert small_disk.rebuild() is None
        assert len(set_aside(small_disk.library)) == 1
        assert len(small_disk.notices) == 1
        set_aside(small_disk.library)[0].unlink()
        small_disk.notices.clear()
        small_disk.require_rebuilt()
    assert "NoneType" in ended
    assert len(set(ended)) > 1


class _Holder(HashingEmbedder):
    """Another program takes the library for itself when the first passages are embedded."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.held: sqlite3.Connection | None = None

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if self.held is None:
            self.held = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self.held.execute("PRAGMA locking_mode = EXCLUSIVE")
            self.held.execute("BEGIN EXCLUSIVE")
            self.held.execute("UPDATE meta SET value = value")
        return super().embed_passages(texts)


def test_a_busy_library_is_no_damage(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.1)
    for _ in range(3):  # the second and third continue what the first has begun
        holder = _Holder(place.library)
        if place.library.with_name(replacing.UNFINISHED).exists():
            holder.embed_passages(["nothing is left to embed"])
        error = place.rebuild(holder)
        assert isinstance(error, StoreBusy)
        assert holder.held is not None
        holder.held.close()
        place.require_sound()
    place.require_rebuilt()


@pytest.mark.parametrize("kind", KINDS)
def test_a_failing_system_call_is_no_damage(place: Place, kind: str) -> None:
    with sqlite_faults(kind) as counted:
        assert place.rebuild() is None
    assert counted.made
    failed = 0
    for step in np.linspace(0, counted.made - 1, 40 if EXHAUSTIVE else 3).astype(int).tolist():
        for failing in (1, 10**9):  # a single one, or all from then on
            place.restart()
            with sqlite_faults(kind, step, failing):
                error = place.rebuild()
            # SQLite itself takes a page of the schema that it did not get for a damaged one.
            assert not isinstance(error, StoreDamaged) or kind == "read", error
            failed += error is not None
            place.require_sound()
    assert failed or kind in ("cut", "open")  # after these SQLite sometimes goes on
    place.require_rebuilt()


def test_a_check_that_cannot_read_a_page_finds_no_fault(place: Place) -> None:
    with closing(Library(place.library)) as library, sqlite_faults("read") as counted:
        assert LibraryCheck(library.database).structure() == []
    said: list[StoreError] = []
    steps = sample(range(counted.made))
    for step in steps:
        with closing(Library(place.library)) as library, sqlite_faults("read", step, 1):
            try:
                assert LibraryCheck(library.database).structure() == []
            except StoreError as error:
                said.append(error)
    assert len(said) > len(steps) / 2
    assert {type(error) for error in said} == {StoreError}
    assert all("cannot be used now" in error.happened for error in said)


@pytest.mark.parametrize(
    ("statements", "happened"),
    [
        (("CREATE TABLE later (id INTEGER)", f"PRAGMA user_version = {LIBRARY_VERSION + 1}"), "newer version"),
        (None, "not written by Folio"),
    ],
    ids=["a newer version's", "another program's"],
)
def test_a_library_that_is_not_ours_is_refused_and_stays(
    place: Place, statements: tuple[str, ...] | None, happened: str
) -> None:
    if statements is None:
        place.library.unlink()
    tamper(place.library, *(statements or ["CREATE TABLE recipes (id INTEGER)"]))
    before = place.library.read_bytes()
    error = place.rebuild()
    assert isinstance(error, StoreMismatch)
    assert happened in error.happened
    assert place.library.read_bytes() == before
    assert set_aside(place.library) == []


def test_a_damaged_version_number_is_damage(place: Place) -> None:
    for number in (0, 1, LIBRARY_VERSION - 1, LIBRARY_VERSION + 1, 2**30, -5):
        tamper(place.library, f"PRAGMA user_version = {number}")
        with pytest.raises(StoreDamaged, match="its version is said to be"):
            Library(place.library)
    assert place.rebuild() is None
    assert len(place.notices) == len(set_aside(place.library)) == 1
    set_aside(place.library)[0].unlink()
    place.notices.clear()
    place.require_rebuilt()


@pytest.mark.parametrize("damaged", [lambda old: os.urandom(8192), lambda old: old[:5000], lambda old: old[: -(2**15)]])
def test_a_torn_library_is_damaged(place: Place, damaged: Callable[[bytes], bytes]) -> None:
    overwrite(place.library, damaged(place.library.read_bytes()))
    assert replacing.read_if_sound(place.library, replacing.sound_files) is None
    assert place.rebuild() is None
    assert len(set_aside(place.library)) == 1


def test_a_folder_in_its_place_is_no_damage(place: Place) -> None:
    place.library.unlink()
    place.library.mkdir()
    error = place.rebuild()
    assert isinstance(error, StoreError)
    assert "cannot be used now" in error.happened
    assert place.library.is_dir()


def test_a_library_that_may_not_be_read_is_no_damage(place: Place) -> None:
    with read_only(place.library.parent):
        place.library.chmod(0)
        error = place.rebuild()
        place.library.chmod(0o600)
    assert type(error) is StoreProtected
    place.require_sound()


def test_a_closed_connection_is_no_damage(place: Place) -> None:
    library = Library(place.library)
    library.close()
    with pytest.raises(StoreError) as caught:
        library.papers()
    assert type(caught.value) is StoreError


def test_a_library_takes_a_place_with_its_whole_log(place: Place) -> None:
    """A reader of the new library keeps its log from being merged: nothing is renamed then."""
    new = place.library.with_name(replacing.UNFINISHED)
    shutil.copy(place.library, new)
    before = place.library.read_bytes()
    with closing(sqlite3.connect(new, isolation_level=None)) as reader, closing(Library(new)) as writer:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM meta").fetchall()
        writer.database.execute("UPDATE meta SET value = 'later' WHERE key = 'epoch'")
        writer.database.execute("PRAGMA busy_timeout = 0")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.1)
            with pytest.raises((StoreBusy, DiskFull)):
                replacing.take_place(place.library, new)
    assert place.library.read_bytes() == before
    replacing.take_place(place.library, new)
    with closing(sqlite3.connect(place.library)) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone() == ("later",)
    assert not any(new.with_name(new.name + suffix).exists() for suffix in ("-wal", "-shm", ""))
