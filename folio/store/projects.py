"""Projects: what a person keeps together, in the tables `projects` and `project_members`.

A project has papers, conversations, notes and tables, each named by its kind and id, and rules. A rule is a filter,
whose papers are worked out when they are asked for (search/filters.py), so that it follows new papers. What a project
names need not exist now: a paper may come back, or be in the library again after a rebuild.

As in rows.py, a row that has changed since it was written raises ValueError.
"""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from folio.errors import ChangedElsewhere, NameTaken, NotKnown, UsageError
from folio.store import rows
from folio.store.database import Database, UserDataChanged, storable
from folio.text import one_line

# "excluded": a paper that a rule finds, and that a person took out
Kind = Literal["paper", "excluded", "rule", "conversation", "note", "table"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Rule = Mapping[str, tuple[str, ...]]  # a filter: field, as in a request, -> its values
LONGEST_NAME, LONGEST_ABOUT, MOST_MEMBERS = 200, 5_000, 100_000
PROJECT_COLUMNS = "id, name, about, created, updated, crc"
MEMBER_COLUMNS = "project, kind, item, title, added, crc"
_ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class Member:
    """What belongs to a project."""

    kind: Kind
    item: str  # its id; of a rule, its filter as JSON (`rule_item`)
    title: str = ""  # of a paper, for when it is removed
    added: str = ""  # ISO time in UTC; "" before it is stored


@dataclass(frozen=True, slots=True)
class Project:
    id: str  # 16 hex digits
    name: str
    about: str  # what it is for, in a person's words
    created: str  # ISO time in UTC
    updated: str
    members: tuple[Member, ...] = ()

    def items(self, kind: Kind) -> list[str]:
        """The ids of its members of a kind, in the order of adding."""
        return [member.item for member in self.members if member.kind == kind]

    @property
    def rules(self) -> list[Rule]:
        return [rule_of(item) for item in self.items("rule")]


def rule_item(rule: Mapping[str, Sequence[str]]) -> str:
    """A rule as the item of a member: the same filter has the same text. Raises UsageError for an empty one."""
    given = {name: sorted(set(values)) for name, values in sorted(rule.items()) if values}
    if not given:
        raise UsageError("The rule has no filter.", "Give one, such as a tag or a year.")
    return storable(json.dumps(given, ensure_ascii=False))


def rule_of(item: str) -> Rule:
    """Raises ValueError."""
    read = json.loads(item)
    if not isinstance(read, dict) or not all(isinstance(values, list) for values in read.values()):
        raise ValueError("a rule of a project cannot be read")
    return {name: tuple(map(rows.string, values)) for name, values in read.items()}


def project(*row: Any) -> Project:
    """From PROJECT_COLUMNS, without its members. Raises ValueError."""
    id, name, about, created, updated, crc = row
    if crc != rows.shown_crc(id, name, about, created):
        raise UserDataChanged(f"project {str(id)[:16]} has changed since it was written")
    return Project(rows.string(id), rows.string(name), rows.string(about), created, rows.string(updated))


def member(*row: Any) -> tuple[str, Member]:
    """From MEMBER_COLUMNS: its project, and the member. Raises ValueError."""
    *columns, crc = row
    if crc != rows.shown_crc(*columns):
        raise UserDataChanged(f"a part of project {str(columns[0])[:16]} has changed since it was written")
    owner, kind, item, title, added = map(rows.string, columns)
    if kind not in KINDS:
        raise ValueError(f"a part of project {owner[:16]} is of no kind that is known")
    if kind == "rule":
        rule_of(item)
    return owner, Member(kind, item, title, added)


def read(database: Database, ids: Iterable[str] | None = None) -> list[Project]:
    """The projects with their members, by name: all, or those with these ids. Raises StoreDamaged."""
    among, values = ("1 = 1", {}) if ids is None else ("{} IN (SELECT value FROM json_each(:ids))", {"ids": list(ids)})
    members: dict[str, list[Member]] = defaultdict(list)
    with database.snapshot():
        sql = f"SELECT {PROJECT_COLUMNS} FROM projects WHERE {among.format('id')} ORDER BY created, id"
        found = database.read(project, sql, **values)
        sql = f"""SELECT {MEMBER_COLUMNS} FROM project_members WHERE {among.format("project")}
            ORDER BY project, added, kind, item"""
        for owner, each in database.read(member, sql, **values):
            members[owner].append(each)
    named = sorted(found, key=lambda each: each.name.casefold())
    return [replace(each, members=tuple(members[each.id])) for each in named]


def names(database: Database) -> dict[str, str]:
    """Id -> name, of every project."""
    return {each.id: each.name for each in read(database)}


def require(database: Database, id: str) -> Project:
    """The project with this id. Raises NotKnown."""
    found = read(database, [id])
    if not found:
        raise unknown_project()
    return found[0]


def state(database: Database) -> Hashable:
    """A value that changes when a project or what belongs to it changes."""
    (of_projects,) = database.query("SELECT count(*), max(updated), sum(crc) FROM projects")
    (of_members,) = database.query("SELECT count(*), sum(crc) FROM project_members")
    return of_projects, of_members


def add(database: Database, name: str, about: str = "", members: Iterable[Member] = ()) -> Project:
    """Make a project. Raises UsageError for a name that is empty or too long, NameTaken, StoreProtected."""
    database.require_writable("Projects")
    now = _now()
    with database.transaction("user"):
        new = Project(secrets.token_hex(_ID_BYTES), _free_name(database, name), _about(about), now, now)
        _insert(database, new, _dated(members, now))
        return require(database, new.id)


def change(
    database: Database, id: str, *, name: str | None = None, about: str | None = None
) -> tuple[Project, Project]:
    """Rename or describe a project; None leaves a value as it is. Returns it as it was and as it is.

    Raises NotKnown, NameTaken, UsageError.
    """
    database.require_writable("Projects")
    with database.transaction("user"):
        old = require(database, id)
        new_name = old.name if name is None else _free_name(database, name, but=id)
        new = replace(old, name=new_name, about=old.about if about is None else _about(about), updated=_now())
        _update(database, new)
    return old, new


def undo_change(database: Database, before: Project, after: Project) -> None:
    """Give a project its earlier name and description. Raises NotKnown, ChangedElsewhere if they were changed since."""
    with database.transaction("user"):
        now = require(database, before.id)
        if (now.name, now.about) not in ((after.name, after.about), (before.name, before.about)):
            raise ChangedElsewhere("This project was changed again since.", "It stays as it is now.")
        _update(database, replace(now, name=_free_name(database, before.name, but=before.id), about=before.about))


def change_members(
    database: Database, id: str, *, added: Iterable[Member] = (), removed: Iterable[Member] = ()
) -> tuple[list[Member], list[Member]]:
    """Add members to a project, and remove others; returns those that were, in this order. Raises NotKnown, UsageError.

    A paper that is added is no longer excluded, and one that is excluded no longer added.
    """
    database.require_writable("Projects")
    now, added, removed = _now(), list(added), list(removed)
    opposite: dict[Kind, Kind] = {"paper": "excluded", "excluded": "paper"}
    removed += [replace(each, kind=opposite[each.kind]) for each in added if each.kind in opposite]
    with database.transaction("user"):
        old = require(database, id)
        present = {(each.kind, each.item): each for each in old.members}
        gone = [present[key] for key in dict.fromkeys((each.kind, each.item) for each in removed) if key in present]
        new = {(each.kind, each.item): each for each in added if (each.kind, each.item) not in present}
        if len(present) - len(gone) + len(new) > MOST_MEMBERS:
            raise UsageError(f"A project has at most {MOST_MEMBERS:,} parts.", "Use a rule, such as a tag.")
        dated = _dated(new.values(), now)
        _delete_members(database, id, gone)
        _insert_members(database, id, dated)
        if gone or dated:
            _update(database, replace(old, updated=now))
    return dated, gone


def remove(database: Database, id: str) -> Project:
    """Delete a project, not what belongs to it; returns it. Raises NotKnown."""
    database.require_writable("Projects")
    with database.transaction("user"):
        old = require(database, id)
        database.execute("DELETE FROM projects WHERE id = :id", id=id)
    return old


def restore(database: Database, old: Project) -> None:
    """Put a deleted project back, as it was. Raises NameTaken if its name was taken since."""
    database.require_writable("Projects")
    with database.transaction("user"):
        if not read(database, [old.id]):
            _insert(database, replace(old, name=_free_name(database, old.name)), old.members)


def follow(database: Database, old: str, new: str) -> None:
    """Give the places of a paper in projects to the paper that replaces it. The caller has a transaction."""
    sql = f"SELECT {MEMBER_COLUMNS} FROM project_members WHERE kind IN ('paper', 'excluded') AND item = :old"
    for owner, each in database.read(member, sql, old=old):
        _delete_members(database, owner, [each])
        key = {"project": owner, "kind": each.kind, "item": new}
        there = "SELECT item FROM project_members WHERE project = :project AND kind = :kind AND item = :item"
        if not database.query(there, **key):
            _insert_members(database, owner, [replace(each, item=new)])


def projects_of(database: Database, kind: Kind, item: str) -> list[Project]:
    """The projects that an item belongs to, by name."""
    sql = "SELECT project FROM project_members WHERE kind = :kind AND item = :item"
    owners = [owner for (owner,) in database.query(sql, kind=kind, item=item)]
    return read(database, owners) if owners else []


def unknown_project() -> NotKnown:
    """The error for a project that does not exist."""
    return NotKnown("There is no such project.", "It may have been deleted.")


def same_name(one: str, other: str) -> bool:
    """Whether two names of projects are the same but for case and spaces."""
    return one_line(one).casefold() == one_line(other).casefold()


def _free_name(database: Database, name: str, but: str = "") -> str:
    """The name as it is stored. Raises NameTaken, UsageError. but: the project that may have it."""
    named = storable(one_line(name)).strip()
    if not named:
        raise UsageError("The project has no name.", "Give it one.")
    if len(named) > LONGEST_NAME:
        raise UsageError(f"The name of a project has at most {LONGEST_NAME} characters.", "Shorten it.")
    if any(each.id != but and same_name(each.name, named) for each in read(database)):
        raise NameTaken(f"There is a project called “{named}” already.", "Choose another name.")
    return named


def _about(text: str) -> str:
    if len(text) > LONGEST_ABOUT:
        raise UsageError(f"The description of a project has at most {LONGEST_ABOUT:,} characters.", "Shorten it.")
    return storable(text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _dated(members: Iterable[Member], now: str) -> list[Member]:
    return [each if each.added else replace(each, added=now) for each in members]


def _insert(database: Database, new: Project, members: Iterable[Member]) -> None:
    row: dict[str, object] = {name: getattr(new, name) for name in ("id", "name", "about", "created", "updated")}
    database.insert("projects", [{**row, "crc": _crc(new)}])
    unique = {(each.kind, each.item): each for each in members}
    if len(unique) > MOST_MEMBERS:
        raise UsageError(f"A project has at most {MOST_MEMBERS:,} parts.", "Use a rule, such as a tag.")
    _insert_members(database, new.id, unique.values())


def _update(database: Database, new: Project) -> None:
    sql = "UPDATE projects SET name = :name, about = :about, updated = :updated, crc = :crc WHERE id = :id"
    database.execute(sql, name=new.name, about=new.about, updated=new.updated, crc=_crc(new), id=new.id)


def _crc(project: Project) -> int:
    return rows.shown_crc(project.id, project.name, project.about, project.created)


def _insert_members(database: Database, project: str, members: Iterable[Member]) -> None:
    listed = [
        {"project": project, "kind": each.kind, "item": each.item, "title": storable(each.title), "added": each.added}
        for each in members
    ]
    database.insert("project_members", [{**row, "crc": rows.shown_crc(*row.values())} for row in listed])


def _delete_members(database: Database, project: str, members: Iterable[Member]) -> None:
    sql = "DELETE FROM project_members WHERE project = :project AND kind = :kind AND item = :item"
    keys = [{"project": project, "kind": each.kind, "item": each.item} for each in members]
    if keys:
        database.execute_many(sql, keys)
