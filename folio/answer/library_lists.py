"""Answers questions for counts and lists of papers, from the metadata and what a person did with the papers.

A list quotes each title from its paper's first pages. What was understood is said, as filters where they exist.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, Protocol

from folio.answer_types import Answer, Evidence
from folio.errors import command
from folio.papers.lists import has_tag, is_in_collection
from folio.papers.model import Paper
from folio.papers.people import is_called
from folio.question.library import NUMBERS, OPEN, Bounds, Condition, FieldName, LibraryQuestion
from folio.search.filters import by_author, of_venue
from folio.search.names import PaperNames, similar_names
from folio.shown_text import counted, name_line
from folio.store.readings import Use
from folio.text import plain_words, tokenize

MOST_VALUES, MOST_YEARS = 15, 100  # of a field in one answer
NOT_STORED = (
    "Folio does not store that about papers. Ask for their authors, years, venues, tags, pages, notes, when you added"
    " or opened them."
)


class Mentions(Protocol):
    """Finds the papers with a passage that has all of some words."""

    def __call__(self, words: str, among: Collection[str] | None = None) -> frozenset[str]:
        """The ids of these papers. among: read only the papers with these ids, which is fast for many searches."""
        ...


@dataclass(frozen=True, slots=True)
class Shelf:
    """The papers that a question is asked about, and what is known about them besides their metadata."""

    papers: Sequence[Paper]
    names: Callable[[], PaperNames]
    described: Callable[[str], Sequence[Paper]]  # words -> the papers that they name or describe
    front_of: Callable[[Paper], Evidence | None]  # a paper's first pages, with its first passage
    uses: Callable[[], Mapping[str, Use]]  # paper id -> its use
    mentions: Mentions
    cited: Callable[[str], set[str]]  # paper id -> the ids of the papers that it cites, as far as known
    today: date


class Chosen(NamedTuple):
    """The papers that meet a condition, the condition in words, and as an option of the commands ("" for none)."""

    ids: frozenset[str]
    said: str
    option: str = ""


class NothingKnown(Exception):
    """A name that no paper has. The text is the answer."""


def chosen(wanted: LibraryQuestion, shelf: Shelf) -> tuple[list[Paper], str, str] | None:
    """The papers that meet the conditions, these in words, and as options; None if the library lacks an unsure name.

    Raises NothingKnown.
    """
    papers, said, options = list(shelf.papers), [], []
    for condition in wanted.conditions:
        choice = _choice(condition, shelf)
        if choice is None:
            return None
        papers = [paper for paper in papers if (paper.id in choice.ids) != condition.is_denied]
        said.append(choice.said)
        options.append(choice.option)
    option = " ".join(options) if all(options) and not any(each.is_denied for each in wanted.conditions) else ""
    return papers, " ".join(said), option


def ordered(papers: Sequence[Paper], wanted: LibraryQuestion, shelf: Shelf) -> list[Paper]:
    """The papers in the order that is asked for: the first `most`, and those that tie with the last of these.

    With `most`, papers without a value are left out; otherwise they come last.
    """
    if wanted.order is None:
        return list(papers)
    value = _values(wanted.order, shelf)
    known = sorted(filter(value, papers), key=value, reverse=wanted.is_falling)
    if wanted.most is None:
        return known + [paper for paper in papers if not value(paper)]
    first, rest = known[: wanted.most], known[wanted.most :]
    return first + [paper for paper in rest if value(paper) == value(first[-1])]


def none_known(field: FieldName, papers: Sequence[Paper], said: str) -> str:
    """The answer if none of these papers has a value of a field. said: the conditions that they meet, in words."""
    which = f"{counted(len(papers), 'paper')}{' ' + said if said else ''}"
    return f"No {_ONE_OF.get(field, field)} is known of {which}."


def values_answer(question: str, papers: Sequence[Paper], by: FieldName, said: str) -> Answer:
    """The values of a field, each with its number of papers, the most frequent first; years in order.

    If the question asks for the one with most, only that.
    """
    counts = Counter(value for paper in papers for value in set(_GROUPS[by](paper)))
    pairs = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
    among = f"{counted(len(papers), 'paper')}{' ' + said if said else ''}"
    if not papers:
        return Answer(question, question, (), remark=f"The library has no {among[2:]}.")
    if not pairs:
        return Answer(question, question, (), remark=none_known(by, papers, said))
    if re.search(r"\bmost\b", question, re.I):
        best = [name_line(str(value), 100) for value, number in pairs if number == pairs[0][1]]
        more = f" and {len(best) - MOST_VALUES:,} more" if len(best) > MOST_VALUES else ""
        each = f"{counted(pairs[0][1], 'paper')}{' each' if len(best) > 1 else ''}"
        remark = f"{'; '.join(best[:MOST_VALUES])}{more}: {each}, the most of {counted(len(pairs), by)} among {among}."
        return Answer(question, question, (), remark=remark)
    if by == "year":
        pairs.sort()
    most = MOST_YEARS if by == "year" else MOST_VALUES
    listed = "; ".join(f"{name_line(str(value), 100)}: {number}" for value, number in pairs[:most])
    more = f"; and {len(pairs) - most:,} more" if len(pairs) > most else ""
    without = sum(not any(_GROUPS[by](paper)) for paper in papers)
    unknown = f" {counted(without, 'paper')} without a known {by}." if without else ""
    remark = f"{counted(len(pairs), by)} among {among}, with the number of papers of each: {listed}{more}.{unknown}"
    return Answer(question, question, (), remark=remark)


def understood(wanted: LibraryQuestion, said: str, option: str) -> str:
    """What was understood, and the command with the filters that list the same papers; "" for all papers."""
    order = f", {_ORDER_WORDS[wanted.order][wanted.is_falling]} first" if wanted.order else ""
    lists = f" `{command(f'papers list {option}')}` lists the same papers." if option and wanted.most is None else ""
    return f"Understood as: papers{' ' + said if said else ''}{order}.{lists}" if said or order else ""


def _choice(condition: Condition, shelf: Shelf) -> Chosen | None:
    """The papers that meet a condition. None if the library lacks an unsure name. Raises NothingKnown."""
    field, words, is_denied = condition.field, condition.words, condition.is_denied
    no = "not " if is_denied else ""
    if field == "unknown":
        raise NothingKnown(NOT_STORED)
    if condition.bounds or (field in ("year", "added", "opened") and words):
        return _within(condition, condition.bounds, shelf)
    if not words:
        has = _values(field, shelf)
        known = f"{'without' if is_denied else 'with'} {_FIELD_WORDS.get(field, field)}"
        said = {"opened": f"that you have {no}opened", "added": f"{no}added"}.get(field, known)
        return Chosen(frozenset(paper.id for paper in shelf.papers if has(paper)), said)
    if field in ("cites", "cited_by") or (field == "paper" and shelf.names().called(words)):
        return _of_papers(condition, shelf)
    if field == "about":
        tokens = frozenset(tokenize(words))
        ids = (p.id for p in shelf.papers if tokens <= frozenset(tokenize(_front_words(p))))
        return Chosen(frozenset(ids), f"{no}about {name_line(words)}, by title, abstract or tags")
    for name in _ANY_NAME if field in ("venue", "paper") and not condition.is_sure else (field,):
        if choice := _named(name, words, no, shelf):
            return choice
    if not condition.is_sure:
        return _of_papers(condition, shelf) if field == "paper" else None
    values = {str(value) for paper in shelf.papers for value in _GROUPS[field](paper)}
    near = similar_names(words, values)
    raise NothingKnown(f"No paper in the library {_HAS_NO[field].format(name_line(words))}.{near}")


def _named(field: FieldName, words: str, no: str, shelf: Shelf) -> Chosen | None:
    """The papers with these names of a field, joined by "and" or "or"; None if no paper has one of them."""
    names = re.split(r"\s+(?:and|n?or)\s+|\s*,\s*", words)
    found = [_called(field, name, shelf) for name in names]
    if not all(found):
        whole = _called(field, words, shelf)
        found, names = ([whole], [words]) if whole else ([], [])
    if not found:
        return None
    is_all = re.search(r"\sand\s", words) is not None and field in ("author", "tag")
    ids = frozenset.intersection(*found) if is_all else frozenset.union(*found)
    shown = names
    if field == "author":
        called = [plain_words(name) for name in names]
        people = (person for paper in shelf.papers for person in paper.metadata.authors.value)
        meant = (str(person) for person in people if any(is_called(person, one) for one in called))
        shown = list(dict.fromkeys(meant))[:4]
    said = f"{no}{_PREPOSITIONS[field]} {(' and ' if is_all else ' or ').join(map(name_line, shown))}"
    option = " ".join(f"--{field} {shlex.quote(name_line(name))}" for name in names)
    return Chosen(ids, said, "" if is_all or "`" in option else option)


def _called(field: FieldName, name: str, shelf: Shelf) -> frozenset[str]:
    """The ids of the papers with a name of a field."""
    fits = _TESTS[field](name)
    return frozenset(paper.id for paper in shelf.papers if fits(paper))


def _within(condition: Condition, bounds: Bounds | None, shelf: Shelf) -> Chosen | None:
    """The papers whose number, year or day is within bounds."""
    field, no = condition.field, "not " if condition.is_denied else ""
    if bounds is None:
        days = _days(condition.words, shelf.today)
        if days is None:
            return None
        if field == "year":
            bounds = (days[0].year, days[1].year)
        else:
            value = _values(field, shelf)
            ids = (paper.id for paper in shelf.papers if value(paper) and days[0] <= local_day(value(paper)) <= days[1])
            said = f"{no}{field} {_span(*map(str, days))}"
            return Chosen(frozenset(ids), said)
    low, high = bounds
    value = _values(field, shelf)
    ids = (paper.id for paper in shelf.papers if (field != "year" or value(paper)) and low <= value(paper) <= high)
    if field == "year":
        option = f"--year {low if low == high else f'{low or str()}-{high if high < OPEN else str()}'}"
        return Chosen(frozenset(ids), f"{no}{_span(str(low or ''), str(high) if high < OPEN else '')}", option)
    size = str(low) if low == high else f"{low} or more" if high >= OPEN else f"at most {high}"
    return Chosen(frozenset(ids), f"{no}with {size} {_FIELD_WORDS.get(field, field)}")


def _span(first: str, last: str) -> str:
    if first == last:
        return f"from {first}"
    return f"from {first} to {last}" if first and last else f"from {first} on" if first else f"until {last}"


def _of_papers(condition: Condition, shelf: Shelf) -> Chosen | None:
    """The papers that cite a named paper, that it cites, or that it is; None for a name without a paper."""
    named = shelf.described(condition.words)
    if not named or len(named) > MOST_NAMED:
        return None
    title = " or ".join(f"“{name_line(paper.title or paper.file, 80)}”" for paper in named)
    no = "do not " if condition.is_denied else ""
    these = frozenset(paper.id for paper in named)
    if condition.field == "paper":
        return Chosen(these, f"other than {title}")
    if condition.field == "cited_by":
        ids = frozenset(id for paper in named for id in shelf.cited(paper.id))
        ids |= {one.id for one in shelf.papers if _mentioning(one, shelf, these)}
        return Chosen(ids - these, f"cited by {title}, as far as their titles are found in it")
    by_title = {id for paper in named for id in _mentioning(paper, shelf)}
    known = {one.id for one in shelf.papers if not these.isdisjoint(shelf.cited(one.id))}
    ids = frozenset(by_title | known) - these
    return Chosen(ids, f"that {no}cite {title}, as far as its title and first author are found in them")


def _mentioning(paper: Paper, shelf: Shelf, among: Collection[str] | None = None) -> frozenset[str]:
    """The ids of the papers, or only of some, with a passage that has a paper's title and first author."""
    families = [person.family for person in paper.metadata.authors.value[:1]]
    return shelf.mentions(" ".join([paper.title, *families]), among) if paper.title else frozenset()


def _values(field: FieldName, shelf: Shelf) -> Callable[[Paper], Any]:
    """How to read a field of a paper, for comparing; a false value if it has none."""
    if field in ("added", "opened", "notes"):
        uses, unused = shelf.uses(), Use("", "", 0)
        return lambda paper: getattr(uses.get(paper.id, unused), field)
    return _READ[field]


def _front_words(paper: Paper) -> str:
    return " ".join((paper.title, paper.metadata.abstract.value, *paper.metadata.tags.value))


def local_day(time: str) -> date:
    """The day of an ISO time in UTC, on this computer."""
    return datetime.fromisoformat(time).astimezone().date()


def _days(words: str, today: date) -> tuple[date, date] | None:
    """The first and the last day of a time in words: "this week", "in the last 3 days", "since 2024", "yesterday"."""
    units = r"(?:(this|last|past)\s)?(?:(\d+|[a-z]+)\s)?(day|week|month|year)s?$"
    match = re.search(rf"{units}|today$|yesterday$", words, re.I)
    if match is None:
        year = re.search(r"\b(?:1[5-9]|20)\d\d\b", words)
        if year is None:
            return None
        first = date(int(year.group()), 1, 1)
        return first, today if "since" in words.casefold() else date(first.year, 12, 31)
    if match[3] is None:
        day = today - timedelta(match.group().casefold() == "yesterday")
        return day, day
    unit, said = match[3].casefold(), match[2] or ""
    if number := int(said) if said.isdecimal() else NUMBERS.get(said.casefold(), 0):
        return today - timedelta(min(number * _UNIT_DAYS[unit], (today - date.min).days)), today
    starts = {
        "day": today, "week": today - timedelta(today.weekday()), "month": today.replace(day=1),
        "year": today.replace(month=1, day=1),
    }  # fmt: skip
    if (match[1] or "").casefold() not in ("last", "past"):
        return starts[unit], today
    last = starts[unit] - timedelta(1)
    before = {
        "day": last, "week": last - timedelta(6), "month": last.replace(day=1), "year": last.replace(month=1, day=1),
    }  # fmt: skip
    return before[unit], last


MOST_NAMED = 3  # papers of one name
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_READ: dict[FieldName, Callable[[Paper], Any]] = {
    "year": lambda paper: paper.year or 0,
    "pages": lambda paper: paper.page_count,
    "authors": lambda paper: len(paper.authors),
    "tag": lambda paper: len(paper.metadata.tags.value),
    "venue": lambda paper: paper.metadata.venue.value.casefold(),
    "title": lambda paper: paper.title.casefold(),
    "abstract": lambda paper: paper.metadata.abstract.value,
    "doi": lambda paper: paper.metadata.doi.value,
    "collection": lambda paper: len(paper.metadata.collections.value),
    "author": lambda paper: paper.authors,
}
_GROUPS: dict[FieldName, Callable[[Paper], Iterable[Any]]] = {
    "year": lambda paper: [paper.year] if paper.year else [],
    "author": lambda paper: paper.authors,
    "venue": lambda paper: filter(None, [paper.metadata.venue.value]),
    "tag": lambda paper: paper.metadata.tags.value,
    "collection": lambda paper: paper.metadata.collections.value,
}
_TESTS: dict[FieldName, Callable[[str], Callable[[Paper], bool]]] = {
    "author": by_author,
    "venue": of_venue,
    "tag": lambda name: lambda paper: has_tag(paper.metadata, name),
    "collection": lambda name: lambda paper: is_in_collection(paper.metadata, name),
}
# Fields whose names may follow "in", "of" or "except"
_ANY_NAME: tuple[FieldName, ...] = ("venue", "author", "tag", "collection")
_HAS_NO = {
    "author": "is by “{}”", "venue": "is of a venue called “{}”", "tag": "has the tag “{}”",
    "collection": "is in a collection called “{}”",
}  # fmt: skip
_PREPOSITIONS = {"author": "by", "venue": "in", "tag": "tagged", "collection": "in the collection"}
_FIELD_WORDS: dict[FieldName, str] = {
    "year": "a known year", "tag": "tags", "doi": "a DOI", "abstract": "an abstract", "title": "a title",
    "venue": "a known venue", "collection": "collections",
}  # fmt: skip
# A value of a field that no paper has
_ONE_OF: dict[FieldName, str] = {
    "pages": "number of pages", "authors": "author", "added": "time of adding", "opened": "time of opening",
    "notes": "note", "doi": "DOI",
}  # fmt: skip
# Of a rising and a falling order
_ORDER_WORDS: dict[FieldName, tuple[str, str]] = {
    "year": ("oldest", "newest"), "pages": ("shortest", "longest"), "added": ("first added", "last added"),
    "opened": ("first opened", "last opened"), "authors": ("fewest authors", "most authors"),
    "notes": ("fewest notes", "most notes"), "tag": ("fewest tags", "most tags"), "title": ("A to Z", "Z to A"),
    "venue": ("venues A to Z", "venues Z to A"), "collection": ("fewest collections", "most collections"),
    "doi": ("by DOI", "by DOI"), "abstract": ("by abstract", "by abstract"),
}  # fmt: skip
