"""Notes as JSON models, for the web API and `folio notes list --json`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from folio.bibliography.notes import zotero_link
from folio.schema.papers import Count, Sha256, Strict
from folio.schema.web import ConversationId, FilterValue, TurnNumber
from folio.store.note_places import MAX_QUOTE, NoteFilter, NotesAmong, Order, Place, PlacedNote
from folio.store.notes import MAX_QUOTES, MAX_TEXT, Colour

NOTE = "^[0-9a-f]{16}$"
SHADE = "^(#[0-9a-f]{6})?$"
NoteId = Annotated[str, Field(pattern=NOTE, description="Returned with a new note.")]
MAX_NOTES = 10_000  # in a list or an export of chosen ones
_Offset = Annotated[int, Field(ge=0, le=2**53)]
_NoteText = Annotated[str, Field(max_length=MAX_TEXT)]


AreaOfPage = Annotated[list[float], Field(min_length=4, max_length=4)]
"""Left, top, right, bottom in points, of the page as shown."""


class NoteQuoteJson(Strict):
    """A place in a paper, in characters of its text; without words a page, an area of it, or the whole paper."""

    paper: Sha256
    title: str
    """Of the paper, also if it was removed."""
    file: str
    start: Count
    end: Count
    page: Count
    """Physical, from 1; 0 for the whole paper."""
    label: str
    """The label printed on the page, or its number."""
    quote: str
    """The words at this place; at the last one that is known if they are lost, or the paper was removed."""
    area: AreaOfPage | None
    """Of a note on an area of the page."""
    place: Place
    """"moved": found again in a text that changed; "lost": not found in it; "removed": the paper is no longer in the
    index."""


class NoteJson(Strict):
    """A note on places in papers."""

    id: NoteId
    quotes: list[NoteQuoteJson]
    colour: Colour
    text: str
    """The person's own words."""
    statement: str
    """A statement of an answer that was kept as a note; empty for none."""
    conversation: ConversationId | None
    """The conversation with that answer; null if it was deleted."""
    turn: TurnNumber | None
    paper: str
    """The paper of the first quote, with its file and title."""
    file: str
    title: str
    created: str
    """ISO time in UTC."""
    updated: str
    zotero: str
    """The link that opens the page of the first quote in Zotero; empty if the paper is not there."""
    is_annotation: bool
    """Whether it is an annotation of Zotero, which is changed and deleted there alone."""
    shade: Annotated[str, Field(pattern=SHADE)]
    """Of an annotation of Zotero, its colour there."""


class NoteList(Strict):
    notes: list[NoteJson]
    count: Count
    """The number of all notes that fit."""


class NoteChoice(Strict):
    """A filter of notes. A note must fit every given field."""

    paper: Sha256 | None = None
    query: Annotated[str, Field(max_length=500)] = ""
    """Words that are all in its quotes, its text, its statement, or the title or file of its papers."""
    colour: Colour | None = None
    """Empty for notes without a colour."""
    project: FilterValue | None = None
    """The name or the id of a project: notes on its papers, of its conversations, and those put into it."""
    order: Order = "place"
    """By the title of the paper and the place in it; "paper": and the oldest first; or the newest or last changed
    first."""
    limit: Annotated[int, Field(ge=1, le=MAX_NOTES)] | None = None
    """Maximum number of results; default: all."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of results to skip."""


class ChosenNotes(Strict):
    """These notes, in this order."""

    ids: Annotated[list[NoteId], Field(max_length=MAX_NOTES)]


class SpanOfPaper(Strict):
    """A place in a paper, in characters of its text, [start, end)."""

    paper: Sha256
    start: _Offset
    end: _Offset
    quote: str = ""
    """The words that were shown there. If the text has changed since, the closest place with them is taken."""


class WordsOfPaper(Strict):
    """Words of a paper, which must have them once: there, or on this page."""

    paper: Sha256
    quote: Annotated[str, Field(max_length=MAX_QUOTE)]
    page: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """Physical, from 1."""


class PlaceOfPaper(Strict):
    """The whole paper, a page of it, or an area of that page."""

    paper: Sha256
    page: Annotated[int, Field(ge=0, le=10**6)]
    """Physical, from 1; 0 for the whole paper."""
    area: AreaOfPage | None = None


class NewNote(Strict):
    quotes: Annotated[list[SpanOfPaper | WordsOfPaper | PlaceOfPaper], Field(min_length=1, max_length=MAX_QUOTES)]
    colour: Colour = ""
    text: _NoteText = ""
    statement: _NoteText = ""
    conversation: ConversationId | None = None
    turn: TurnNumber | None = None


class NoteEdits(Strict):
    """Changes of a note; null leaves a field as it is."""

    text: _NoteText | None = None
    colour: Colour | None = None
    before: _NoteText | None = None
    """The text that was edited. If the note has another one nothing is changed (409). Null changes it anyway."""


def note_filter(choice: NoteChoice, among: NotesAmong | None = None) -> NoteFilter:
    """among: the notes of its project."""
    return NoteFilter(choice.paper or "", choice.query, choice.colour, among=among)


def note_json(placed: PlacedNote) -> NoteJson:
    note, first = placed.note, placed.quotes[0] if placed.quotes else None
    quotes = [
        NoteQuoteJson(
            paper=each.quote.paper,
            title=each.quote.title,
            file=each.quote.file,
            start=each.quote.start,
            end=each.quote.end,
            page=each.quote.page,
            label=each.quote.label,
            quote=each.quote.quote,
            area=list(each.quote.area) if each.quote.area else None,
            place=each.place,
        )
        for each in placed.quotes
    ]
    return NoteJson(
        id=note.id,
        quotes=quotes,
        colour=note.colour,
        text=note.text,
        statement=note.statement,
        conversation=note.conversation,
        turn=note.turn,
        paper=first.quote.paper if first else "",
        file=first.quote.file if first else "",
        title=first.quote.title if first else "",
        created=note.created,
        updated=note.updated,
        zotero=zotero_link(first) if first else "",
        is_annotation=note.origin is not None,
        shade=note.origin.shade if note.origin else "",
    )
