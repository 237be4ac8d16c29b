"""The places of notes in the papers of a library: made from offsets or words, and found again when a text changes.

A quote remembers the CRC of the text that it was last looked for in. When its paper has another text, because it was
read again or because a newer version of its file took its place, the quote is searched in it once, and the result is
stored: other offsets, or that it is lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from folio.errors import StoreBusy, UsageError
from folio.papers.model import Paper
from folio.shown_text import counted, short_line
from folio.store import notes, rows
from folio.store.database import storable
from folio.store.library import Library
from folio.store.notes import Area, Colour, Note, NoteQuote
from folio.text import UNREAD_FORMULA, find_words, flat, fold, stripped, without_marks

MAX_QUOTE = 20_000  # characters
_CONTEXT = 60  # characters kept on each side of a quote
_LARGEST = 20_000  # points of a page: 200 inches, and what a unit may make of them
_SHOWN = 80  # characters of words in an error
_LISTED = 5  # pages in an error
_NOT_SEARCHED = str.maketrans({"^": "", "_": "", "−": "-"})
_WAIT_S = 1.0  # for other writers, to store where a quote was found; else it is searched again the next time
Place = Literal["here", "moved", "lost", "removed"]
Order = Literal["place", "created", "updated", "paper"]
_NUMBER = re.compile(r"(?:(?<!\w)-)?\d+(?:[.,]\d+)*")
_SIGNED = re.compile(r"-?\d+(?:[.,]\d+)*")
# How exponents, indices and note marks are set apart, and dashes that may be signs
_SET_APART = re.compile(r" +(?=[⁰¹²³⁴-⁹])|\^[({]?|_(?=[({\d])[({]?")
_MINUS = re.compile(r"[−–‐‑－](?=[\d.])")
_NEGATIVE_POWER = re.compile(r"⁻|\^[({]?[-−–]")
_NO_SIGNS = "⁄"  # of a fraction
_POINTS = (".", ",")
_DECIMAL = re.compile(r"\d[.,]\d")


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """Which notes: those that fit every given field."""

    paper: str = ""  # its id: notes with a quote of it
    query: str = ""  # each of its words is in the quotes, the text, the statement, or the title
    colour: Colour | None = None
    ids: tuple[str, ...] | None = None  # these, each once, in this order, which is the order of the list then
    among: NotesAmong | None = None


@dataclass(frozen=True, slots=True)
class NotesAmong:
    """Notes on some papers, of some conversations, and some others."""

    papers: frozenset[str]
    conversations: frozenset[str] = frozenset()
    notes: frozenset[str] = frozenset()

    def holds(self, note: Note) -> bool:
        is_on_paper = any(quote.paper in self.papers for quote in note.quotes)
        return is_on_paper or note.conversation in self.conversations or note.id in self.notes


@dataclass(frozen=True, slots=True)
class PlacedQuote:
    """A quote of a note with its paper as it is now; None if the paper was removed."""

    quote: NoteQuote
    paper: Paper | None

    @property
    def place(self) -> Place:
        return "removed" if self.paper is None else self.quote.state


@dataclass(frozen=True, slots=True)
class PlacedNote:
    """A note with its quotes at their current places."""

    note: Note
    quotes: tuple[PlacedQuote, ...]


def quote_at(library: Library, paper: Paper, start: int, end: int, words: str = "") -> NoteQuote:
    """The quote at a span of a paper. words: those that a person saw there (span_now).

    Raises UsageError if the span has no words, or too many, or if the paper has these words no more.
    """
    text = library.text(paper.id, 0, paper.length)
    start, end = span_now(text, start, end, words)
    first, last = stripped(text, max(0, start), min(end, len(text)))
    if start < 0 or end > len(text) or first >= last:
        raise UsageError("There are no words at this place of the paper.", "Select words on one of its pages.")
    if last - first > MAX_QUOTE:
        raise UsageError(f"A quote has at most {MAX_QUOTE:,} characters.", "Select less, or make several notes.")
    return quote_in(paper, text, first, last)


def quote_of(library: Library, paper: Paper, words: str, page: int | None = None) -> NoteQuote:
    """The quote with these words of a paper. page: physical; only on it.

    Raises UsageError unless they are there once.
    """
    words = words.strip()
    spans = spans_of(library, paper, words, page)
    if len(spans) == 1:
        return quote_at(library, paper, *spans[0])
    where = "The paper has" if page is None else f"Page {page} of the paper has"
    if not spans:
        raise UsageError(
            f"{where} no words “{short_line(words, _SHOWN)}”.",
            "Copy them from the page, as they follow each other there. Case, accents and hyphens may differ.",
        )
    pages = list(dict.fromkeys(paper.pages.page_at(start) for start, _ in spans))
    listed = ", ".join(map(str, pages[:_LISTED])) + (", …" if len(pages) > _LISTED else "")
    on = f"on page{'s' * (len(pages) > 1)} {listed}"
    raise UsageError(
        f"{where} the words “{short_line(words, _SHOWN)}” {counted(len(spans), 'time')}, {on}.",
        "Give more of the words around them" + (", or the page." if page is None and len(pages) > 1 else "."),
    )


def spans_of(library: Library, paper: Paper, words: str, page: int | None) -> list[tuple[int, int]]:
    """Where a paper has these words. page: see quote_of."""
    text = library.text(paper.id, 0, paper.length)
    spans = list(_exactly(text, words)) or [_with_marks(text, span, words) for span in find_words(text, words)]
    return spans if page is None else [span for span in spans if page in range(*_pages(paper, span))]


def place_without_words(library: Library, paper: Paper, page: int, area: Area | None = None) -> NoteQuote:
    """A page of a paper (physical, from 1), or an area of it, or the whole paper (0).

    Raises UsageError for an area that is none, or without a page.
    """
    text = library.text(paper.id, 0, paper.length)
    if not page and area is None:
        return replace(quote_in(paper, text, 0, 1), quote="", before="", after="", page=0, label="")
    if not page or (area and not (0 <= area[0] < area[2] < _LARGEST and 0 <= area[1] < area[3] < _LARGEST)):
        raise UsageError("There is no such area on a page of the paper.", "Draw it on one of its pages.")
    place = _page_place(paper, text, page)
    return replace(place, before=" ".join(f"{side:.1f}" for side in area)) if area else place


def _page_place(paper: Paper, text: str, page: int) -> NoteQuote:
    start, end = paper.pages.bounds(page, paper.length)
    after = text[start : min(end, start + _CONTEXT)]
    place = replace(quote_in(paper, text, start, start + 1), quote="", before="", after=after)
    return replace(place, page=page, label=paper.pages.label(page))


def _pages(paper: Paper, span: tuple[int, int]) -> tuple[int, int]:
    """The pages of a span, for `range`."""
    first, last = paper.pages.pages_of(*span)
    return first, last + 1


def quote_in(paper: Paper, text: str, start: int, end: int) -> NoteQuote:
    """The quote at a span of the text of a paper."""
    page = paper.pages.page_at(start)
    return NoteQuote(
        paper.id,
        start,
        end,
        text[start:end],
        text[max(0, start - _CONTEXT) : start],
        text[end : end + _CONTEXT],
        page,
        paper.pages.label(page),
        storable(paper.title),
        storable(paper.file),
        "here",
        rows.text_crc(text),
    )


def listed(library: Library, wanted: NoteFilter = NoteFilter(), order: Order = "place") -> list[PlacedNote]:
    """The notes that fit, at their current places. Raises NotKnown for an id that no note has."""
    with library.reading():
        read = notes.read(library.database, ids=wanted.ids, paper=wanted.paper, colour=wanted.colour)
        if wanted.among is not None:
            read = list(filter(wanted.among.holds, read))
        papers = {
            paper.id: paper for paper in library.papers_by_id(quote.paper for note in read for quote in note.quotes)
        }
        crcs = text_crcs(library, list(papers))
        changes: list[tuple[str, int, NoteQuote, NoteQuote]] = []
        placed: list[PlacedNote] = []
        for note in read:
            quotes = [located(library, quote, papers.get(quote.paper), crcs) for quote in note.quotes]
            pairs = enumerate(zip(note.quotes, quotes, strict=True), 1)
            changes += [(note.id, place, old, new) for place, (old, new) in pairs if old.text_crc != new.text_crc]
            current = tuple(_current(quote, papers.get(quote.paper)) for quote in quotes)
            placed.append(
                PlacedNote(
                    replace(note, quotes=current), tuple(PlacedQuote(each, papers.get(each.paper)) for each in current)
                )
            )
    if changes and not library.is_read_only:
        with suppress(StoreBusy), library.database.transaction("user", _WAIT_S):
            notes.replace_quotes(library.database, changes)
    fitting = [each for each in placed if _fits(each.note, wanted.query)]
    if wanted.ids is None:
        return sorted(fitting, key=_ORDER[order], reverse=order in ("created", "updated"))
    by_id = {each.note.id: each for each in fitting}
    if not by_id.keys() >= set(wanted.ids):
        raise notes.unknown_note()
    return [by_id[id] for id in dict.fromkeys(wanted.ids)]


def placed(library: Library, id: str) -> PlacedNote:
    """The note with this id at its current place. Raises NotKnown."""
    return listed(library, NoteFilter(ids=(id,)))[0]


def text_crcs(library: Library, papers: list[str]) -> dict[str, int]:
    """Paper -> the CRC of its text."""
    sql = "SELECT id, text_crc FROM papers WHERE id IN (SELECT value FROM json_each(:ids))"
    pairs = library.database.read(lambda id, crc: (rows.string(id), rows.number(crc)), sql, ids=papers)
    return dict(pairs)


def located(library: Library, quote: NoteQuote, paper: Paper | None, crcs: dict[str, int]) -> NoteQuote:
    """The quote at its place in the current text of its paper."""
    if paper is None or quote.text_crc == crcs[paper.id]:
        return quote
    text = library.text(paper.id, 0, paper.length)
    if not quote.quote:
        return _located_page(quote, paper, text)
    span = find_again(text, quote.quote, quote.start, quote.before, quote.after)
    if span is None:
        return replace(quote, state="lost", text_crc=crcs[paper.id])
    again = replace(quote_in(paper, text, *span), text_crc=crcs[paper.id])
    is_here = quote.state != "moved" and span == (quote.start, quote.end)
    return replace(again, state="here" if is_here else "moved")


def _located_page(quote: NoteQuote, paper: Paper, text: str) -> NoteQuote:
    """A place without words in another text: on the page that begins as its own did, else on that with its number."""
    if not quote.page:
        return replace(quote, state="here", text_crc=rows.text_crc(text))
    found = find_again(text, quote.after.strip(), quote.start)
    page = paper.pages.page_at(found[0]) if found else quote.page
    if page > paper.page_count:
        return replace(quote, state="lost", text_crc=rows.text_crc(text))
    place = replace(_page_place(paper, text, page), before=quote.before)
    return place if page == quote.page else replace(place, state="moved")


def span_now(text: str, start: int, end: int, words: str) -> tuple[int, int]:
    """Where a text has the words that stood at a span when a person saw them: there, or at the closest place.

    words: "" if they are unknown; then the span is taken as it is. Raises UsageError if the text has them no more.
    """
    if not words.strip() or (fold(text[start:end]) == fold(words) and end <= len(text)):
        return start, end
    span = find_again(text, words.strip(), start)
    if span is None:
        raise UsageError(
            f"The text of the paper has changed and has no words “{short_line(words, _SHOWN)}” any more.",
            "Reload the page, and select them again.",
        )
    return span


def find_again(text: str, quote: str, start: int, before: str = "", after: str = "") -> tuple[int, int] | None:
    """Where a changed text has a quote: of several places, the one whose surroundings are most alike.

    start: where it was, for places that are equally alike. before, after: the characters around it.
    Words that differ only in case, spaces, accents or hyphens are the same, but not those with other signs or numbers:
    p < 0.05 is not p > 0.05, 1.5 is not 15, and 0.35 not −0.35. Whole words are not found in longer ones, nor 0.05 in
    0.051. Powers may be written 2⁶⁴, 2^64, or 264, as earlier releases read them.
    """
    around = f"{before}{quote}{after}"
    edges = len(before), len(before) + len(quote)
    was_cut = [_cuts_word(around, edge) for edge in edges]

    def is_as_whole(span: tuple[int, int]) -> bool:
        return all(was or not _cuts_word(text, edge) for was, edge in zip(was_cut, span, strict=True))

    spans = list(filter(is_as_whole, _exactly(text, quote)))
    if not spans:
        similar = filter(is_as_whole, (_with_marks(text, span, quote) for span in find_words(text, quote)))
        spans = [span for span in similar if _same_values(text[slice(*span)], quote)]
    left, right = fold(before)[::-1], fold(after)

    def likeness(span: tuple[int, int]) -> tuple[int, int]:
        first, last = span
        alike = _alike(left, fold(text[max(0, first - 2 * _CONTEXT) : first])[::-1])
        return alike + _alike(right, fold(text[last : last + 2 * _CONTEXT])), -abs(first - start)

    return max(spans, key=likeness, default=None)


def _alike(one: str, other: str) -> int:
    """The number of characters at the start that two texts share."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _exactly(text: str, words: str) -> Iterator[tuple[int, int]]:
    at = text.find(words) if words else -1
    while at >= 0:
        yield at, at + len(words)
        at = text.find(words, at + len(words))


def _with_marks(text: str, span: tuple[int, int], quote: str) -> tuple[int, int]:
    """A span from the first to the last letter or digit, with the marks that the quote has before and after them."""
    ends = [place for place, char in enumerate(quote) if fold(char)] or [0, len(quote) - 1]
    head, tail = quote[: ends[0]], quote[ends[-1] + 1 :]
    start, end = span
    if head and text.endswith(head, 0, start):
        start -= len(head)
    if tail and text.startswith(tail, end):
        end += len(tail)
    return start, end


def _same_values(one: str, other: str) -> bool:
    """Whether two texts with the same letters and digits have the same numbers and signs."""
    has_negative_power = _NEGATIVE_POWER.search(one) or _NEGATIVE_POWER.search(other)
    number = _SIGNED if has_negative_power else _NUMBER  # a hyphen before a digit may be lost: COVID-19, but not m⁻²
    plain, other_plain = _plain(one), _plain(other)
    return _signs(plain) == _signs(other_plain) and number.findall(plain) == number.findall(other_plain)


def _plain(text: str) -> str:
    """The text with plain digits for raised and lowered ones and note marks, with one form of minus signs."""
    return _MINUS.sub("-", flat(_SET_APART.sub("", text.replace(UNREAD_FORMULA, ""))))


def _signs(text: str) -> list[str]:
    """The signs of mathematics, of money, and others, but not accents."""
    plain = unicodedata.normalize("NFKC", text)
    return [char for char in plain if unicodedata.category(char) in ("Sm", "Sc", "So") and char not in _NO_SIGNS]


def _cuts_word(text: str, at: int) -> bool:
    """Whether a word or a number of a text goes on across an offset. Scripts without spaces have no such words."""
    around = text[max(0, at - 2) : at], text[at : at + 2]
    before, after = around[0][-1:], around[1][:1]
    if _goes_on(before) and _goes_on(after):
        return True
    decimals = (around[0], after) if before in _POINTS else (before, around[1])
    return bool(_DECIMAL.fullmatch("".join(decimals)))


def _goes_on(char: str) -> bool:
    return char.isdigit() or char.islower() or char.isupper()


def _current(quote: NoteQuote, paper: Paper | None) -> NoteQuote:
    """The quote with the current names of its paper and page."""
    if paper is None:
        return quote
    named = replace(quote, title=paper.title, file=paper.file)
    if quote.state == "lost" or not quote.quote:
        return named
    page = paper.pages.page_at(quote.start)
    return replace(named, page=page, label=paper.pages.label(page))


def _fits(note: Note, query: str) -> bool:
    words = _searched(query).split()
    texts = (
        note.text,
        note.statement,
        *(text for quote in note.quotes for text in (quote.quote, quote.title, quote.file)),
    )
    return not words or all(word in _searched("\n".join(texts)) for word in words)


def _searched(text: str) -> str:
    """The text as it is searched: 2^64 and 2⁶⁴, x_i and xi are the same."""
    return without_marks(flat(text)).translate(_NOT_SEARCHED)


def _by_paper(each: PlacedNote) -> tuple[str, str, str]:
    """Sorts by the title of the first quote's paper."""
    quotes = each.note.quotes
    return (without_marks(quotes[0].title), quotes[0].file, quotes[0].paper) if quotes else ("", "", "")


def _by_place(each: PlacedNote) -> tuple[Any, ...]:
    start = each.note.quotes[0].start if each.note.quotes else 0
    return *_by_paper(each), start, each.note.created, each.note.id


_ORDER: dict[Order, Callable[[PlacedNote], tuple[Any, ...]]] = {
    "place": _by_place,
    "created": lambda each: (each.note.created, each.note.id),
    "updated": lambda each: (each.note.updated, each.note.id),
    "paper": lambda each: (*_by_paper(each), each.note.created, each.note.id),
}
