"""The names that papers were given in citations: their citation keys, and the places that decide letters of labels.

They are user data, because texts of people use them. A paper need not be in the library: it keeps its names for when it
comes back. As in rows.py, a row that has changed since it was written raises ValueError.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal

from folio.store.database import Database
from folio.store.rows import number, string

NAME_COLUMNS = "kind, name, paper, place"


@dataclass(frozen=True, slots=True)
class CitationName:
    """A name of a paper."""

    kind: Literal["key", "label"]
    name: str
    paper: str
    place: int  # of a key: among its paper's keys, the last of which is in use; of a label: among its papers


def labels(database: Database, names: Iterable[str] | None = None) -> dict[str, dict[str, int]]:
    """Label -> paper -> its place, for these labels or all. Raises StoreDamaged."""
    sql, values = f"SELECT {NAME_COLUMNS} FROM citation_names WHERE kind = 'label'", {}
    if names is not None:
        sql, values = f"{sql} AND name IN (SELECT value FROM json_each(:names))", {"names": list(names)}
    places: dict[str, dict[str, int]] = defaultdict(dict)
    for each in database.read(citation_name, sql, **values):
        places[each.name][each.paper] = each.place
    return dict(places)


def keys(database: Database, paper: str = "") -> dict[str, dict[str, int]]:
    """Paper -> its citation keys with their places, the one in use at the end; of one paper or of all.

    Raises StoreDamaged.
    """
    sql = f"SELECT {NAME_COLUMNS} FROM citation_names WHERE kind = 'key'"
    sql = f"{sql}{' AND paper = :paper' if paper else ''} ORDER BY paper, place"
    given: dict[str, dict[str, int]] = defaultdict(dict)
    for each in database.read(citation_name, sql, **({"paper": paper} if paper else {})):
        given[each.paper][each.name] = each.place
    return dict(given)


def give(database: Database, names: Iterable[CitationName]) -> None:
    """Store names. The caller has a transaction."""
    database.insert("citation_names", map(asdict, names), replace=True)


def take_back(database: Database, paper: str, key: str) -> None:
    """Take a citation key from a paper again, as its choice is undone; the one before is in use again."""
    with database.transaction("user"):
        sql = "DELETE FROM citation_names WHERE kind = 'key' AND name = :key AND paper = :paper"
        database.execute(sql, key=key, paper=paper)


def inherit(database: Database, old: str, new: str) -> None:
    """Give a paper the names of the paper that it replaces, which loses them, unless it has some."""
    sql = f"SELECT {NAME_COLUMNS} FROM citation_names WHERE paper = :paper"
    if not database.query(sql, paper=new):
        moved = [replace(each, paper=new) for each in database.read(citation_name, sql, paper=old)]
        database.execute("DELETE FROM citation_names WHERE paper = :paper", paper=old)
        give(database, moved)


def citation_name(kind: object, name: object, paper: object, place: object) -> CitationName:
    """From NAME_COLUMNS."""
    if kind not in ("key", "label") or number(place) < 0 or not string(name):
        raise ValueError("the name of a paper in citations cannot be read")
    return CitationName(kind, string(name), string(paper), number(place))
