"""The chunks of a library by grain: passages, and the fine passages that lie in them (INDEX=dual)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from folio.store import rows
from folio.store.database import Database
from folio.types import Chunk, Grain

# Which chunks are of a grain, and the row of the table meta with their number
ONLY: dict[Grain, str] = {"passage": "parent IS NULL", "fine": "parent IS NOT NULL"}
_COUNTED: dict[Grain, str] = {"passage": "chunks", "fine": "fine"}


def recorded_count(database: Database, grain: Grain) -> int:
    """How many chunks of a grain there are, as it was recorded when they were written."""
    (count,) = database.read(int, "SELECT value FROM meta WHERE key = :key", key=_COUNTED[grain]) or [-1]
    return count


def change_counts(database: Database, paper: str, sign: int) -> None:
    """Add the numbers of a paper's chunks, times `sign`, to the recorded counts."""
    for grain, key in _COUNTED.items():
        sql = f"SELECT count(*) FROM chunks WHERE paper = :paper AND {ONLY[grain]}"
        change = sign * database.query(sql, paper=paper)[0][0]
        database.execute("UPDATE meta SET value = value + :change WHERE key = :key", change=change, key=key)


def ids_in(database: Database, passages: Sequence[int]) -> list[int]:
    """The ids of the fine passages in these passages."""
    sql = "SELECT id FROM chunks WHERE parent IN (SELECT value FROM json_each(:ids))"
    return database.read(rows.number, sql, ids=json.dumps(list(passages)))


def read_in(database: Database, passages: Mapping[int, Chunk]) -> dict[int, list[Chunk]]:
    """The fine passages in each of these passages, in the order of the text.

    Raises StoreDamaged if one does not lie in its passage.
    """
    found: dict[int, list[Chunk]] = {}
    for id, passage in passages.items():
        read = database.read(rows.chunk, f"{rows.SELECT_CHUNKS} WHERE parent = :id ORDER BY start", id=id)
        found[id] = [chunk for chunk, _ in read]
        if not all(_lies_in(chunk, passage) for chunk in found[id]):
            raise database.damaged("a fine passage lies outside its passage")
    return found


def _lies_in(fine: Chunk, passage: Chunk) -> bool:
    return fine.paper_id == passage.paper_id and passage.start <= fine.start and fine.end <= passage.end
