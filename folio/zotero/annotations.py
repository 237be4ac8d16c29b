"""Annotations of PDFs in Zotero: read from its tables, and kept in step as notes that only Zotero changes.

An annotation is anchored on its words where its page has them; else on the area that it marks, or on the page.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from folio.errors import UsageError
from folio.papers.model import Paper
from folio.store import notes
from folio.store.library import Library
from folio.store.note_places import place_without_words, quote_at, spans_of
from folio.store.notes import MAX_TEXT, Area, Colour, Note, NoteOrigin, NoteQuote
from folio.zotero.database import Tables
from folio.zotero.link import is_key

# Numbers of Zotero's types: 1 highlight, 2 note, 3 image, 4 ink, 5 underline, 6 text
_KINDS = range(1, 7)
_MOST = 20_000  # annotations of a file
_MOST_RECTS, _LONGEST_POSITION = 500, 200_000
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SHADE = re.compile(r"#[0-9a-f]{6}")
# Folio's colours, and Zotero's that are named alike
_COLOURS: Mapping[Colour, tuple[int, int, int]] = {
    "yellow": (255, 212, 0), "green": (95, 178, 54), "blue": (46, 168, 229), "pink": (229, 110, 238),
}  # fmt: skip
_GREY = 40  # a colour whose parts differ by less is none
Rects = tuple[Area, ...]
# Finds the areas around rectangles of PDFs, as their pages are shown; None where there is none. It is given each file
# with the page (from 1) and the rectangles of each place in it.
Places = tuple[Path, tuple[tuple[int, Rects], ...]]
FindAreas = Callable[[Sequence[Places]], Sequence[Sequence[Area | None]]]


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation of a PDF in Zotero, outside the trash."""

    key: str
    text: str  # the marked words; "" for none
    comment: str
    shade: str  # "#ffd400", "" for none
    page: int  # physical, from 1
    offset: int  # about how many characters of the page are before it
    rects: Rects  # in the PDF's own coordinates, whose origin is below
    tags: tuple[str, ...]
    created: str
    modified: str

    @property
    def colour(self) -> Colour:
        """The colour of Folio that is closest."""
        if not self.shade:
            return ""
        parts = [int(self.shade[at : at + 2], 16) for at in (1, 3, 5)]
        if max(parts) - min(parts) < _GREY:
            return ""
        return min(_COLOURS, key=lambda name: math.dist(_COLOURS[name], parts))

    @property
    def note(self) -> str:
        """Its comment and its tags."""
        tags = f"Tags: {', '.join(self.tags)}." if self.tags else ""
        return "\n\n".join(filter(None, (self.comment, tags)))[:MAX_TEXT]


def read_annotations(tables: Tables, trash: set[int]) -> dict[int, tuple[Annotation, ...]]:
    """Attachment -> its annotations, in order. Zotero has them since version 6."""
    if "itemAnnotations" not in tables.names:
        return {}
    tags: defaultdict[int, list[str]] = defaultdict(list)
    for item, name in tables.rows(
        """SELECT t.itemID, substr(n.name, 1, 200) FROM itemTags t JOIN tags n ON n.tagID = t.tagID
            WHERE t.itemID IN (SELECT itemID FROM itemAnnotations) ORDER BY t.itemID, n.name"""
    ):
        tags[item].append(_line(name))
    found: defaultdict[int, list[Annotation]] = defaultdict(list)
    for item, parent, key, kind, *fields in tables.rows(
        f"""SELECT a.itemID, a.parentItemID, i.key, a.type, substr(a.text, 1, {MAX_TEXT}),
            substr(a.comment, 1, {MAX_TEXT}), a.color, substr(a.sortIndex, 1, 100),
            substr(a.position, 1, {_LONGEST_POSITION}), i.dateAdded, i.dateModified
            FROM itemAnnotations a JOIN items i ON i.itemID = a.itemID ORDER BY a.parentItemID, a.sortIndex, a.itemID"""
    ):
        is_known = type(parent) is int and type(key) is str and is_key(key) and kind in _KINDS and item not in trash
        if is_known and len(found[parent]) < _MOST and (one := _annotation(key, tags.get(item, ()), *fields)):
            found[parent].append(one)
    return {parent: tuple(each) for parent, each in found.items()}


def _annotation(
    key: str, tags: Iterable[str], words: Any, comment: Any, shade: Any, order: Any, position: Any, *times: Any
) -> Annotation | None:
    """None if it has no place on a page."""
    try:
        place = json.loads(position)
        page = place["pageIndex"]
        rects = _rects(place)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if type(page) is not int or not 0 <= page < 10**6:
        return None
    offset = re.fullmatch(r"\d{1,9}\|(\d{1,9})\|.*", order if type(order) is str else "")
    created, modified = (time if type(time) is str and len(time) < 50 else "" for time in times)
    shade = shade.lower() if type(shade) is str else ""
    return Annotation(
        key,
        _line(words),
        _text(comment),
        shade if _SHADE.fullmatch(shade) else "",
        page + 1,
        int(offset[1]) if offset else 0,
        rects,
        tuple(filter(None, tags)),
        created,
        modified,
    )


def _rects(place: Mapping[str, Any]) -> Rects:
    """The rectangles of a position, and the one around each line of ink. Raises ValueError and others for none."""
    rects = [tuple(map(float, rect)) for rect in place.get("rects", ())[:_MOST_RECTS]]
    for line in place.get("paths", ())[:_MOST_RECTS]:
        xs, ys = list(map(float, line[::2])), list(map(float, line[1::2]))
        rects.append((min(xs), min(ys), max(xs), max(ys)))
    if not all(len(rect) == 4 and all(map(math.isfinite, rect)) for rect in rects):
        raise ValueError("no rectangles")
    return tuple((left, low, right, high) for left, low, right, high in rects)


def _line(value: Any) -> str:
    return " ".join(_text(value).split())


def _text(value: Any) -> str:
    """A text of the database, whose lines stay."""
    return _CONTROL.sub(" ", value.replace("\r\n", "\n")).strip() if type(value) is str else ""


@dataclass(frozen=True, slots=True)
class AnnotationsTaken:
    """What `keep_in_step` has done."""

    new: int = 0
    changed: int = 0
    removed: int = 0


def keep_in_step(
    library: Library,
    annotated: Mapping[str, Sequence[tuple[str, Path, Sequence[Annotation]]]],
    is_gone: Callable[[str], bool],
    find_areas: FindAreas,
) -> AnnotationsTaken:
    """Store annotations as notes, and remove the notes of those that are gone. The caller holds the writer lock.

    annotated: paper -> the link, the file and the annotations of its attachments. is_gone: whether this Zotero library
    has no attachment of that link any more.
    """
    known = notes.origins(library.database)
    states = {item: origin.state for item, (_, origin) in known.items()}
    present: set[str] = set()
    attachments: set[str] = set()
    changed: list[_Changed] = []
    papers = {paper.id: paper for paper in library.papers_by_id(annotated)}
    for id, of_paper in annotated.items():
        for attachment, path, every in of_paper:
            attachments.add(attachment)
            items = {f"{attachment.rpartition('/')[0]}/{each.key}": each for each in every}
            present |= items.keys()
            if paper := papers.get(id):
                new = {
                    item: each
                    for item, each in items.items()
                    if each.page <= paper.page_count and states.get(item) != _state(each, id)
                }
                quotes = {item: _words(library, paper, each) for item, each in new.items()}
                changed.append(_Changed(paper, attachment, path, new, quotes))
    gone = [
        note
        for item, (note, origin) in known.items()
        if item not in present and (origin.attachment in attachments or is_gone(origin.attachment))
    ]
    made = list(_as_notes(library, changed, known, find_areas))
    if made or gone:
        notes.put_annotations(library.database, made, gone)
    count = sum(note.origin is not None and note.origin.item in known for note in made)
    return AnnotationsTaken(len(made) - count, count, len(gone))


@dataclass(frozen=True, slots=True)
class _Changed:
    """The new and changed annotations of an attachment, by their items in Zotero."""

    paper: Paper
    attachment: str
    path: Path
    annotations: Mapping[str, Annotation]
    quotes: Mapping[str, NoteQuote | None]  # on their words; None if the page has them not

    @property
    def unplaced(self) -> list[str]:
        return [item for item, quote in self.quotes.items() if quote is None]

    @property
    def places(self) -> Places:
        """Of those that are not on words."""
        each = (self.annotations[item] for item in self.unplaced)
        return self.path, tuple((one.page, one.rects) for one in each)


def _state(annotation: Annotation, paper: str) -> str:
    return hashlib.sha256(repr((annotation, paper)).encode(errors="replace")).hexdigest()[:32]


def _as_notes(
    library: Library,
    changed: Sequence[_Changed],
    known: Mapping[str, tuple[str, NoteOrigin]],
    find_areas: FindAreas,
) -> Iterator[Note]:
    """Annotations as notes. All areas are found at once, because a process that draws pages takes long to start."""
    wanted = [each for each in changed if each.unplaced]
    found = find_areas([each.places for each in wanted]) if wanted else ()
    areas: dict[str, Area | None] = {}
    for each, of_file in zip(wanted, found, strict=True):
        areas |= dict(zip(each.unplaced, of_file, strict=True))
    for each in changed:
        for item, quote in each.quotes.items():
            one = each.annotations[item]
            place = quote or _without_words(library, each.paper, one.page, areas.get(item))
            # Marked words that the page has not are shown, in place of a quote.
            words = "" if quote or not one.text else f"“{one.text}”"
            text = "\n\n".join(filter(None, (words, one.note)))[:MAX_TEXT]
            origin = NoteOrigin(item, each.attachment, one.shade, _state(one, each.paper.id))
            created = _time(one.created)
            updated = max(created, _time(one.modified))
            id = known[item][0] if item in known else notes.new_id()
            yield Note(id, one.colour, text, "", None, None, created, updated, (place,), origin)


def _words(library: Library, paper: Paper, annotation: Annotation) -> NoteQuote | None:
    """The quote with the words of an annotation, at the place on its page that is closest to its own; None without."""
    if not annotation.text:
        return None
    spans = spans_of(library, paper, annotation.text, annotation.page)
    if not spans:
        return None
    begin, _ = paper.pages.bounds(annotation.page, paper.length)
    closest = min(spans, key=lambda span: abs(span[0] - begin - annotation.offset))
    try:
        return quote_at(library, paper, *closest)
    except UsageError:  # too long for a quote
        return None


def _without_words(library: Library, paper: Paper, page: int, area: Area | None) -> NoteQuote:
    try:
        return place_without_words(library, paper, page, area)
    except UsageError:  # an area that is none
        return place_without_words(library, paper, page)


def _time(zotero: str) -> str:
    """Zotero's time, "2024-05-06 07:08:09" in UTC, as Folio's."""
    is_time = re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", zotero)
    return f"{zotero.replace(' ', 'T')}.000000+00:00" if is_time else "1970-01-01T00:00:00.000000+00:00"
