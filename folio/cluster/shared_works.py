"""What services say of works, for all computers of a library: rows in Milvus, and a copy of them in SQLite to be read.

Who cites whom is asked in SQL, so each computer has a copy, computer.sqlite. The truth is the collection `works`: a
document for each work, with its citations and notices, and one for each paper that is known to be a work. A change
rewrites the documents that it concerns, each with a greater number than all that the writer has seen, and then the
stamp in the collection `store`. Who sees another stamp than that of its copy reads what has a number since then.

All copies put the documents in the order of these numbers, so that lists which follow it are the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import time_ns
from typing import Any
from uuid import uuid4

from folio.cluster.as_written import as_written
from folio.cluster.collections import WORKS, Names
from folio.cluster.library_state import WORKS_STAMP
from folio.cluster.milvus_client import BATCH, Milvus, Row
from folio.cluster.milvus_errors import MissingCollection
from folio.cluster.paper_record import joined, parts
from folio.errors import StoreDamaged, StoreRefused
from folio.store import rows, work_rows, works
from folio.store.database import Database
from folio.store.work_rows import AboutWork

# The row of the copy's table meta with its stamp and the greatest number that it has
_COPIED = "works"
# Microseconds: what was written at the same time as something that is here already has no smaller a number than this
_SLACK = 600 * 10**6
# The first copy of a large library takes longer than SQLite waits
_COPYING = Lock()
_TABLES = {"works": "id", "work_marks": "work", "citations": "citing", "notices": "work"}
# Which version of each document the copy has
_APPLIED = "CREATE TABLE IF NOT EXISTS applied (document TEXT PRIMARY KEY, changed TEXT NOT NULL) WITHOUT ROWID"
_CHANGED = "CREATE TEMP TABLE IF NOT EXISTS changed (document TEXT PRIMARY KEY)"
_NOTED = {"works": "work.id", "citations": "work.citing", "notices": "work.work", "paper_works": "paper.paper"}
_REMEDY = "Run `python ingest.py --repair --yes`, which leaves it out, then `python fetch.py --metadata`."


# Number, name and text
Document = tuple[int, str, str]


class SharedWorks:
    """The copy of this computer, kept up with Milvus. One thread at a time may use it."""

    def __init__(self, milvus: Milvus, prefix: str, database: Database) -> None:
        self.milvus, self._database = milvus, database
        self._names = Names(prefix)

    # Reading

    def refresh(self, stamp: str) -> None:
        """Bring the copy to the state with this stamp. Raises StoreDamaged."""
        if self._copied()[0] == stamp or self._database.is_read_only:
            return
        with _COPYING:
            self._copy(stamp)

    def _copy(self, stamp: str) -> None:
        known, number = self._copied()
        if known == stamp:  # another thread was first
            return
        is_same = known.partition(":")[0] == stamp.partition(":")[0]
        self._database.execute(_APPLIED)
        found = self._new_documents(number if is_same else None) if stamp else []
        with self._database.transaction():
            if not is_same:
                for table in (*_TABLES, "paper_works", "applied"):
                    self._database.execute(f"DELETE FROM {table}")
                number = 0
            self._apply(found)
            self._note_copied(stamp, max([number, *(changed for changed, *_ in found)]))

    def _new_documents(self, number: int | None) -> list[Document]:
        """What the copy does not have, and all with greater numbers. number: its greatest; None for an empty copy."""
        since = -1
        if number is not None:
            applied = set(self._database.read(rows.text_pair, "SELECT document, changed FROM applied"))
            newest = self.milvus.rows(
                self._names.works, f"part == 0 and changed > {number - _SLACK}", ["key", "changed"], strong=True
            )
            new = [int(row["changed"]) for row in newest if (row["key"][:-2], str(row["changed"])) not in applied]
            if not new:
                return []
            since = min(new) - 1
        return _documents(self.milvus, self._names, since)

    def note_papers(self, state: str, are_here: Callable[[list[str]], Iterable[str]]) -> None:
        """Have the copy list which papers are in the library, of those that are known to be a work.

        state: another one after each change of papers.
        """
        (known, _), (copied, _) = self._copied("works.papers"), self._copied()
        state = f"{state} {copied}"
        if known == state or self._database.is_read_only:
            return
        here = list(are_here(self._database.read(rows.string, "SELECT paper FROM paper_works ORDER BY paper")))
        with self._database.transaction():
            self._database.execute("DELETE FROM papers")
            self._database.execute_many(
                "INSERT INTO papers (id, title, authors, text, length, starts, labels, problems, added, generation)"
                " VALUES (:id, '', '', '', 0, '', '', '', '', 0)",
                ({"id": paper} for paper in here),
            )
            self._note_copied(state, 0, "works.papers")

    def _apply(self, documents: Iterable[Document]) -> None:
        """Put documents in the place of what the copy has. The caller has a transaction."""
        for changed, name, text in documents:
            kind, _, id = name.partition(".")
            if kind == "paper":
                self._database.execute("DELETE FROM paper_works WHERE paper = :id", id=id)
            else:
                for table, column in _TABLES.items():
                    self._database.execute(f"DELETE FROM {table} WHERE {column} = :id", id=id)
            works.insert_rows(self._database, _rows_in(name, text))
            sql = "INSERT OR REPLACE INTO applied VALUES (:name, :changed)"
            self._database.execute(sql, name=name, changed=str(changed))

    def _copied(self, key: str = _COPIED) -> tuple[str, int]:
        """The stamp of the copy, and the greatest number in it."""
        found = self._database.query("SELECT value FROM meta WHERE key = :key", key=key)
        stamp, _, number = str(found[0][0]).rpartition(" ") if found else ("", "", "0")
        return stamp, int(number)

    def _note_copied(self, stamp: str, number: int, key: str = _COPIED) -> None:
        sql = "INSERT OR REPLACE INTO meta VALUES (:key, :value)"
        self._database.execute(sql, key=key, value=f"{stamp} {number}")

    # Writing

    @contextmanager
    def changing(self, stamp: str) -> Iterator[Database]:
        """A transaction of the copy; what is changed inside goes to Milvus, or nothing is changed.

        stamp: of what is in Milvus.
        """
        self.refresh(stamp)
        database = self._database
        database.execute(_APPLIED)
        database.execute(_CHANGED)
        for table, document in _NOTED.items():
            kind, _, column = document.partition(".")
            for happened, row in (("INSERT", "NEW"), ("DELETE", "OLD")):
                database.execute(
                    f"CREATE TEMP TRIGGER IF NOT EXISTS {table}_{happened} AFTER {happened} ON main.{table}"
                    f" BEGIN INSERT OR IGNORE INTO changed VALUES ('{kind}.' || {row}.{column}); END"
                )
        with database.transaction():
            database.execute("DELETE FROM changed")
            yield database
            names = database.read(rows.string, "SELECT document FROM changed ORDER BY rowid")
            if names:
                self._publish(names)

    def _publish(self, names: list[str]) -> None:
        """Write documents of what the copy has now, then the stamp."""
        stamp, known = self._copied()
        number = max(time_ns() // 1000, known + 1)
        self.milvus.create_missing(self._names.works, WORKS)
        batch: list[Row] = []
        for place, name in enumerate(names):
            made = _made(number + place, name, self._text(name))
            if len(batch) + len(made) > BATCH:
                self.milvus.write(self._names.works, batch)
                batch = []
            batch += made
        self.milvus.write(self._names.works, batch)
        stamp = f"{stamp.partition(':')[0] or uuid4().hex[:12]}:{number}.{uuid4().hex[:8]}"
        self.milvus.write(self._names.store, [{"key": WORKS_STAMP, "value": stamp}])
        # As others do, so that the order is the same, and with what somebody wrote who was killed before the stamp
        found = self._new_documents(known)
        self._apply(found)
        self._note_copied(stamp, found[-1][0])

    def _text(self, name: str) -> str:
        """The document of a work or a paper as the copy has it; that of a work that is gone is empty."""
        kind, _, id = name.partition(".")
        document: dict[str, Any] = {}
        for table, (key, columns) in _WRITTEN[kind].items():
            sql = f"SELECT {columns} FROM {table} WHERE {key} = :id ORDER BY rowid"
            found = self._database.query(sql, id=id)
            document[table] = [[*row[:-1], row[-1].hex()] for row in found]
        return json.dumps(document, ensure_ascii=False)


# Table -> the column that a document is of, and all columns, by the kind of the document
_WRITTEN = {
    "work": {
        "works": ("id", work_rows.WORK_COLUMNS),
        "citations": ("citing", work_rows.CITATION_COLUMNS),
        "notices": ("work", work_rows.NOTICE_COLUMNS),
    },
    "paper": {"paper_works": ("paper", work_rows.PAPER_WORK_COLUMNS)},
}
_READ: dict[str, Callable[..., AboutWork]] = {
    "works": work_rows.work,
    "citations": work_rows.citation,
    "notices": work_rows.notice,
    "paper_works": work_rows.paper_work,
}


def _rows_in(name: str, text: str) -> list[AboutWork]:
    """The rows of a document. Raises StoreDamaged if it is not as it was written."""
    kind = name.partition(".")[0]
    with as_written(_damaged):
        document = rows.mapped(text, "it")
        return [_READ[table](*row[:-1], bytes.fromhex(row[-1])) for table in _WRITTEN[kind] for row in document[table]]


def _damaged(said: str) -> StoreDamaged:
    return StoreDamaged(f"What services say of a work cannot be read in Milvus ({said[:100]}).", _REMEDY)


def _made(changed: int, name: str, text: str) -> list[Row]:
    texts = parts(text)
    if len(texts) > BATCH:
        raise StoreRefused(
            "Milvus cannot hold a work of more than some 8 million characters.", "Look up other papers alone."
        )
    return [
        {"key": f"{name}.{part}", "changed": changed, "part": part, "parts": len(texts), "value": value}
        for part, value in enumerate(texts)
    ]


def leave_out_damaged(milvus: Milvus, names: Names) -> None:
    """Delete the documents that cannot be read; of a collection that is gone, the stamp."""
    try:
        documents = _documents(milvus, names, -1)
    except MissingCollection:
        if names.store in milvus.collections():
            milvus.delete(names.store, f'key == "{WORKS_STAMP}"')
        return
    for _, name, text in documents:
        try:
            _rows_in(name, text)
        except StoreDamaged:
            milvus.delete(names.works, f"key like {json.dumps(f'{name}.%')}")


def _documents(milvus: Milvus, names: Names, since: int) -> list[Document]:
    """The documents with a greater number: number, name and text of each, in this order."""
    found: dict[str, list[Row]] = {}
    fields = ("key", "changed", "part", "parts", "value")
    for row in milvus.rows(names.works, f"changed > {since}", fields, strong=True):
        found.setdefault(str(row["key"]).rpartition(".")[0], []).append(row)
    documents = []
    for name, some in found.items():
        changed = max(int(row["changed"]) for row in some)
        # A document that was longer before has more rows, with smaller numbers.
        newest = [row for row in some if int(row["changed"]) == changed]
        is_whole = len(newest) == int(newest[0]["parts"])
        text = joined([(int(row["part"]), str(row["value"])) for row in newest]) if is_whole else ""
        documents.append((changed, name, text))
    return sorted(documents)
