"""Files of removed papers are deleted after a day, also where a clock is wrong once, and at once if that is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from folio.cli import papers
from folio.ingest import removed
from folio.store import readings
from folio.store.database import Database
from folio.store.readings import MovedFile
from folio.store.sqlite import SqliteDatabase
from tests.helpers.cli_runner import CliRunner

START = datetime(2026, 11, 28, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Clock(datetime):
    """The time as the modules see it."""

    at = START

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return cls.at


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    for module in (removed, readings):
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(Clock, "at", START)
    return Clock


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return SqliteDatabase(tmp_path / "store" / "user.sqlite", "user", create=True)


@pytest.fixture
def remove(tmp_path: Path, database: Database) -> Callable[[str], Path]:
    """Removes a paper as the page does; returns where its file is."""

    def act(name: str) -> Path:
        kept = tmp_path / "papers" / ".removed" / f"{name}.pdf"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(name.encode())
        paper = hashlib.sha256(name.encode()).hexdigest()
        readings.record_removal(
            database, paper, name, [MovedFile(kept.name, str(tmp_path / "papers" / kept.name), str(kept))]
        )
        return kept

    return act


def _titles(database: Database) -> list[str]:
    return [removal.title for removal in readings.all_removals(database)]


def test_a_file_is_deleted_after_its_day(tmp_path: Path, database: Database, remove: Callable[[str], Path]) -> None:
    first = remove("first")
    Clock.at = START + 23 * HOUR
    second = remove("second")
    removed.delete_expired(database, tmp_path / "papers")
    assert (first.exists(), second.exists()) == (True, True)
    Clock.at = START + 25 * HOUR
    assert removed.delete_expired(database, tmp_path / "papers").deleted == 1
    assert (first.exists(), _titles(database)) == (False, ["second"])
    Clock.at = START + 48 * HOUR
    removed.delete_expired(database, tmp_path / "papers")
    assert (second.parent.exists(), _titles(database)) == (False, [])


@pytest.mark.parametrize("ahead", [8 * DAY, 400 * DAY, 26_000 * DAY])
def test_a_clock_that_is_ahead_once_deletes_nothing(
    tmp_path: Path, database: Database, remove: Callable[[str], Path], ahead: timedelta
) -> None:
    folder, first = tmp_path / "papers", remove("first")
    Clock.at = START + HOUR
    removed.delete_expired(database, folder)
    Clock.at = START + ahead
    removed.delete_expired(database, folder)
    second = remove("second")
    removed.delete_expired(database, folder)
    assert (first.exists(), _titles(database)) == (True, ["first", "second"])
    for hours in (2, 3, 5):  # the right time again
        Clock.at = START + hours * HOUR
        removed.delete_expired(database, folder)
        assert (first.exists(), second.exists(), _titles(database)) == (True, True, ["first", "second"])
    Clock.at = START + 25 * HOUR
    removed.delete_expired(database, folder)
    assert (first.exists(), second.exists()) == (False, True)
    Clock.at = START + 27 * HOUR  # a day after its time was found to be in the future
    removed.delete_expired(database, folder)
    assert _titles(database) == []


def test_who_comes_back_after_long_sees_it_deleted_an_hour_later(
    tmp_path: Path, database: Database, remove: Callable[[str], Path]
) -> None:
    folder, first = tmp_path / "papers", remove("first")
    for after, stays in ((60 * DAY, True), (60 * DAY + HOUR / 2, True), (60 * DAY + HOUR, False)):
        Clock.at = START + after
        removed.delete_expired(database, folder)
        assert first.exists() == stays


def test_another_file_of_that_name_stays(tmp_path: Path, database: Database, remove: Callable[[str], Path]) -> None:
    first = remove("first")
    first.write_bytes(b"something else")
    Clock.at = START + 25 * HOUR
    removed.delete_expired(database, tmp_path / "papers")
    assert (first.read_bytes(), _titles(database)) == (b"something else", [])


def test_a_file_outside_of_the_folder_is_never_deleted(tmp_path: Path, database: Database) -> None:
    outside = tmp_path / "elsewhere.pdf"
    outside.write_bytes(b"paper")
    paper = hashlib.sha256(b"paper").hexdigest()
    readings.record_removal(database, paper, "", [MovedFile("elsewhere.pdf", str(outside), str(outside))])
    emptied = removed.empty(database, tmp_path / "papers")
    assert emptied.deleted == 0
    assert emptied.stay == (f"{outside} stays: it lies outside of the folder of papers, and was never moved.",)
    assert outside.exists()
    assert _titles(database) == []


# The command


def test_folio_papers_remove(filled: CliRunner) -> None:
    ran = filled.measure(papers, "remove")
    assert (ran.code, ran.out) == (2, "")
    ran = filled.measure(papers, "remove", "otters")
    assert (ran.code, ran.out) == (0, "otters.pdf: removed from the index; its file is now .removed/otters.pdf.\n")
    assert (filled.papers / ".removed" / "otters.pdf").exists()
    assert [paper["file"] for paper in filled.record()] == ["alps/glaciers.pdf"]
    ran = filled.measure(papers, "remove", "--now")
    assert (ran.code, ran.out) == (0, "Deleted files of removed papers: 1.\n")
    assert not (filled.papers / ".removed").exists()
    assert filled.measure(papers, "remove", "nothing").code == 2
