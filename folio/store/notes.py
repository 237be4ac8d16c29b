"""Notes: places in papers that a person marked, each with a colour and words, in the tables `notes`, `note_quotes`.

Annotations of Zotero are notes, too, which only Zotero changes: `note_origins` names them.

A place is words of a paper, a page, an area of a page, or the whole paper; without words, its quote is "".

A quote keeps its place, its words and the characters around them, so that its place can be found again when the text of
its paper changes (note_places.py), and it stays when its paper is removed. A note that is deleted stays in the daily
copies of user.sqlite until newer ones replace them.

As in rows.py, a row that has changed since it was written raises ValueError.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from folio.errors import ChangedElsewhere, NotKnown, UsageError
from folio.store import rows
from folio.store.database import Database, UserDataChanged, storable
from folio.text import one_line, shorten

Colour = Literal["yellow", "green", "blue", "pink", ""]
# In the text of the paper: where it was marked, elsewhere, or nowhere
State = Literal["here", "moved", "lost"]
MAX_TEXT, MAX_QUOTES = 50_000, 50  # characters of a text, quotes of a note
Area = tuple[float, float, float, float]  # left, top, right, bottom in points, of the page as shown
_ID_BYTES = 8
NOTE_COLUMNS = "id, colour, text, statement, conversation, turn, created, updated, crc"
ORIGIN_COLUMNS = "note, item, attachment, shade, state, crc"
QUOTE_COLUMNS = 'note, place, paper, start, "end", quote, before, after, page, label, title, file, state, text_crc, crc'


@dataclass(frozen=True, slots=True)
class NoteQuote:
    """A span of a paper's text; without words a page, an area of it, or the whole paper."""

    paper: str
    start: int  # without words: where the page begins
    end: int
    quote: str
    before: str  # the characters before it; without words: the area
    after: str  # without words: those at the start of the page
    page: int  # physical, from 1; 0: the whole paper
    label: str  # printed on the page, or its number
    title: str  # of the paper
    file: str
    state: State
    text_crc: int  # of the text that it was last found, or not found, in

    @property
    def area(self) -> Area | None:
        """The area of a note on a part of a page, such as a figure. Raises ValueError."""
        if self.quote or not self.before:
            return None
        left, top, right, bottom = map(float, self.before.split())
        return left, top, right, bottom


@dataclass(frozen=True, slots=True)
class NoteOrigin:
    """The annotation of Zotero that a note is."""

    item: str  # "library/items/KEY"
    attachment: str  # of its PDF, in the same form
    shade: str  # its colour there: "#ffd400", "" for none
    state: str  # a hash of what Zotero had when the note was made


@dataclass(frozen=True, slots=True)
class Note:
    id: str  # 16 hex digits
    colour: Colour
    text: str  # the person's own words
    statement: str  # a statement of an answer; "" for none
    conversation: str | None  # with that answer
    turn: int | None
    created: str  # ISO time in UTC
    updated: str
    quotes: tuple[NoteQuote, ...]
    origin: NoteOrigin | None = None  # None: a person made it here


def note(*row: Any) -> Note:
    """From NOTE_COLUMNS, without its quotes. Raises ValueError."""
    *columns, crc = row
    id, colour, text, statement, conversation, turn, created, updated = columns
    label = f"note {str(id)[:16]}"
    if crc != _note_crc(colour, text, statement, created):
        raise UserDataChanged(f"{label} has changed since it was written")
    if colour not in get_args(Colour):
        raise ValueError(f"{label} has no colour that is known")
    if conversation is None:
        turn = None
    return Note(rows.string(id), colour, text, statement, conversation, turn, created, rows.string(updated), ())


def note_quote(*row: Any) -> tuple[str, int, NoteQuote]:
    """From QUOTE_COLUMNS: its note, its place in it, and the quote. Raises ValueError."""
    note, place, *columns, crc = row
    quote = NoteQuote(*columns)
    if crc != rows.shown_crc(*columns):
        raise UserDataChanged(f"a quote of note {str(note)[:16]} has changed since it was written")
    _ = quote.area
    if quote.state not in get_args(State) or not 0 <= quote.start < quote.end:
        raise ValueError(f"a quote of note {str(note)[:16]} cannot be read")
    return rows.string(note), rows.number(place), quote


def note_origin(*row: Any) -> tuple[str, NoteOrigin]:
    """From ORIGIN_COLUMNS: its note, and the origin. Raises ValueError."""
    note, *columns, crc = row
    if crc != rows.shown_crc(note, *columns):
        raise UserDataChanged(f"the origin of note {str(note)[:16]} has changed since it was written")
    return rows.string(note), NoteOrigin(*map(rows.string, columns))


def read(
    database: Database, *, ids: Iterable[str] | None = None, paper: str = "", colour: Colour | None = None
) -> list[Note]:
    """The notes with their quotes, oldest first: all, or those with these ids, a quote of this paper, this colour.

    Raises StoreDamaged.
    """
    only = ["1 = 1"]
    if ids is not None:
        only.append("id IN (SELECT value FROM json_each(:ids))")
    if paper:
        only.append("id IN (SELECT note FROM note_quotes WHERE paper = :paper)")
    if colour is not None:
        only.append("colour = :colour")
    chosen = " AND ".join(only)
    values = {"ids": list(ids or ()), "paper": paper, "colour": colour}
    quotes: dict[str, list[NoteQuote]] = defaultdict(list)
    with database.snapshot():
        notes = database.read(note, f"SELECT {NOTE_COLUMNS} FROM notes WHERE {chosen} ORDER BY created, id", **values)
        sql = f"""SELECT {QUOTE_COLUMNS} FROM note_quotes WHERE note IN (SELECT id FROM notes WHERE {chosen})
            ORDER BY note, place"""
        for id, _, quote in database.read(note_quote, sql, **values):
            quotes[id].append(quote)
        sql = f"SELECT {ORIGIN_COLUMNS} FROM note_origins WHERE note IN (SELECT id FROM notes WHERE {chosen})"
        origins = dict(database.read(note_origin, sql, **values))
    return [replace(each, quotes=tuple(quotes[each.id]), origin=origins.get(each.id)) for each in notes]


def origins(database: Database) -> dict[str, tuple[str, NoteOrigin]]:
    """Item in Zotero -> the id of its note, and its origin. Raises StoreDamaged."""
    found = database.read(note_origin, f"SELECT {ORIGIN_COLUMNS} FROM note_origins")
    return {origin.item: (note, origin) for note, origin in found}


def put_annotations(database: Database, changed: Iterable[Note], gone: Iterable[str]) -> None:
    """Keep notes in step with Zotero's annotations. changed: new ones, and those that take the place of the note with
    their id; each has an origin. gone: ids."""
    database.require_writable("Notes")
    with database.transaction("user"):
        for note in changed:
            assert note.origin is not None
            database.execute("DELETE FROM notes WHERE id = :id", id=note.id)
            _insert(database, note)
            origin = [getattr(note.origin, name) for name in ("item", "attachment", "shade", "state")]
            names = ORIGIN_COLUMNS.split(", ")
            row = dict(zip(names, (note.id, *origin, rows.shown_crc(note.id, *origin)), strict=True))
            database.insert("note_origins", [row])
        for id in gone:
            database.execute("DELETE FROM notes WHERE id = :id", id=id)


def _require_own(note: Note) -> None:
    """Raises UsageError for an annotation of Zotero."""
    if note.origin is not None:
        raise UsageError(
            "This note is an annotation of Zotero.", "Change or delete it there: Folio takes that over."
        )


def new_id() -> str:
    """The id of a new note."""
    return secrets.token_hex(_ID_BYTES)


def require(database: Database, id: str) -> Note:
    """The note with this id. Raises NotKnown."""
    notes = read(database, ids=[id])
    if not notes:
        raise unknown_note()
    return notes[0]


def count(database: Database, paper: str) -> int:
    """The number of notes on a paper."""
    sql = "SELECT count(DISTINCT note) FROM note_quotes WHERE paper = :paper"
    return int(database.query(sql, paper=paper)[0][0])


def marked_words(database: Database, papers: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
    """Paper -> the spans of its words that notes are on, in the text that it has now."""
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    sql = """SELECT q.paper, q.start, q."end" FROM note_quotes q JOIN papers p ON p.id = q.paper
        WHERE q.quote != '' AND q.state != 'lost' AND q.text_crc = p.text_crc
        AND q.paper IN (SELECT value FROM json_each(:papers)) ORDER BY q.paper, q.start"""
    for paper, start, end in database.query(sql, papers=list(papers)):
        spans[rows.string(paper)].append((rows.number(start), rows.number(end)))
    return spans


def state(database: Database) -> Hashable:
    """A value that changes when a note is added, changed or deleted, or a change is undone."""
    return database.query("SELECT count(*), max(updated), sum(crc) FROM notes")[0]


def add(
    database: Database,
    quotes: Sequence[NoteQuote],
    *,
    colour: Colour = "",
    text: str = "",
    statement: str = "",
    conversation: str | None = None,
    turn: int | None = None,
) -> Note:
    """Add a note on these places. The conversation and turn of its statement are kept if the conversation is stored.

    Raises UsageError for too long a text, StoreError if the library cannot be written.
    """
    database.require_writable("Notes")
    _require_short(text, statement)
    now = _now()
    with database.transaction("user"):
        place = (conversation, turn)
        new = Note(new_id(), colour, storable(text), storable(statement), *place, now, now, tuple(quotes))
        return _insert(database, new)


def _insert(database: Database, new: Note) -> Note:
    """Insert a note, without its conversation if that is not stored. The caller has a transaction."""
    stored = "SELECT id FROM conversations WHERE id = :id"
    if new.conversation is None or not database.query(stored, id=new.conversation):
        new = replace(new, conversation=None, turn=None)
    database.insert("notes", [_note_row(new)])
    database.insert(
        "note_quotes", [{"note": new.id, "place": at, **_quote_row(quote)} for at, quote in enumerate(new.quotes, 1)]
    )
    return new


def change(
    database: Database, id: str, *, text: str | None = None, colour: Colour | None = None, before: str | None = None
) -> tuple[Note, Note]:
    """Change a note's text or colour; None leaves it as it is. Returns it as it was and as it is.

    before: the text that was edited. If the note has another one by now, ChangedElsewhere is raised, so that of two
    people who edit a note none loses words. Raises NotKnown, UsageError, StoreError.
    """
    database.require_writable("Notes")
    _require_short(text or "")
    with database.transaction("user"):
        old = require(database, id)
        _require_own(old)
        new_text = old.text if text is None else storable(text)
        if before is not None and old.text not in (storable(before), new_text):
            raise ChangedElsewhere(
                f"This note was changed elsewhere meanwhile. It is now: “{shorten(one_line(old.text), 300)}”.",
                "Save again to put your words in their place.",
            )
        after = replace(
            old,
            text=new_text,
            colour=old.colour if colour is None else colour,
            updated=max(_now(), old.updated),
        )
        _update(database, after)
    return old, after


def _update(database: Database, note: Note) -> None:
    row = _note_row(note)
    sql = "UPDATE notes SET text = :text, colour = :colour, updated = :updated, crc = :crc WHERE id = :id"
    database.execute(sql, **{name: row[name] for name in ("text", "colour", "updated", "crc", "id")})


def undo_change(database: Database, before: Note, after: Note) -> None:
    """Give a note the text, the colour and the time that it had before a change.

    Raises NotKnown, and ChangedElsewhere if it was changed again since.
    """
    with database.transaction("user"):
        now = require(database, before.id)
        if (now.text, now.colour) not in ((after.text, after.colour), (before.text, before.colour)):
            raise ChangedElsewhere("This note was changed again since.", "It stays as it is now.")
        _update(database, before)


def remove(database: Database, id: str) -> Note:
    """Delete a note; returns it. Raises NotKnown, StoreError."""
    database.require_writable("Notes")
    with database.transaction("user"):
        note = require(database, id)
        _require_own(note)
        database.execute("DELETE FROM notes WHERE id = :id", id=id)
    return note


def restore(database: Database, note: Note) -> None:
    """Put a note back that was deleted, as it was, with its conversation if that is still there."""
    database.require_writable("Notes")
    with database.transaction("user"):
        if not read(database, ids=[note.id]):
            _insert(database, note)


def replace_quotes(database: Database, changes: Iterable[tuple[str, int, NoteQuote, NoteQuote]]) -> None:
    """Store new places of quotes: note, place in it, old quote, new quote.

    A quote that is no longer the old one stays. The caller has a transaction.
    """
    for note, place, old, new in changes:
        values = {**_quote_row(new), "note": note, "place": place, "old_crc": _quote_row(old)["crc"]}
        columns = ", ".join(f'"{name}" = :{name}' for name in _quote_row(new))
        sql = f"UPDATE note_quotes SET {columns} WHERE note = :note AND place = :place AND crc = :old_crc"
        database.execute(sql, **values)


def follow(database: Database, old: str, new: str) -> None:
    """Give the quotes of a paper to the paper that replaces it. The caller has a transaction."""
    sql = f"SELECT {QUOTE_COLUMNS} FROM note_quotes WHERE paper = :paper"
    quotes = database.read(note_quote, sql, paper=old)
    replace_quotes(database, ((*row, replace(row[-1], paper=new, state="moved")) for row in quotes))


def unknown_note() -> NotKnown:
    """The error for a note that does not exist."""
    return NotKnown("There is no such note.", "It may have been deleted.")


def _require_short(*texts: str) -> None:
    if any(len(text) > MAX_TEXT for text in texts):
        raise UsageError(f"A note has at most {MAX_TEXT:,} characters.", "Shorten it, or write several notes.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _note_crc(*written: object) -> int:
    """The checksum of the columns that a person wrote: colour, text, statement, created."""
    return rows.shown_crc(*written)


def _note_row(note: Note) -> dict[str, object]:
    """The values of NOTE_COLUMNS, by name."""
    values: dict[str, object] = {name: getattr(note, name) for name in NOTE_COLUMNS.removesuffix(", crc").split(", ")}
    return {**values, "crc": _note_crc(note.colour, note.text, note.statement, note.created)}


def _quote_row(quote: NoteQuote) -> dict[str, object]:
    """The values of QUOTE_COLUMNS without the note and the place, by name."""
    names = [name.strip('"') for name in QUOTE_COLUMNS.split(", ")[2:-1]]
    values: dict[str, object] = {name: getattr(quote, name) for name in names}
    return {**values, "crc": rows.shown_crc(*values.values())}
