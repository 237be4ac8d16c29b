"""The work behind the routes of notes. Thread-safe: each call opens the library for itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from folio.app import App
from folio.bibliography.notes import cited_bibtex
from folio.errors import StoreMissing
from folio.papers.model import require_page
from folio.schema import notes as schema
from folio.search.filters import notes_in
from folio.store import notes
from folio.store.library import Library
from folio.store.note_places import NoteFilter, PlacedNote, listed, place_without_words, placed, quote_at, quote_of
from folio.store.notes import NoteQuote
from folio.store.works import publishers_bibtex
from folio.web.papers import require_papers
from folio.web.undo import PutBack


def list_notes(app: App, choice: schema.NoteChoice) -> schema.NoteList:
    """The notes that fit; none if there is no index yet."""
    every = chosen_notes(app, choice.model_copy(update={"limit": None, "offset": 0}))
    return schema.NoteList(notes=list(map(schema.note_json, _slice(every, choice))), count=len(every))


def chosen_notes(app: App, wanted: schema.NoteChoice | schema.ChosenNotes) -> list[PlacedNote]:
    """These notes, or those that fit; none if there is no index yet. Raises NotKnown for an id that no note has."""
    try:
        library = app.open_library()
    except StoreMissing:
        return []
    with closing(library):
        if isinstance(wanted, schema.ChosenNotes):
            return listed(library, NoteFilter(ids=tuple(wanted.ids)))
        among = notes_in(library, wanted.project) if wanted.project else None
        return _slice(listed(library, schema.note_filter(wanted, among), wanted.order), wanted)


def _slice(every: list[PlacedNote], choice: schema.NoteChoice) -> list[PlacedNote]:
    return every[choice.offset : None if choice.limit is None else choice.offset + choice.limit]


def add_note(app: App, new: schema.NewNote) -> schema.NoteJson:
    """Raises NotKnown for a paper that is not in the library, UsageError for a place or words that it does not have."""
    with closing(app.open_library()) as library:
        note = notes.add(
            library.database,
            [_quote(library, each) for each in new.quotes],
            colour=new.colour,
            text=new.text,
            statement=new.statement,
            conversation=new.conversation,
            turn=new.turn,
        )
        return schema.note_json(placed(library, note.id))


def _quote(
    library: Library, wanted: schema.SpanOfPaper | schema.WordsOfPaper | schema.PlaceOfPaper
) -> NoteQuote:
    with library.reading():
        (paper,) = require_papers(library, [wanted.paper])
        if isinstance(wanted, schema.SpanOfPaper):
            return quote_at(library, paper, wanted.start, wanted.end, wanted.quote)
        if isinstance(wanted, schema.WordsOfPaper):
            return quote_of(library, paper, wanted.quote, wanted.page)
        if wanted.page:
            require_page(paper, wanted.page)
        left, top, right, bottom = wanted.area or (0.0, 0.0, 0.0, 0.0)
        area = (left, top, right, bottom) if wanted.area else None
        return place_without_words(library, paper, wanted.page, area)


def change_note(app: App, id: str, edits: schema.NoteEdits) -> tuple[schema.NoteJson, PutBack]:
    """The note, and what undoes the change. Raises NotKnown, ChangedElsewhere."""

    def put_back() -> None:
        with closing(app.open_library()) as library:
            notes.undo_change(library.database, before, after)

    with closing(app.open_library()) as library:
        before, after = notes.change(library.database, id, text=edits.text, colour=edits.colour, before=edits.before)
        return schema.note_json(placed(library, id)), put_back


def remove_note(app: App, id: str) -> PutBack:
    """Returns what brings the note back. Raises NotKnown."""

    def put_back() -> None:
        with closing(app.open_library()) as library:
            notes.restore(library.database, note)

    with closing(app.open_library()) as library:
        note = notes.remove(library.database, id)
    return put_back


def bibtex_of_notes(app: App, chosen: Sequence[PlacedNote]) -> str:
    """The papers that these notes cite, with the keys that they have in the bibliography of the whole library."""
    try:
        library = app.open_library()
    except StoreMissing:
        return ""
    with closing(library):
        keys = library.citation_keys()
        return cited_bibtex(chosen, keys, publishers_bibtex(library.database, keys))
