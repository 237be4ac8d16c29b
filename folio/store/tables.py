"""Evidence tables: papers by questions, with a cell for each, in the tables `evidence_tables` and `table_*`.

A cell has quotes of its paper, or a person's text, or both. Each quote keeps its words and the characters around them,
as those of notes do, so that it is found again when the text of the paper changes (table_places.py). Rows and cells
stay when their paper is removed.

A program that asks cells says so in `table_fills`, for a few seconds at a time: if it is killed, that is soon known.
Every change in a table increases its number `changes`, with which a client asks what has changed since.

As in rows.py, a row that has changed since it was written raises ValueError.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from folio.errors import ChangedElsewhere, NotKnown, UsageError
from folio.shown_text import counted
from folio.store import rows
from folio.store.database import COLUMNS, Database, UserDataChanged, storable
from folio.store.notes import NoteQuote, State
from folio.text import one_line, shorten

MAX_COLUMNS, MAX_ROWS = 50, 10_000
# Seconds for which a program says that it asks, and after which it says so again
FILLING_S, RENEW_S = 9, 2
CellState = Literal["waiting", "found", "not_found", "failed"]
_ID_BYTES = 8
TABLE_COLUMNS = "id, name, scope, follows, resumes, problem, changes, shape, created, updated, crc"
COLUMN_COLUMNS = "id, table_id, place, name, question, kind, unit, choices, crc"
ROW_COLUMNS = "table_id, paper, hidden, title, file, label, year, crc"
CELL_COLUMNS = "column_id, paper, state, findings, edit, error, changed, crc"
FILL_COLUMNS = "table_id, column_id, paper, server, until, stops, reading"
# Table -> which of its rows are those of an evidence table, in the order in which they are put back
_PARTS = {
    "evidence_tables": "id = :id",
    "table_columns": "table_id = :id",
    "table_rows": "table_id = :id",
    "table_cells": "column_id IN (SELECT id FROM table_columns WHERE table_id = :id)",
}
_THIS_CELL = "WHERE column_id = :column AND paper = :paper"
_THIS_FILL = "WHERE table_id = :table AND column_id = :column AND paper = :paper"
_EVERY_ANSWER = """SELECT c.table_id, x.state, x.edit, (SELECT count(*) FROM papers p WHERE p.id = x.paper)
    FROM table_cells x JOIN table_columns c ON c.id = x.column_id
    JOIN table_rows r ON r.table_id = c.table_id AND r.paper = x.paper WHERE r.hidden = 0"""
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A question that is put to each paper."""

    id: str
    name: str
    question: str = ""  # "" asks for the name
    kind: str = "text"
    unit: str = ""
    choices: tuple[str, ...] = ()

    @property
    def asks(self) -> tuple[object, ...]:
        """What its answers depend on."""
        return self.question or self.name, self.kind, self.unit, self.choices


@dataclass(frozen=True, slots=True)
class TableRow:
    """A paper, and what was known of it last."""

    paper: str
    title: str
    file: str
    label: str
    year: int | None


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """Words of a paper that answer a column."""

    quote: NoteQuote
    page_start: int  # where the page of the quote begins in the text of the paper
    section: str
    value: str
    number: float | None
    by_model: bool


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell that was asked or edited."""

    state: CellState = "waiting"
    findings: tuple[StoredFinding, ...] = ()
    edit: str = ""
    error: tuple[str, str] | None = None  # what happened, and what to do
    changed: int = 0
    closest: StoredFinding | None = None  # of a cell that was not found: a place that may not answer

    @property
    def shown_closest(self) -> StoredFinding | None:
        """The closest place, unless its paper no longer has the words."""
        return self.closest if self.closest and self.closest.quote.state != "lost" else None

    @property
    def is_open(self) -> bool:
        """Whether it waits to be asked."""
        return self.state == "waiting" and not self.edit


@dataclass(frozen=True, slots=True)
class Fill:
    """What a program asks: one cell of a table, or all that wait."""

    table: str
    column: str = ""
    paper: str = ""
    reading: str = ""  # the paper that is being asked

    @property
    def key(self) -> tuple[str, str, str]:
        return self.table, self.column, self.paper


@dataclass(frozen=True, slots=True)
class EvidenceTable:
    id: str  # 16 hex digits
    name: str
    scope: Mapping[str, Any]  # the filter of its papers
    follows: bool
    resumes: bool
    problem: tuple[str, str] | None
    changes: int
    shape: int
    created: str
    updated: str
    columns: tuple[TableColumn, ...] = ()
    rows: tuple[TableRow, ...] = ()
    cells: Mapping[tuple[str, str], TableCell] = field(default_factory=dict)  # (column, paper) -> cell
    fills: tuple[Fill, ...] = ()

    def column(self, id: str) -> TableColumn:
        """Raises NotKnown."""
        for column in self.columns:
            if column.id == id:
                return column
        raise unknown_column()


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of rows, of columns, and of cells by their state; edited cells count as found."""

    rows: int = 0
    columns: int = 0
    found: int = 0
    not_found: int = 0
    failed: int = 0
    waiting: int = 0  # of papers that are in the library


# From rows of the database


def table_of_row(*row: Any) -> EvidenceTable:
    """From TABLE_COLUMNS. Raises ValueError."""
    *columns, crc = row
    id, name, scope, follows, resumes, problem, changes, shape, created, updated = columns
    if crc != rows.shown_crc(name, scope, follows, created):
        raise UserDataChanged(f"table {str(id)[:16]} has changed since it was written")
    return EvidenceTable(
        rows.string(id),
        name,
        rows.mapped(scope, f"table {id}"),
        bool(follows),
        rows.number(resumes) > 0,
        _error(problem),
        rows.number(changes),
        rows.number(shape),
        created,
        rows.string(updated),
    )


def column_of_row(*row: Any) -> tuple[str, TableColumn]:
    """From COLUMN_COLUMNS: its table, and the column. Raises ValueError."""
    id, table, place, name, question, kind, unit, choices, crc = row
    if crc != rows.shown_crc(name, question, kind, unit, choices):
        raise UserDataChanged(f"a column of table {str(table)[:16]} has changed since it was written")
    rows.number(place)
    return rows.string(table), TableColumn(
        rows.string(id), name, question, kind, unit, rows.listed(str, choices, "the choices of a column")
    )


def row_of_row(*row: Any) -> tuple[str, bool, TableRow]:
    """From ROW_COLUMNS: its table, whether it is hidden, and the row. Raises ValueError."""
    *columns, crc = row
    table, paper, hidden, title, file, label, year = columns
    if crc != rows.shown_crc(*columns):
        raise UserDataChanged(f"a row of table {str(table)[:16]} has changed since it was written")
    return table, bool(hidden), TableRow(paper, title, file, label, year)


def cell_of_row(*row: Any) -> tuple[str, str, TableCell]:
    """From CELL_COLUMNS: its column, its paper, and the cell. Raises ValueError."""
    column, paper, state, findings, edit, error, changed, crc = row
    if crc != rows.shown_crc(state, findings, edit, error):
        raise UserDataChanged(f"a cell of column {str(column)[:16]} has changed since it was written")
    if state not in get_args(CellState):
        raise ValueError(f"a cell of column {str(column)[:16]} cannot be read")
    read = tuple(_finding(rows.string(paper), each) for each in rows.listed(dict, findings, "what a cell quotes"))
    # What a cell quotes that was not found is no answer
    findings, closest = ((), next(iter(read), None)) if state == "not_found" else (read, None)
    cell = TableCell(state, findings, rows.string(edit), _error(error), rows.number(changed), closest)
    return rows.string(column), paper, cell


def fill_of_row(*row: Any) -> Fill:
    """From FILL_COLUMNS. Raises ValueError."""
    table, column, paper, server, until, stops, reading = row
    datetime.fromisoformat(rows.string(until))
    rows.string(server), rows.number(stops)
    return Fill(*map(rows.string, (table, column, paper, reading)))


_QUOTE = ("start", "end", "quote", "before", "after", "page", "label", "state", "text_crc")
_VALUES = ("page_start", "section", "value", "number", "by_model")


def _finding(paper: str, stored: Mapping[str, Any]) -> StoredFinding:
    place = {name: stored[name] for name in _QUOTE}
    quote = NoteQuote(paper=paper, title="", file="", **place)
    if quote.state not in get_args(State) or not 0 <= quote.start < quote.end:
        raise ValueError("a quote of a table cannot be read")
    return StoredFinding(quote, **{name: stored[name] for name in _VALUES})


def _finding_json(finding: StoredFinding) -> dict[str, object]:
    return {
        **{name: getattr(finding.quote, name) for name in _QUOTE},
        **{name: getattr(finding, name) for name in _VALUES},
    }


def _error(text: object) -> tuple[str, str] | None:
    if not text:
        return None
    happened, remedy = rows.listed(str, text, "an error")
    return happened, remedy


def _error_json(error: tuple[str, str] | None) -> str:
    return json.dumps([storable(part) for part in error]) if error else ""


# Reading


def read(database: Database, id: str, since: int = -1) -> EvidenceTable:
    """A table, with its cells that changed since a change or are asked by themselves. Raises NotKnown, StoreDamaged."""
    with database.snapshot():
        tables = database.read(table_of_row, f"SELECT {TABLE_COLUMNS} FROM evidence_tables WHERE id = :id", id=id)
        if not tables:
            raise unknown_table()
        sql = f"SELECT {COLUMN_COLUMNS} FROM table_columns WHERE table_id = :id ORDER BY place, id"
        columns = tuple(column for _, column in database.read(column_of_row, sql, id=id))
        sql = f"SELECT {ROW_COLUMNS} FROM table_rows WHERE table_id = :id AND hidden = 0 ORDER BY paper"
        papers = tuple(row for *_, row in database.read(row_of_row, sql, id=id))
        asked = "(column_id, paper) IN (SELECT column_id, paper FROM table_fills WHERE table_id = :id)"
        sql = f"SELECT {CELL_COLUMNS} FROM table_cells WHERE {_PARTS['table_cells']} AND (changed > :since OR {asked})"
        cells = database.read(cell_of_row, sql, id=id, since=since)
        sql = f"SELECT {FILL_COLUMNS} FROM table_fills WHERE table_id = :id AND until > :now"
        fills = tuple(database.read(fill_of_row, sql, id=id, now=_now()))
    shown = {row.paper for row in papers}
    by_place = {(column, paper): cell for column, paper, cell in cells if paper in shown}
    return replace(tables[0], columns=columns, rows=papers, cells=by_place, fills=fills)


def every(database: Database) -> list[tuple[EvidenceTable, Counts]]:
    """All tables without their parts, and their numbers; the last changed first."""
    with database.snapshot():
        sql = f"SELECT {TABLE_COLUMNS} FROM evidence_tables ORDER BY updated DESC, id"
        tables = database.read(table_of_row, sql)
        sql = f"SELECT {FILL_COLUMNS} FROM table_fills WHERE until > :now"
        fills = database.read(fill_of_row, sql, now=_now())
        counted = counts(database, [each.id for each in tables])
    return [
        (replace(each, fills=tuple(fill for fill in fills if fill.table == each.id)), counted[each.id])
        for each in tables
    ]


def called(database: Database, name: str) -> list[str]:
    """The ids of the tables with this name, or else of those with an id that begins so."""
    wanted = name.strip()
    listed = [table for table, _ in every(database)]
    ids = [table.id for table in listed if table.name.casefold() == wanted.casefold()]
    return ids or [table.id for table in listed if wanted and table.id.startswith(wanted.lower())]


def counts(database: Database, ids: Sequence[str]) -> dict[str, Counts]:
    """Table -> its numbers."""

    def numbers(sql: str) -> dict[str, int]:
        return dict(database.query(sql))

    with database.snapshot():
        shown = "SELECT table_id, count(*) FROM table_rows WHERE hidden = 0"
        listed = numbers(f"{shown} GROUP BY table_id")
        present = numbers(f"{shown} AND paper IN (SELECT id FROM papers) GROUP BY table_id")
        columns = numbers("SELECT table_id, count(*) FROM table_columns GROUP BY table_id")
        by_state: dict[tuple[str, str], int] = {}
        asked: dict[str, int] = {}
        for table, state, edit, is_here in database.query(_EVERY_ANSWER):
            if edit or state != "waiting":
                key = table, "found" if edit else state
                by_state[key] = by_state.get(key, 0) + 1
                asked[table] = asked.get(table, 0) + bool(is_here)
    return {
        id: Counts(
            rows=listed.get(id, 0),
            columns=columns.get(id, 0),
            found=by_state.get((id, "found"), 0),
            not_found=by_state.get((id, "not_found"), 0),
            failed=by_state.get((id, "failed"), 0),
            waiting=present.get(id, 0) * columns.get(id, 0) - asked.get(id, 0),
        )
        for id in ids
    }


def state(database: Database) -> dict[str, Hashable]:
    """Table -> a value that changes with the table, and when it begins or ends being filled."""
    sql = """SELECT t.id, t.changes, (SELECT count(*) FROM table_fills f WHERE f.table_id = t.id AND f.until > :now)
        FROM evidence_tables t ORDER BY t.id"""
    return {id: tuple(values) for id, *values in database.query(sql, now=_now())}


def shape(database: Database, id: str) -> int:
    """A number that grows when a table, its columns or its rows change. Raises NotKnown."""
    found = database.read(rows.number, "SELECT shape FROM evidence_tables WHERE id = :id", id=id)
    if not found:
        raise unknown_table()
    return found[0]


def cells_of_paper(database: Database, id: str, paper: str) -> dict[TableColumn, TableCell]:
    """The cells of a row, by their columns in order."""
    with database.snapshot():
        sql = f"SELECT {COLUMN_COLUMNS} FROM table_columns WHERE table_id = :id ORDER BY place, id"
        columns = [column for _, column in database.read(column_of_row, sql, id=id)]
        sql = f"SELECT {CELL_COLUMNS} FROM table_cells WHERE {_PARTS['table_cells']} AND paper = :paper"
        cells = {column: cell for column, _, cell in database.read(cell_of_row, sql, id=id, paper=paper)}
    return {column: cells.get(column.id, TableCell()) for column in columns}


# Changing


def new_id() -> str:
    """The id of a new table or column."""
    return secrets.token_hex(_ID_BYTES)


@contextmanager
def _changing(database: Database, id: str, *, shape: bool = True) -> Iterator[int]:
    """A transaction that changes a table; yields the number of the change. shape: whether more than cells change.

    Raises NotKnown, StoreProtected.
    """
    database.require_writable("Tables")
    with database.transaction("user"):
        yield _count_change(database, id, shape=shape)


def _count_change(database: Database, id: str, *, shape: bool) -> int:
    """The number of a new change. The caller has a transaction. Raises NotKnown."""
    shaped = ", shape = changes + 1" if shape else ""
    sql = f"UPDATE evidence_tables SET changes = changes + 1, updated = :now{shaped} WHERE id = :id RETURNING changes"
    changed = database.execute(sql, id=id, now=_now())
    if not changed:
        raise unknown_table()
    return rows.number(changed[0][0])


def add(
    database: Database,
    name: str,
    scope: Mapping[str, Any],
    columns: Sequence[TableColumn],
    papers: Sequence[TableRow],
    *,
    follows: bool = True,
) -> str:
    """Add a table; returns its id. Raises UsageError for too many columns or rows, StoreProtected."""
    database.require_writable("Tables")
    now = _now()
    table = EvidenceTable(
        new_id(), storable(name), dict(scope), follows, False, None, 1, 1, now, now
    )
    with database.transaction("user"):
        database.insert("evidence_tables", [_table_row(table)])
        _require_room(len(columns), len(papers))
        database.insert("table_columns", [_column_row(table.id, at, each) for at, each in enumerate(columns, 1)])
        database.insert("table_rows", [_row_row(table.id, each) for each in papers])
    return table.id


def change(
    database: Database, id: str, *, name: str | None = None, follows: bool | None = None
) -> tuple[EvidenceTable, EvidenceTable]:
    """Change a table; None leaves a value as it is. Returns it as it was and as it is. Raises NotKnown."""
    with _changing(database, id):
        before = read(database, id)
        after = replace(
            before,
            name=before.name if name is None else storable(one_line(name)),
            follows=before.follows if follows is None else follows,
        )
        _update_table(database, after)
    return before, after


def undo_change(database: Database, before: EvidenceTable, after: EvidenceTable) -> None:
    """Undo `change`. Raises NotKnown, and ChangedElsewhere if it was changed again since."""
    with _changing(database, before.id):
        now = read(database, before.id)
        if any(getattr(now, name) != getattr(after, name) for name in ("name", "follows")):
            raise ChangedElsewhere("This table was changed again since.", "It stays as it is now.")
        _update_table(database, replace(now, name=before.name, follows=before.follows))


def _update_table(database: Database, table: EvidenceTable) -> None:
    row = _table_row(table)
    names = ("name", "follows", "crc")
    changed = ", ".join(f"{name} = :{name}" for name in names)
    database.execute(
        f"UPDATE evidence_tables SET {changed} WHERE id = :id", id=table.id, **{name: row[name] for name in names}
    )


@dataclass(frozen=True, slots=True)
class Removed:
    """Rows that were deleted, as they were."""

    table: str
    rows: Mapping[str, Rows]


def remove(database: Database, id: str) -> Removed:
    """Delete a table; returns all of it, for `restore`. Raises NotKnown."""
    with _changing(database, id):
        removed = Removed(id, {part: _stored(database, part, only, id=id) for part, only in _PARTS.items()})
        database.execute("DELETE FROM evidence_tables WHERE id = :id", id=id)
    return removed


def restore(database: Database, removed: Removed) -> None:
    """Put a table back that was deleted, as it was."""
    database.require_writable("Tables")
    with database.transaction("user"):
        if not database.query("SELECT id FROM evidence_tables WHERE id = :id", id=removed.table):
            for part in _PARTS:
                database.insert(part, removed.rows[part])


def _stored(database: Database, part: str, only: str, **values: object) -> Rows:
    columns = ", ".join(COLUMNS[part])
    found = database.query(f"SELECT {columns} FROM {part} WHERE {only}", **values)
    return [dict(zip(COLUMNS[part], row, strict=True)) for row in found]


# Columns


def add_column(database: Database, id: str, column: TableColumn) -> None:
    """Add a column at the end. Raises NotKnown, UsageError for too many."""
    with _changing(database, id):
        ((number, last),) = database.query(
            "SELECT count(*), coalesce(max(place), 0) FROM table_columns WHERE table_id = :id", id=id
        )
        _require_room(number + 1, 0)
        database.insert("table_columns", [_column_row(id, last + 1, column)])


def change_column(database: Database, id: str, column: TableColumn) -> Removed:
    """Replace a column. If it asks something else its cells wait again, without what was found; edits stay.

    Returns the column and its cells as they were, for `undo_column`. Raises NotKnown.
    """
    with _changing(database, id) as changed:
        table = read(database, id)
        before = table.column(column.id)
        removed = _column_as_it_is(database, id, column.id)
        place = removed.rows["table_columns"][0]["place"]
        row = _column_row(id, place, column)
        names = ("name", "question", "kind", "unit", "choices", "crc")
        sql = f"UPDATE table_columns SET {', '.join(f'{name} = :{name}' for name in names)} WHERE id = :id"
        database.execute(sql, id=column.id, **{name: row[name] for name in names})
        if before.asks != column.asks:
            cells = _cells_of(database, column.id)
            _write_cells(database, column.id, {paper: _unasked(cell) for paper, cell in cells.items()}, changed)
    return removed


def remove_column(database: Database, id: str, column: str) -> Removed:
    """Delete a column with its cells; returns them, for `undo_column`. Raises NotKnown."""
    with _changing(database, id):
        removed = _column_as_it_is(database, id, column)
        database.execute("DELETE FROM table_columns WHERE id = :column", column=column)
    return removed


def undo_column(database: Database, removed: Removed) -> None:
    """Put a column and its cells back, as they were. Cells that were added since stay. Raises NotKnown."""
    with _changing(database, removed.table) as changed:
        (column,) = removed.rows["table_columns"]
        since = _cells_of(database, column["id"])
        database.execute("DELETE FROM table_columns WHERE id = :id", id=column["id"])
        database.insert("table_columns", [column])
        cells = {paper: cell for _, paper, cell in map(_cell_of, removed.rows["table_cells"])}
        for paper, cell in since.items():
            if cell.edit:
                cells[paper] = replace(cells.get(paper, TableCell()), edit=cell.edit)
        _write_cells(database, column["id"], cells, changed)


def _cell_of(stored: Mapping[str, Any]) -> tuple[str, str, TableCell]:
    return cell_of_row(*(stored[name] for name in CELL_COLUMNS.split(", ")))


def _column_as_it_is(database: Database, id: str, column: str) -> Removed:
    stored = {
        "table_columns": _stored(database, "table_columns", "id = :column AND table_id = :id", column=column, id=id),
        "table_cells": _stored(database, "table_cells", "column_id = :column", column=column),
    }
    if not stored["table_columns"]:
        raise unknown_column()
    return Removed(id, stored)


def order_columns(database: Database, id: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Order the columns so; returns their former order. Raises NotKnown unless these are all of them."""
    with _changing(database, id):
        before = tuple(column.id for column in read(database, id).columns)
        if sorted(before) != sorted(columns):
            raise unknown_column()
        for place, column in enumerate(columns, 1):
            database.execute("UPDATE table_columns SET place = :place WHERE id = :id", place=place, id=column)
    return before


# Rows


def add_rows(database: Database, id: str, papers: Sequence[TableRow], *, by_person: bool = True) -> int:
    """Add papers that are no rows yet; returns how many. by_person: also those that a person took out.

    Raises NotKnown, UsageError for too many.
    """
    known = {
        paper: bool(hidden)
        for paper, hidden in database.query("SELECT paper, hidden FROM table_rows WHERE table_id = :id", id=id)
    }
    new = [row for row in papers if row.paper not in known]
    back = [row for row in papers if known.get(row.paper) and by_person]
    if not new and not back:
        return 0
    with _changing(database, id):
        _require_room(0, len(known) + len(new))
        database.insert("table_rows", [_row_row(id, row) for row in [*new, *back]], replace=True)
    return len(new) + len(back)


def hide_row(database: Database, id: str, paper: str, *, hidden: bool) -> None:
    """Take a paper out, with its cells, or put it back. Raises NotKnown."""
    with _changing(database, id):
        stored = _stored(database, "table_rows", "table_id = :id AND paper = :paper", id=id, paper=paper)
        if not stored:
            raise unknown_row()
        _, _, row = row_of_row(*(stored[0][name] for name in ROW_COLUMNS.split(", ")))
        database.insert("table_rows", [_row_row(id, row, hidden=hidden)], replace=True)


def rename_rows(database: Database, id: str, papers: Sequence[TableRow]) -> None:
    """Store what is known of papers now. The caller has a transaction."""
    for row in papers:
        changed = _row_row(id, row)
        sql = """UPDATE table_rows SET title = :title, file = :file, label = :label, year = :year, crc = :crc
            WHERE table_id = :table_id AND paper = :paper AND hidden = 0"""
        database.execute(sql, **{name: value for name, value in changed.items() if name != "hidden"})


def follow(database: Database, old: str, new: str) -> None:
    """Give the rows and cells of a paper to the paper that replaces it. The caller has a transaction."""
    for row in _stored(database, "table_rows", "paper = :paper", paper=old):
        if database.query(
            "SELECT 1 FROM table_rows WHERE table_id = :id AND paper = :paper", id=row["table_id"], paper=new
        ):
            continue  # its own row stays, and that of the old paper as one of a removed paper
        values = {**row, "paper": new}
        crc = rows.shown_crc(*(values[name] for name in ROW_COLUMNS.split(", ")[:-1]))
        sql = "UPDATE table_rows SET paper = :new, crc = :crc WHERE table_id = :id AND paper = :old"
        database.execute(sql, new=new, crc=crc, id=row["table_id"], old=old)
        of_table = "column_id IN (SELECT id FROM table_columns WHERE table_id = :id)"
        sql = f"UPDATE table_cells SET paper = :new WHERE paper = :old AND {of_table}"
        database.execute(sql, new=new, old=old, id=row["table_id"])
        _count_change(database, row["table_id"], shape=True)


# Cells


def edit_cell(
    database: Database, id: str, column: str, paper: str, text: str, before: str | None = None
) -> tuple[str, str]:
    """Put a person's text into a cell, "" for none; returns the text that it had, and the one that it has.

    before: the text that was edited; with another one in the cell, ChangedElsewhere is raised. Raises NotKnown.
    """
    new = storable(text)
    with _changing(database, id, shape=False) as changed:
        _require_cell(database, id, column, paper)
        cell = _cells_of(database, column, paper).get(paper, TableCell())
        if before is not None and cell.edit not in (storable(before), new):
            raise ChangedElsewhere(
                f"This cell was changed elsewhere meanwhile. It is now: “{shorten(one_line(cell.edit), 300)}”.",
                "Save again to put your words in their place.",
            )
        _write_cells(database, column, {paper: replace(cell, edit=new)}, changed)
    return cell.edit, new


def undo_edit(database: Database, id: str, column: str, paper: str, before: str, after: str) -> None:
    """Undo `edit_cell`. Raises NotKnown, and ChangedElsewhere if the cell was edited again since."""
    with _changing(database, id, shape=False) as changed:
        _require_cell(database, id, column, paper)
        cell = _cells_of(database, column, paper).get(paper, TableCell())
        if cell.edit not in (after, before):
            raise ChangedElsewhere("This cell was changed again since.", "It stays as it is now.")
        _write_cells(database, column, {paper: replace(cell, edit=before)}, changed)


def ask_again(database: Database, id: str, cells: Iterable[tuple[str, str]]) -> None:
    """Let cells wait again, without what was found; edited ones stay. cells: column and paper. Raises NotKnown."""
    by_column: dict[str, list[str]] = {}
    for column, paper in cells:
        by_column.setdefault(column, []).append(paper)
    if not by_column:
        return
    with _changing(database, id, shape=False) as changed:
        for column, papers in by_column.items():
            stored = _cells_of(database, column)
            chosen = {paper: stored[paper] for paper in papers if paper in stored and not stored[paper].edit}
            _write_cells(database, column, {paper: _unasked(cell) for paper, cell in chosen.items()}, changed)


def replace_findings(database: Database, changes: Iterable[tuple[str, str, TableCell, TableCell]]) -> None:
    """Store new places of quotes: column, paper, the cell, the cell with its places now. The caller has a transaction.

    A cell that is no longer the same stays.
    """
    for column, paper, before, now in changes:
        old, new = _cell_row(column, paper, before), _cell_row(column, paper, now)
        sql = f"UPDATE table_cells SET findings = :findings, crc = :crc {_THIS_CELL} AND crc = :old"
        values = {"findings": new["findings"], "crc": new["crc"], "old": old["crc"]}
        database.execute(sql, column=column, paper=paper, **values)


def _unasked(cell: TableCell) -> TableCell:
    return TableCell(edit=cell.edit)


def _require_cell(database: Database, id: str, column: str, paper: str) -> None:
    """Raises NotKnown unless a table has this column and this row."""
    if not database.query("SELECT 1 FROM table_columns WHERE id = :column AND table_id = :id", column=column, id=id):
        raise unknown_column()
    sql = "SELECT 1 FROM table_rows WHERE table_id = :id AND paper = :paper AND hidden = 0"
    if not database.query(sql, id=id, paper=paper):
        raise unknown_row()


def _cells_of(database: Database, column: str, paper: str | None = None) -> dict[str, TableCell]:
    only = "" if paper is None else " AND paper = :paper"
    sql = f"SELECT {CELL_COLUMNS} FROM table_cells WHERE column_id = :column{only}"
    found = database.read(cell_of_row, sql, column=column, paper=paper)
    return {each: cell for _, each, cell in found}


def _write_cells(database: Database, column: str, cells: Mapping[str, TableCell], changed: int) -> None:
    written = [_cell_row(column, paper, replace(cell, changed=changed)) for paper, cell in cells.items()]
    database.insert("table_cells", written, replace=True)


# Filling


def begin(database: Database, fill: Fill, server: str, *, resumes: bool = False) -> bool:
    """Say that a program asks all cells of a table that wait, or one cell. Returns False if another one does.

    resumes: whether a server is to go on if this program is killed. Raises NotKnown, StoreProtected.
    """
    column, paper = fill.column, fill.paper

    def begin() -> bool:
        with _changing(database, fill.table, shape=False):
            if column:
                _require_cell(database, fill.table, column, paper)
            sql = f"SELECT server FROM table_fills {_THIS_FILL} AND until > :now AND stops = 0"
            if database.query(sql, table=fill.table, column=column, paper=paper, now=_now()):
                return False
            key = {"table_id": fill.table, "column_id": column, "paper": paper}
            held = {**key, "server": server, "until": _now(FILLING_S), "stops": 0, "reading": fill.reading}
            database.insert("table_fills", [held], replace=True)
            if not column:
                sql = "UPDATE evidence_tables SET problem = '', resumes = :resumes WHERE id = :id"
                database.execute(sql, id=fill.table, resumes=int(resumes))
        return True

    return database.repeat(begin)


def set_reading(database: Database, fill: Fill, server: str, paper: str) -> None:
    """Say which paper is being asked."""
    with _changing(database, fill.table, shape=False):
        sql = f"UPDATE table_fills SET reading = :reading {_THIS_FILL} AND server = :server"
        database.execute(sql, **_fill_key(fill), server=server, reading=paper)


def renew(database: Database, servers: Iterable[str]) -> set[str]:
    """Say again that these ask; returns those that nobody has stopped, deleted or taken over."""
    names = list(servers)

    def renew() -> set[str]:
        with database.transaction("user"):
            sql = """UPDATE table_fills SET until = :until WHERE server IN (SELECT value FROM json_each(:servers))
                RETURNING server, stops"""
            renewed = database.execute(sql, until=_now(FILLING_S), servers=names)
        return {server for server, stops in renewed if not stops}

    return database.repeat(renew)


def stop(database: Database, id: str) -> None:
    """Have whoever fills a table stop, and nobody resume it. Raises NotKnown."""
    with _changing(database, id, shape=False):
        database.execute("UPDATE evidence_tables SET resumes = 0 WHERE id = :id", id=id)
        database.execute("UPDATE table_fills SET stops = 1 WHERE table_id = :id AND column_id = ''", id=id)


def end(database: Database, fill: Fill, server: str, problem: tuple[str, str] | None = None) -> None:
    """End the work of this program. problem: why cells are left that were not asked."""

    def end() -> None:
        with _changing(database, fill.table, shape=False) as changed:
            sql = f"DELETE FROM table_fills {_THIS_FILL} AND server = :server RETURNING paper"
            if not database.execute(sql, **_fill_key(fill), server=server):
                return
            if fill.column:  # the cell has changed even if nothing was found
                cell = _cells_of(database, fill.column, fill.paper).get(fill.paper, TableCell())
                _write_cells(database, fill.column, {fill.paper: cell}, changed)
            else:
                sql = "UPDATE evidence_tables SET problem = :problem WHERE id = :id"
                database.execute(sql, id=fill.table, problem=_error_json(problem))

    database.repeat(end)


def land(database: Database, fill: Fill, server: str, column: TableColumn, paper: str, cell: TableCell) -> bool:
    """Put what was found into a cell. Returns False, and changes nothing, if the cell waits for it no more: it was
    asked or edited elsewhere, its column asks something else now, its row is gone, or another program took over.
    """

    def land() -> bool:
        with database.transaction("user"):
            table = _table_for(database, fill, server)
            if table is None or paper not in {row.paper for row in table.rows}:
                return False
            if all(each.id != column.id or each.asks != column.asks for each in table.columns):
                return False
            before = _cells_of(database, column.id, paper).get(paper, TableCell())
            if not fill.column and not before.is_open:
                return False
            changed = _count_change(database, fill.table, shape=False)
            _write_cells(database, column.id, {paper: replace(cell, edit=before.edit)}, changed)
        return True

    return database.repeat(land)


def _table_for(database: Database, fill: Fill, server: str) -> EvidenceTable | None:
    """The table without its cells, if it is still this program that asks."""
    sql = f"SELECT 1 FROM table_fills {_THIS_FILL} AND server = :server"
    if not database.query(sql, **_fill_key(fill), server=server):
        return None
    return read(database, fill.table, since=2**53)


def _fill_key(fill: Fill) -> dict[str, str]:
    return {"table": fill.table, "column": fill.column, "paper": fill.paper}


def resumable(database: Database, *, after_problems: bool = False) -> list[str]:
    """The tables whose filling was begun and not stopped, and that nobody fills now.

    after_problems: also those of which a problem ended the filling.
    """
    only = "" if after_problems else "AND problem = ''"
    sql = f"""SELECT id FROM evidence_tables t WHERE resumes = 1 {only} AND NOT EXISTS (
        SELECT 1 FROM table_fills f WHERE f.table_id = t.id AND f.column_id = '' AND f.until > :now) ORDER BY updated"""
    return database.read(rows.string, sql, now=_now())


def following(database: Database) -> list[str]:
    """The tables that get rows for papers that are added later."""
    return database.read(rows.string, "SELECT id FROM evidence_tables WHERE follows = 1 ORDER BY updated")


# Errors, and rows as they are stored


def unknown_table() -> NotKnown:
    return NotKnown("There is no such table.", "It may have been deleted.")


def unknown_column() -> NotKnown:
    return NotKnown("The table has no such column.", "It may have been deleted.")


def unknown_row() -> NotKnown:
    return NotKnown("The table has no row of this paper.", "It may have been taken out.")


def _require_room(columns: int, papers: int) -> None:
    for number, most, what in ((columns, MAX_COLUMNS, "column"), (papers, MAX_ROWS, "paper")):
        if number > most:
            raise UsageError(f"A table has at most {counted(most, what)}.", "Make several tables.")


def _now(seconds: float = 0) -> str:
    """The ISO time in UTC, this many seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def _table_row(table: EvidenceTable) -> dict[str, object]:
    scope = json.dumps(table.scope)
    return {
        "id": table.id,
        "name": table.name,
        "scope": scope,
        "follows": int(table.follows),
        "resumes": int(table.resumes),
        "problem": _error_json(table.problem),
        "changes": table.changes,
        "shape": table.shape,
        "created": table.created,
        "updated": table.updated,
        "crc": rows.shown_crc(table.name, scope, int(table.follows), table.created),
    }


def _column_row(table: str, place: int, column: TableColumn) -> dict[str, object]:
    said = {name: storable(getattr(column, name)) for name in ("name", "question", "kind", "unit")}
    choices = json.dumps([storable(choice) for choice in column.choices])
    crc = rows.shown_crc(*said.values(), choices)
    return {"id": column.id, "table_id": table, "place": place, **said, "choices": choices, "crc": crc}


def _row_row(table: str, row: TableRow, *, hidden: bool = False) -> dict[str, object]:
    texts = {name: storable(getattr(row, name)) for name in ("title", "file", "label")}
    values = {"table_id": table, "paper": row.paper, "hidden": int(hidden), **texts, "year": row.year}
    return {**values, "crc": rows.shown_crc(*values.values())}


def _cell_row(column: str, paper: str, cell: TableCell) -> dict[str, object]:
    quoted = (cell.closest,) if cell.state == "not_found" and cell.closest else cell.findings
    findings = json.dumps(list(map(_finding_json, quoted)))
    said = {"state": cell.state, "findings": findings, "edit": cell.edit, "error": _error_json(cell.error)}
    crc = rows.shown_crc(*said.values())
    return {"column_id": column, "paper": paper, **said, "changed": cell.changed, "crc": crc}


def unreadable_row(part: str) -> dict[str, object]:
    """What a row of a table, or a column, is to have that cannot be read, so that its cells are kept."""
    if part == "table_columns":
        row = _column_row("", 1, TableColumn("", "?"))
        return {name: row[name] for name in row if name not in ("id", "table_id", "place")}
    now = _now()
    row = _table_row(EvidenceTable("", "?", {}, False, False, None, 1, 1, now, now))
    return {name: row[name] for name in row if name not in ("id", "changes", "shape")}
