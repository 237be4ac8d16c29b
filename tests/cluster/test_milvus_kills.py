"""Kills at writes of an ingest, a replacement, a removal, a rebuild, a repair and an edit: campaign/milvus_kills.py."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

from campaign.milvus_kills import CHANGES, Seen, agrees, app_of, fatal, first_papers, left_over, seen
from folio import workers
from folio.cluster.collections import Names
from folio.cluster.milvus_client import Milvus
from tests.helpers.fakes import HashingApp, read_once
from tests.helpers.milvus import Killed, release

# Kills of each change, evenly over its writes; EXHAUSTIVE=1 has one at each
KILLS = 2


class Desk:
    """A folder with a library, as it is before a change again and again."""

    def __init__(self, folder: Path) -> None:
        self._base, self.folder = folder / "base", folder / "desk"
        first_papers(self.folder)
        self.app().run()
        self.before = seen(self.app())
        self.close()
        shutil.copytree(self.folder, self._base)

    def app(self) -> HashingApp:
        return app_of(self.folder, str(self.folder / "lite.db"))

    def begin(self) -> None:
        self.close()
        shutil.rmtree(self.folder)
        shutil.copytree(self._base, self.folder)

    def close(self) -> None:
        release(self.folder / "lite.db")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)  # app_of does, too
        made = Desk(tmp_path_factory.mktemp("kills"))
        yield made
        made.close()


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_kill_tears_nothing_and_the_next_run_goes_on(desk: Desk, change: str) -> None:
    desk.begin()
    app = desk.app()
    writes = fatal(app, lambda: None, 0)
    CHANGES[change](app)
    after = seen(desk.app())
    assert left_over(desk.app()) == []
    most = writes["writes"]
    assert most > KILLS
    kills = range(1, most + 1) if os.environ.get("EXHAUSTIVE") else {1 + n * (most - 1) // KILLS for n in range(KILLS)}
    states: list[Seen] = [desk.before, after]
    for at in kills:
        desk.begin()
        app = desk.app()
        fatal(app, _killed, at)
        with pytest.raises(Killed):
            CHANGES[change](app)
        found = seen(desk.app())
        assert any(agrees(found, state) for state in states), (at, found)
        CHANGES[change](desk.app())
        assert seen(desk.app()) == after, at
        assert left_over(desk.app()) == [], at


def _killed() -> None:
    raise Killed


def test_index_files_of_milvus_lite_that_were_cut_short_are_made_again(desk: Desk) -> None:
    desk.begin()
    cut = [file for file in desk.folder.rglob("indexes/*") if file.is_file()]
    assert {"".join(file.suffixes[-2:]) for file in cut} >= {".hnsw.idx", ".flat.idx", ".inverted.sidx"}
    for number, file in enumerate(cut):
        os.truncate(file, file.stat().st_size * (number % 3) // 3)
    assert seen(desk.app()) == desk.before


def test_rows_of_milvus_lite_are_there_once_after_a_kill_between_their_writing_and_the_end_of_their_log(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.begin()
    flush = Milvus.flush
    logs: dict[Path, bytes] = {}

    def noted(self: Milvus, name: str) -> None:
        logs.update({log: log.read_bytes() for log in desk.folder.rglob(f"{name}/wal/*.arrow")})
        flush(self, name)

    monkeypatch.setattr(Milvus, "flush", noted)
    CHANGES["ingest"](desk.app())
    after = seen(desk.app())
    desk.close()
    assert {log.parents[1].name.rpartition("_")[2] for log in logs} >= {"chunks", "papers", "pages", "structure"}
    for log, content in logs.items():
        assert not log.exists()
        log.write_bytes(content)
    assert seen(desk.app()) == after
    assert left_over(desk.app()) == []


def test_collections_of_milvus_lite_whose_creation_was_cut_off_are_created(tmp_path: Path) -> None:
    first_papers(tmp_path)
    for name in Names("folio").shared():
        (tmp_path / "lite.db" / "collections" / name).mkdir(parents=True)
    app = app_of(tmp_path, str(tmp_path / "lite.db"))
    assert {outcome.status for outcome in app.run()} == {"added"}
    release(tmp_path / "lite.db")
