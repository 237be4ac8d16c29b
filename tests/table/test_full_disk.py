"""A table that is filled until the disk is full, on SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from folio.errors import DiskFull
from folio.store import sqlite, tables
from folio.store.tables import Fill, TableCell, TableColumn
from folio.table.filling import Filler, Landed
from folio.table.scope import Scope, new_table
from tests.helpers.sqlite_faults import sqlite_faults
from tests.helpers.table_finder import WordFinder
from tests.helpers.web_client import small_app

COLUMNS = [TableColumn("1" * 16, "Kelp"), TableColumn("2" * 16, "Length"), TableColumn("3" * 16, "Otters")]


def test_on_a_full_disk_each_cell_is_whole_or_waits_and_filling_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = small_app(tmp_path)
    with closing(app.open_library()) as library:
        id = new_table(library, Scope(), COLUMNS)
    filler = Filler(app.open_library, WordFinder)

    def fill(landed: list[Landed]) -> None:
        filling = filler.begin(Fill(id))
        assert filling is not None
        filler.run(filling, landed.append)

    def cells() -> Mapping[tuple[str, str], TableCell]:
        with closing(app.open_library()) as library:
            stored = tables.read(library.database, id).cells
        return {place: replace(cell, changed=0) for place, cell in stored.items() if cell.state != "waiting"}

    with sqlite_faults("space") as writes:
        fill([])
    whole = cells()
    assert {cell.state for cell in whole.values()} == {"found", "not_found"}
    seen = set()
    is_full, errors = True, list[DiskFull]()
    for first in count(0, writes.made // 10):
        with closing(app.open_library()) as library:
            tables.ask_again(library.database, id, list(whole))
        landed: list[Landed] = []
        with monkeypatch.context() as patch, sqlite_faults("space", first, failing=10**6):
            patch.setattr(sqlite, "SIDE_FILES", 10**18)  # by the space that is left, Folio tells what has failed
            try:
                fill(landed)
                is_full = False
            except DiskFull as raised:
                errors.append(raised)
        left = cells()
        assert left == {place: whole[place] for place in left}
        assert left.keys() == {(each.column.id, each.paper.id) for each in landed}
        seen.add(len(left))
        if not is_full:
            break
        filler.stop(id)  # it could not say that it has ended
        fill([])
        assert cells() == whole
    assert {0, len(whole)} < seen
    for error in errors:
        assert "no space left on the disk" in error.happened
        assert error.remedy.startswith("Free some space and run the same command again")
    assert app.verify() == []
