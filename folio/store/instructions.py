"""Instructions: what people ask of the wording of answers, in the tables `instructions`, `project_instructions`.

As in rows.py, a row that has changed since it was written raises ValueError.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from folio.errors import NameTaken, NotKnown, UsageError
from folio.store import rows
from folio.store.database import Database, UserDataChanged, storable
from folio.text import one_line

INSTRUCTION_COLUMNS = "id, name, text, created, updated, crc"
CHOICE_COLUMNS = "project, instruction"
MAX_NAME, MAX_INSTRUCTION, MOST = 60, 600, 100  # characters of a name and a text; instructions
_ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a person asks of the wording of an answer."""

    id: str  # 16 hex digits; of a ready one (answer/instructions.py) words with hyphens
    name: str
    text: str
    created: str = ""  # ISO time in UTC; "" for a ready one
    updated: str = ""


def instruction(*row: Any) -> Instruction:
    """From INSTRUCTION_COLUMNS. Raises ValueError."""
    *columns, crc = row
    kept = Instruction(*map(rows.string, columns))
    if crc != _crc(kept):
        raise UserDataChanged(f"instruction {kept.id[:16]} has changed since it was written")
    return kept


def project_instruction(*row: Any) -> tuple[str, str]:
    """From CHOICE_COLUMNS: a project, and the instruction that its questions are asked with. Raises ValueError."""
    project, chosen = map(rows.string, row)
    return project, chosen


def read(database: Database) -> list[Instruction]:
    """All instructions, by name. Raises StoreDamaged."""
    found = database.read(instruction, f"SELECT {INSTRUCTION_COLUMNS} FROM instructions")
    return sorted(found, key=lambda each: (each.name.casefold(), each.id))


def add(database: Database, name: str, text: str, reserved: Sequence[str] = ()) -> Instruction:
    """Add an instruction. reserved: names that it may not have.

    Raises NameTaken, UsageError for words that are missing or too long, StoreError if the library cannot be written.
    """
    database.require_writable("Instructions")
    now = _now()
    new = Instruction(secrets.token_hex(_ID_BYTES), _name(name), _text(text), now, now)
    with database.transaction("user"):
        known = read(database)
        if len(known) >= MOST:
            raise NameTaken(f"There are {MOST} instructions already.", "Delete one that you do not use.")
        _require_free(new, known, reserved)
        database.insert("instructions", [_row(new)])
    return new


def change(
    database: Database, id: str, *, name: str | None = None, text: str | None = None, reserved: Sequence[str] = ()
) -> tuple[Instruction, Instruction]:
    """Change the name or the text; None leaves it as it is. Returns the instruction as it was and as it is.

    Raises NotKnown, and as `add`.
    """
    database.require_writable("Instructions")
    with database.transaction("user"):
        known = {each.id: each for each in read(database)}
        if id not in known:
            raise unknown_instruction()
        old = known[id]
        new = replace(
            old,
            name=old.name if name is None else _name(name),
            text=old.text if text is None else _text(text),
            updated=max(_now(), old.updated),
        )
        _require_free(new, [each for each in known.values() if each.id != id], reserved)
        database.insert("instructions", [_row(new)], replace=True)
    return old, new


def put(database: Database, kept: Instruction) -> None:
    """Store an instruction in the place of the one with its id, if there is one; used to undo changes."""
    database.require_writable("Instructions")
    with database.transaction("user"):
        database.insert("instructions", [_row(kept)], replace=True)


def remove(database: Database, id: str) -> tuple[Instruction, list[str]]:
    """Delete an instruction; returns it, and the projects that were asked with it. Raises NotKnown, StoreError."""
    database.require_writable("Instructions")
    with database.transaction("user"):
        found = [each for each in read(database) if each.id == id]
        if not found:
            raise unknown_instruction()
        projects = [project for project, chosen in choices(database).items() if chosen == id]
        database.execute("DELETE FROM instructions WHERE id = :id", id=id)
        database.execute("DELETE FROM project_instructions WHERE instruction = :id", id=id)
    return found[0], projects


def choices(database: Database) -> dict[str, str]:
    """Project -> the id of the instruction that its questions are asked with. Raises StoreDamaged."""
    return dict(database.read(project_instruction, f"SELECT {CHOICE_COLUMNS} FROM project_instructions"))


def choose(database: Database, project: str, instruction: str | None) -> None:
    """Have a project's questions asked with an instruction, by its id; None for none."""
    database.require_writable("Instructions")
    with database.transaction("user"):
        if instruction is None:
            database.execute("DELETE FROM project_instructions WHERE project = :project", project=project)
        else:
            row = {"project": storable(project), "instruction": instruction}
            database.insert("project_instructions", [row], replace=True)


def unknown_instruction() -> NotKnown:
    """The error for an instruction that does not exist."""
    return NotKnown("There is no such instruction.", "It may have been deleted. Choose another one, or none.")


def _name(name: str) -> str:
    """A name on one line. Raises UsageError."""
    line = one_line(storable(name))
    if not line or len(line) > MAX_NAME:
        raise UsageError(f"An instruction has a name of 1 to {MAX_NAME} characters.", "Give it such a name.")
    return line


def _text(text: str) -> str:
    """The words of an instruction. Raises UsageError."""
    words = storable(text).strip()
    if not words or len(words) > MAX_INSTRUCTION:
        raise UsageError(f"An instruction has 1 to {MAX_INSTRUCTION} characters.", "Say what you want in that length.")
    return words


def _require_free(new: Instruction, others: Sequence[Instruction], reserved: Sequence[str]) -> None:
    """Raises NameTaken: people choose an instruction by its name."""
    taken = {name.casefold() for name in (*reserved, *(each.name for each in others))}
    if new.name.casefold() in taken:
        raise NameTaken(f"There is an instruction “{new.name}” already.", "Give this one another name.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _crc(kept: Instruction) -> int:
    """The checksum of what a person wrote."""
    return rows.shown_crc(kept.id, kept.name, kept.text, kept.created)


def _row(kept: Instruction) -> dict[str, object]:
    """The values of INSTRUCTION_COLUMNS, by name."""
    names = INSTRUCTION_COLUMNS.removesuffix(", crc").split(", ")
    values: dict[str, object] = {name: getattr(kept, name) for name in names}
    return {**values, "crc": _crc(kept)}
