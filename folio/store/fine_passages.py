"""The chunks of a library by grain: passages, and the fine passages within them (INDEX=dual)."""

from __future__ import annotations

from collections.abc import Mapping

from folio.store import rows
from folio.store.database import Database
from folio.types import Chunk, Grain

# Grain -> the condition on its chunks, and the key in the table meta of their number
ONLY: dict[Grain, str] = {"passage": "parent IS NULL", "fine": "parent IS NOT NULL"}
COUNTED: dict[Grain, str] = {"passage": "chunks", "fine": "fine"}


def increase(database: Database, key: str, change: int = 1, table: str = "meta") -> None:
    """Add to a number in the table `meta` or `kept`. The caller has a transaction."""
    number = "CAST(CAST(value AS BIGINT) + :change AS TEXT)"
    database.execute(f"UPDATE {table} SET value = {number} WHERE key = :key", change=change, key=key)


def change_counts(database: Database, paper: str, sign: int) -> None:
    """Add the numbers of a paper's chunks, times `sign`, to the recorded counts."""
    for grain, key in COUNTED.items():
        sql = f"SELECT count(*) FROM chunks WHERE paper = :paper AND {ONLY[grain]}"
        increase(database, key, sign * database.query(sql, paper=paper)[0][0])


def read_in(database: Database, passages: Mapping[int, Chunk]) -> dict[int, list[Chunk]]:
    """The fine passages in each of these passages, in the order of the text.

    Raises StoreDamaged if one is not within its passage.
    """
    fine: dict[int, list[Chunk]] = {id: [] for id in passages}
    among = "parent IN (SELECT value FROM json_each(:ids))"
    sql = f"SELECT {rows.CHUNK_COLUMNS} FROM chunks WHERE {among} ORDER BY start, id"
    for chunk, _ in database.read(rows.chunk, sql, ids=list(passages)):
        assert chunk.parent is not None
        passage = passages[chunk.parent]
        if chunk.paper_id != passage.paper_id or not passage.start <= chunk.start <= chunk.end <= passage.end:
            raise database.damaged("a fine passage lies outside its passage")
        fine[chunk.parent].append(chunk)
    return fine
