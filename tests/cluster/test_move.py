"""`folio move`: a library goes into Milvus and back as it is, whole or not at all, and is never changed by it."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

from folio import workers
from folio.app_settings import Place
from folio.cli.doctor import examine
from folio.cluster.collections import Names
from folio.cluster.library_state import read_state
from folio.cluster.milvus_client import Milvus
from folio.commands import ingest, move
from folio.errors import (
    DiskFull,
    IndexDamaged,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreMismatch,
    StoreMissing,
    StoreUnfinished,
    UsageError,
)
from folio.files import disk_full
from folio.ingest.move import Moved
from folio.ingest.move import move as move_library
from folio.paper_metadata import simple_metadata
from folio.store import indexes
from folio.store.library import Library
from folio.store.migrations import STEPS
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.fakes import HashingApp, hashing_app, read_once
from tests.helpers.libraries import ABSENT, READERS, everything, filled
from tests.helpers.milvus import Killed, KilledAt, again, lite_app, milvus_of

QUESTIONS = ("How long is the Aletsch glacier?", "What do sea otters eat?", "How do bees tell where flowers are?")


@pytest.fixture(autouse=True)
def _no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a library on this computer."""
    return filled(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def whole(made: Path) -> dict[str, Any]:
    """All that there is to move."""
    return everything(hashing_app(made, **READERS))


@pytest.fixture
def app(made: Path, tmp_path: Path) -> Iterator[HashingApp]:
    """That library, with an empty Milvus beside it, which STORE names."""
    shutil.copytree(made / "store", tmp_path / "store")
    with lite_app(tmp_path, made / "papers", **READERS) as found:
        yield found


def moved(app: HashingApp, to: Place = "milvus", *, replaces: bool = False) -> Moved:
    with indexes.writing(app.store_folder):
        return app.move(to, lambda *_: None, replaces=replaces)


def run(app: HashingApp, *arguments: str) -> int:
    return move.run(app, move.parser("folio move").parse_args(arguments))


def local(app: HashingApp, folder: Path | None = None) -> HashingApp:
    """The same over the library on this computer, or over another folder."""
    place = folder or app.store_folder
    chosen = {"STORE": "local", "VECTORSTORE_DIR": place, "INGESTED_JSON": place / "ingested.json"}
    if not app.settings.RECORDS_URI:
        chosen["RECORDS_URI"] = str(app.store_folder / "records")
    return HashingApp(app.settings.model_copy(update=chosen), app.notice, app.hashing)


def digests(folder: Path) -> dict[str, str]:
    """The files of a library on this computer, but those that SQLite keeps beside it."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".lock",)]
    kept = [path for path in files if not path.name.endswith(("-wal", "-shm"))]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def answers(app: HashingApp) -> list[Any]:
    """Hits with their scores, and answers, to some questions."""
    found: list[Any] = []
    with closing(app.open_library()) as library:
        retriever = app.retriever(library)
        for question in QUESTIONS:
            hits = retriever.search(question, 6).hits
            found += [(hit.chunk, hit.paper, hit.text, hit.section, round(hit.score, 5)) for hit in hits]
        chat = app.chat(library, top_k=3)
        for question in (*QUESTIONS, "And how thick is its ice?", "What is the mass of the electron?"):
            answer = chat.ask(question).answer
            found += [getattr(answer, field.name) for field in fields(answer) if field.name != "evidence"]
    return found


def test_a_library_goes_there_and_back_as_it_is(app: HashingApp, whole: dict[str, Any], tmp_path: Path) -> None:
    before, asked, embedded = digests(app.store_folder), answers(local(app)), len(app.hashing.passages)
    there = moved(app)
    assert there == Moved(
        papers=3,
        kept=0,
        files=4,
        failures=1,
        pages=6,
        passages=whole["chunk counts"][0],
        fine_passages=0,
        questions=3,
        conversations=1,
        works=2,
    )
    now = digests(app.store_folder)
    assert {path: now[path] for path in before} == before
    assert everything(again(app)) == whole
    assert answers(again(app)) == asked
    assert app.verify() == []

    other = local(app, tmp_path / "other")
    assert moved(other, "local") == there
    assert everything(other) == whole
    assert answers(other) == asked
    assert other.verify() == []
    assert sorted(path.name.partition("-")[0] for path in other.store_folder.iterdir()) == [
        *("computer.sqlite", "ingested.json", "lexical", "library.sqlite", "vectors", "vectors.json", "writer.lock")
    ]
    assert other.record_file.read_text() == app.record_file.read_text()
    assert len(app.hashing.passages) == embedded
    assert sorted(outcome.status for outcome in other.run()) == ["failed", *["unchanged"] * 4]


def test_a_move_does_not_ask_how_papers_would_be_read_now(app: HashingApp, whole: dict[str, Any]) -> None:
    moved(HashingApp(app.settings.model_copy(update={"CHUNK_SIZE": 300, "EMBEDDER": "ollama"}), app.notice))
    assert everything(again(app)) == whole


def test_a_library_that_is_there_is_replaced_only_if_that_is_wanted(app: HashingApp, whole: dict[str, Any]) -> None:
    app.run()  # another one, without what people added
    with closing(app.open_library()) as library:
        library.set_metadata("1" * 64, "person", simple_metadata("Of the old one", origin="person"))
        library.drop(library.files()[0].path)
    old, collections = everything(again(app)), len(milvus_of(app).collections())
    with pytest.raises(UsageError, match=r"^There is a library at .*lite\.db \(folio\) already\.$") as refused:
        run(app, "--to", "milvus")
    assert refused.value.remedy.startswith("Add --yes to replace it, with its log and its conversations;")
    assert everything(again(app)) == old

    served: list[bool] = []

    def look(*_: object) -> None:
        served.append(everything(again(app)) == old)

    with indexes.writing(app.store_folder):
        app.move("milvus", look, replaces=True)
    assert set(served) == {True}
    assert everything(again(app)) == whole
    assert len(milvus_of(app).collections()) == collections + 2  # history and works
    records = app.store_folder / "records"
    assert len([path for path in records.iterdir() if path.is_dir() and path.name != "metadata"]) == 1
    assert ingest.run(again(app), ingest.parser("ingest.py").parse_args(["--repair", "--yes"])) == 0
    assert everything(again(app)) == whole


def test_a_library_on_this_computer_is_replaced_whole(app: HashingApp, whole: dict[str, Any], tmp_path: Path) -> None:
    moved(app)
    other = local(app, tmp_path / "other")
    other.run()
    with closing(other.open_library()) as library:
        library.set_metadata("1" * 64, "person", simple_metadata("Of the old one", origin="person"))
        library.drop(library.files()[0].path)
    with pytest.raises(UsageError, match="already"):
        moved(other, "local")
    moved(other, "local", replaces=True)
    assert everything(other) == whole
    assert other.verify() == []


def test_a_damaged_library_is_set_aside(app: HashingApp, whole: dict[str, Any], tmp_path: Path) -> None:
    moved(app)
    other, said = local(app, tmp_path / "other"), list[str]()
    other.store_folder.mkdir()
    (other.store_folder / "library.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    other = HashingApp(other.settings, said.append, other.hashing)
    with pytest.raises(UsageError, match="already"):
        moved(other, "local")
    moved(other, "local", replaces=True)
    assert everything(other) == whole
    assert len(said) == 1
    assert said[0].startswith("The library that was there could not be used: it was set aside as library.damaged-")


# Interrupted


class EndedAt(KilledAt):
    """Ends before a collection is created or dropped too; by `error` instead of a kill, if one is given."""

    def __init__(self, milvus: Milvus, fatal: int, error: BaseException | None = None) -> None:
        super().__init__(milvus, fatal)
        self._error = error

    def create(self, *arguments: Any) -> None:
        """See Milvus.create."""
        self._step()
        self._milvus.create(*arguments)

    def create_missing(self, *arguments: Any) -> None:
        """See Milvus.create_missing."""
        self._step()
        self._milvus.create_missing(*arguments)

    def drop(self, name: str) -> None:
        """See Milvus.drop."""
        self._step()
        self._milvus.drop(name)

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise self._error or Killed


def move_until(app: HashingApp, fatal: int, error: BaseException | None = None, *, replaces: bool = False) -> Moved:
    """A move that ends at its write to Milvus of this number."""
    target = app.backend_of("milvus")
    target.__dict__["milvus"] = EndedAt(milvus_of(app), fatal, error)
    with indexes.writing(app.store_folder):
        return move_library(app.backend_of("local"), target, app.record_file, lambda *_: None, replaces=replaces)


def brought(app: HashingApp) -> list[tuple[str, int]]:
    """What an interrupted move cannot lose again: its collections, and how many rows these show."""
    milvus = milvus_of(app)
    epoch = read_state(milvus, Names("folio"), "moving").epoch or "none"
    names = sorted(name for name in milvus.collections() if f"_{epoch}_" in name)
    shown = {"papers": ("visible == 1", "id"), "metadata": ('key >= ""', "key")}
    rows = {name: shown[kind] for name in names if (kind := name.rpartition("_")[2]) in shown}
    return [
        (name, len(list(milvus.rows(name, rows[name][0], [rows[name][1]]))) if name in rows else 0) for name in names
    ]


def says(app: HashingApp) -> str:
    """What the place says to someone who asks: nothing there, not finished, or a library."""
    try:
        again(app).open_library().close()
    except StoreMissing:
        return "missing"
    except StoreUnfinished:
        return "unfinished"
    return "whole"


@pytest.mark.slow
@pytest.mark.parametrize("replaces", [False, True])
def test_a_kill_at_any_write_to_milvus_leaves_nothing_half(
    app: HashingApp, whole: dict[str, Any], replaces: bool
) -> None:
    """Each process goes on where the one before was killed, and lives some writes longer until it brings more."""
    if replaces:
        app.run()
    old = identity(app)
    states, fatal, before = [says(app)], 1, brought(app)
    while identity(app) in (old, None):
        with suppress(Killed):
            move_until(app, fatal, replaces=replaces)
        states.append(says(app))
        fatal = fatal + (1 if EXHAUSTIVE else 3 + 4 * replaces) if (now := brought(app)) == before else 1
        before = now
    assert [state for state, _ in groupby(states)] == ["whole" if replaces else "missing", "unfinished", "whole"]
    assert states.count("unfinished") > (0 if replaces else 10)
    assert everything(again(app)) == whole
    assert again(app).verify() == []
    moved(app, replaces=True)  # clears away what was left by a kill after the last step but one
    assert everything(again(app)) == whole
    assert len(milvus_of(app).collections()) == 9
    assert [row["key"] for row in milvus_of(app).rows("folio_store", 'key like "moving%"', ["key"])] == []


def identity(app: HashingApp) -> Any:
    """Another one when another library serves; None if there is none."""
    return read_state(milvus_of(app), Names("folio")).epoch or None


def test_a_place_that_is_not_finished_says_so(app: HashingApp, whole: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(Killed):
        move_until(app, 30)
    sentence = rf"^The move of a library to {re.escape(app.backend.place)} has not ended\.$"
    with pytest.raises(StoreUnfinished, match=sentence) as told:
        again(app).open_library()
    assert told.value.remedy == (
        "Run `python -m folio move --to milvus` again: it goes on where it stopped. Or give it up, and read your PDFs:"
        " `python ingest.py --rebuild --yes`."
    )
    arguments = ingest.parser("ingest.py").parse_args([])
    with pytest.raises(StoreUnfinished, match=sentence):
        ingest.run(again(app), arguments)
    with pytest.raises(StoreUnfinished, match=sentence):
        moved(local(app, tmp_path / "other"), "local")
    (row,) = [row for row in examine(again(app).at_a_glance()) if row.what == "index"]
    assert row.found.endswith("has not ended.")
    given_up = again(app)
    assert ingest.run(given_up, ingest.parser("ingest.py").parse_args(["--rebuild", "--yes"])) == 1  # broken.pdf
    assert [paper.file for paper in everything(again(app))["papers"]] == [paper.file for paper in whole["papers"]]
    moved(app, replaces=True)
    assert everything(again(app)) == whole
    assert len(milvus_of(app).collections()) == 9


def test_a_folder_that_is_not_finished_says_so(
    app: HashingApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(app)
    other = local(app, tmp_path / "other")
    with monkeypatch.context() as patch:
        full_at(patch, 2)
        with pytest.raises(DiskFull):
            moved(other, "local")
    for _ in range(2):
        with pytest.raises(StoreUnfinished, match=r"^The move of a library to .*/other has not ended\.$") as told:
            other.open_library()
        assert "--to local` again" in told.value.remedy
        assert told.value.remedy.endswith("`python ingest.py --rebuild`.")
        with pytest.raises(StoreUnfinished):
            ingest.run(other, ingest.parser("ingest.py").parse_args([]))
    assert ingest.run(other, ingest.parser("ingest.py").parse_args(["--rebuild"])) == 1  # broken.pdf
    assert len(everything(other)["papers"]) == 3


def full_at(patch: pytest.MonkeyPatch, fatal: int) -> None:
    """The disk is full at the paper of this number."""
    count, add = 0, Library.add

    def full(library: Library, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == fatal:
            raise disk_full(library.path.parent)
        add(library, *arguments)

    patch.setattr(Library, "add", full)


def test_a_full_disk_ends_it_and_it_goes_on_later(
    app: HashingApp, whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    moved(app)
    other = local(app, tmp_path / "other")
    with monkeypatch.context() as patch:
        full_at(patch, 3)
        with pytest.raises(DiskFull, match="There is no space left"):
            run(other, "--to", "local")
    assert "Stopped. Papers moved so far: 2 of 3. They are kept; run the same" in shown(capfd)
    assert moved(other, "local").kept == 2
    assert everything(other) == whole


def test_a_server_that_goes_away_ends_it_and_it_goes_on_later(app: HashingApp, whole: dict[str, Any]) -> None:
    gone = StoreError("Milvus does not answer.", "Check MILVUS_URI.")
    for fatal in (3, 12, 30):
        with pytest.raises(StoreError, match="does not answer"):
            move_until(app, fatal, gone)
        assert says(app) in ("missing", "unfinished")
    assert moved(app).kept > 0
    assert everything(again(app)) == whole


def test_another_library_than_the_one_that_was_begun_begins_again(app: HashingApp, made: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        move_until(app, 40)
    other = hashing_app(tmp_path / "larger", PAPERS_DIR=made / "papers", CHUNK_SIZE=200, **READERS)
    other.run()
    chosen = {"VECTORSTORE_DIR": other.store_folder, "RECORDS_URI": str(app.store_folder / "records")}
    with_other = HashingApp(app.settings.model_copy(update={**chosen, "CHUNK_SIZE": 200}), app.notice, app.hashing)
    assert moved(with_other).kept == 0
    assert everything(again(with_other)) == everything(other)
    assert len(milvus_of(app).collections()) == 7  # nobody asked, and nobody described works
    assert len([path for path in (app.store_folder / "records").iterdir() if path.is_dir()]) == 1


# What cannot be moved


def test_there_is_nothing_to_move(tmp_path: Path) -> None:
    app = hashing_app(tmp_path)
    with pytest.raises(StoreMissing, match="There is no index at"):
        run(app, "--to", "milvus")
    with pytest.raises(StoreMissing, match="There is no library at"):
        run(app, "--to", "local")
    app.open_library(create=True).close()
    with pytest.raises(StoreMissing, match=r"^The library at .*/store has no papers to move\.$"):
        run(app, "--to", "milvus")
    assert not (tmp_path / "store" / "cluster.db").exists()


def test_fine_passages_go_with_the_others(made: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"INDEX": "dual", "COARSE_SIZE": 200, "FINE_SIZE": 60, **READERS}
    with lite_app(tmp_path, made / "papers", **settings) as app:
        local(app).run()
        expected, asked = everything(local(app)), answers(local(app))
        assert moved(app).fine_passages == expected["chunk counts"][1] > 0
        assert everything(again(app)) == expected
        assert answers(again(app)) == asked
        other = local(app, tmp_path / "other")
        moved(other, "local")
        assert everything(other) == expected
        assert other.verify() == []


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE papers SET text = replace(text, 'glacier', 'Glacier')",
        "UPDATE vectors SET data = zeroblob(length(data))",
        "UPDATE metadata SET fields = '{}' WHERE source = 'pdf'",
        "UPDATE queries SET answer = 'Another one.'",
        "DELETE FROM vectors",
    ],
)
def test_a_damaged_library_is_not_moved(app: HashingApp, harm: str) -> None:
    with closing(sqlite3.connect(app.store_folder / "library.sqlite")) as database, database:
        database.execute(harm)
    with pytest.raises((StoreDamaged, IndexDamaged)) as told:
        run(app, "--to", "milvus")
    assert told.value.remedy.startswith("Run `python ingest.py --re")
    assert says(app) != "whole"


def test_a_library_of_an_older_version_is_left_as_it_is(app: HashingApp) -> None:
    path = app.store_folder / "library.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"PRAGMA user_version = {len(STEPS) - 1}")
    before = digests(app.store_folder)
    with pytest.raises(StoreMismatch, match="was made by an older version of Folio, and is not changed here"):
        moved(app)
    assert digests(app.store_folder) == before


def test_nobody_else_writes_meanwhile(app: HashingApp) -> None:
    with indexes.writing(app.store_folder), pytest.raises(StoreBusy, match="Another process is writing"):
        run(app, "--to", "milvus")
    assert says(app) == "missing"


def test_a_library_that_another_computer_changes_meanwhile_is_moved_later(
    app: HashingApp, whole: dict[str, Any], tmp_path: Path
) -> None:
    moved(app)
    other = local(app, tmp_path / "other")

    def change(_: str, done: int, of: int) -> None:
        if done == 1:
            with closing(again(app).open_library(create=True)) as library:
                library.set_metadata(ABSENT, "person", simple_metadata("Said later", origin="person"))

    with indexes.writing(other.store_folder), pytest.raises(StoreBusy, match="was changed while it was moved"):
        other.move("local", change, replaces=False)
    with pytest.raises(StoreUnfinished):
        other.open_library()
    assert moved(other, "local").kept == 3
    assert everything(other) == everything(again(app)) != whole


# The command


def test_the_command_says_what_was_moved_and_what_to_set(app: HashingApp, capfd: Any) -> None:
    app = HashingApp(app.settings.model_copy(update={"STORE": "local"}), app.notice, app.hashing)
    assert run(app, "--to", "milvus") == 0
    table, others, end = capfd.readouterr().out.replace("\n\n", "\n").split("\n", 3)[1:]
    assert table.split() == ["moved", "3", "4", "6", "13"]
    assert others == (
        "With them: files that could not be read: 1, questions in the log: 3, conversations: 1, works that services"
        " describe: 2."
    )
    assert re.search(r"s\. The library is now in .*lite\.db \(folio\) too, and was compared\.", end)
    assert "To use it, set STORE=milvus in the environment or in " in end


def test_the_command_wants_to_know_where_to(capsys: Any) -> None:
    for arguments in ([], ["--to", "there"]):
        with pytest.raises(SystemExit) as ended:
            move.main(arguments)
        assert ended.value.code == 2


def shown(capfd: Any) -> str:
    return " ".join(capfd.readouterr().err.split())
