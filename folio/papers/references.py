"""The works that a paper cites, as its own pages list them: entries, and the papers of a library that they name. Pure.

Lists are numbered ("[1]", "1."), labelled ("[ABL89]"), or begin each entry with an author. A PDF's text keeps neither
the indentation nor the space between entries, so an entry begins where a line looks like the names of authors and the
lines before make a whole entry.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

from folio.papers.identifiers import bare_arxiv, find_arxiv, find_doi
from folio.papers.model import Paper
from folio.papers.people import families
from folio.text import fold, stripped

Span = tuple[int, int]
_YEAR = re.compile(r"(?<![\w./-])(1[6-9]\d\d|20\d\d)[a-z]?(?![\w/-]|\.\d)")
_YEAR_IN_BRACKETS = re.compile(r"\((?:[A-Za-z]+\.? )?(1[6-9]\d\d|20\d\d)[a-z]?(?:, [^()]{1,20})?\)")
_UNDATED = re.compile(r"\b(?:n\.d\.|in press|forthcoming|to appear|unpublished)", re.I)
# The number or label at the start of an entry
_NUMBERED = (
    re.compile(r"^[ \t]*\[(\d{1,3})\][ \t]*", re.M),
    re.compile(r"^[ \t]*\((\d{1,3})\)[ \t]+", re.M),
    re.compile(r"^[ \t]*(\d{1,3})\.[ \t]+(?=\S)", re.M),
    re.compile(r"^[ \t]*(\d{1,3})[ \t]+(?=[A-Z\"“])", re.M),
)
_LABELLED = re.compile(r"^[ \t]*\[[A-Z][\w+’' .&-]{1,30}\][ \t]*(?=\S)", re.M)
_SHORTEST_LIST = 3  # entries by which a style of numbers is recognised
_MOST_SKIPPED = 3  # numbers that a list may skip: the PDF's text lacks them
# An author's name at the start of an entry, and what continues it
_UPPER = r"[^\W\d_a-z]"
_PARTICLES = r"(?:(?:[Vv]an|[Vv]on|[Dd]e[nrls]?|[Dd]i|[Dd]a|[Dd]u|[Ll][ae]|[Tt]en|[Tt]er|[Ee]l|[Aa]l)[ -])*"
_FAMILY = rf"{_PARTICLES}{_UPPER}[\w’'‐-]+(?:[ -]{_UPPER}[\w’'‐-]+)*"
_INITIALS = rf"(?:{_UPPER}\.[ -]?)+"
_AUTHORS = re.compile(
    rf"{_FAMILY}, (?:{_INITIALS}|{_UPPER}[\w’'-]+(?:[ ,.]|$))"  # "Otter, A.", "Otter, Ann."
    rf"|{_INITIALS} ?{_FAMILY}(?:,| and\b| \(|\.|:|;| et al| &)"  # "A. Otter and", "A. Otter ("
    rf"|{_UPPER}(?!\. ?\(|n )[\w’'-]*[^()\n]{{0,120}}\((?:1[6-9]|20)\d\d"  # "World Otter Organization. (2022"
    r"|(?:[—–_-] ?){2,}[ ,.(]|— "  # the authors of the entry before
)
_FULL_NAMES = re.compile(rf"{_UPPER}[\w’'-]+(?: {_UPPER}\.?)? {_FAMILY}(?:,| and\b|\.)")  # "Ann Otter, Bo Seal"
# The end of an entry: a full stop, a number, an address (which may be broken over lines)
_ENDS = re.compile(r"(?:[.\])”\"\d]|/\S*|\.\w{2,4}|https?:/*\s\S+)\s*$")
_GOES_ON = re.compile(rf"(?:[,;:&–-]|\b(?:and|in|of|the|on|for|[Hh]ttps?:/*|doi\.)|\b{_UPPER}\.)\s*$")
_SHORTEST, _LONGEST = 25, 1500  # characters of an entry
_LONG = 400  # characters that an entry may be longer than three times the median: the last one may have an appendix
_GAP = re.compile(r"\n\s*\n")
# What cites: "[3, 5–7]", "[ABL89]" and their parts; names with a year
_GROUP = re.compile(r"\[([^\[\]]{1,80})\]")
_PART = re.compile(r"[^,;–—-]+")
_CITED_YEAR = re.compile(r"(?<![\w./-])((?:1[6-9]|20)\d\d[a-z]?)(?![\w/-]|\.\d)")
_PART_OF_NAME = rf"{_UPPER}[\w’'‐]{{1,30}}"  # bounded: a hostile page is all names
_NAME = rf"(?:(?:[Vv]an|[Vv]on|[Dd]e[nrls]?|[Dd]i|[Ll]a) ){{0,2}}{_PART_OF_NAME}(?:[ -]{_PART_OF_NAME}){{0,2}}"
_AND = rf"(?:,\s{_NAME}){{0,3}},?\s{{1,2}}(?:and|&)\s{{1,2}}{_NAME}"
_NAME_AND_YEAR = re.compile(
    rf"(?<!\w)(?P<name>{_NAME})"
    rf"(?:(?:\s{{1,2}}et\s{{1,2}}al\.?|{_AND})[,\s]{{0,3}}\(?|,\s{{1,2}}|\s{{1,2}}\()"
    r"(?P<year>(?:1[6-9]|20)\d\d[a-z]?)\b"
)
_AROUND_LABEL = 4  # brackets and spaces around the label of an entry
_AUTHORS_REACH = 60  # characters of an entry in which its first author stands
_LEAST_TITLE = 12  # folded characters of a title that can be looked for
_TELLING = 30  # folded characters of a title that identifies a paper without its authors


@dataclass(frozen=True)
class Entry:
    """An entry of a list of references: the span [start, end) of its paper's text."""

    start: int
    end: int
    text: str  # without its number
    label: str = ""  # by which the text cites it: "12" or "ABL89"; "" in a list in the order of authors

    @property
    def year(self) -> int | None:
        """The year of the work; None if it has none that can be told."""
        if match := _YEAR_IN_BRACKETS.search(self.text):
            return int(match[1])
        years = _YEAR.findall(self.text)
        return int(years[-1]) if years else None


def entries(paper: Paper, text: str) -> list[Entry]:
    """The entries of a paper's lists of references, in order; none of a list that cannot be split.

    text: the paper's.
    """
    result: list[Entry] = []
    for section in paper.sections.sections:
        if section.kind == "references" and not (result and section.start < result[-1].end):
            result += split(text, *_body(paper, text, section.start, section.end))
    return result


def _body(paper: Paper, text: str, start: int, end: int) -> Span:
    """The span of a section without its heading."""
    heading = re.compile(r"\s*[^\n]*\n").match(text, start, end)
    return (heading.end() if heading and len(heading.group().split()) <= 6 else start), end


def split(text: str, start: int, end: int) -> list[Entry]:
    """The entries of the list in [start, end) of a text."""
    starts = _numbered(text, start, end) or _labelled(text, start, end) or _by_author(text, start, end)
    if not starts:
        return []
    spans = [(at, begins, stripped(text, at, stop)[1]) for (at, begins), (stop, _) in pairwise([*starts, (end, end)])]
    most = min(_LONGEST, 3 * int(median(stop - begins for _, begins, stop in spans)) + _LONG)
    result = []
    for at, begins, stop in spans:
        if stop - begins > most:  # what follows a list on its last page, or a caption between its entries
            gap = _GAP.search(text, begins + _SHORTEST, stop)
            stop = gap.start() if gap else stop
        if _SHORTEST <= stop - begins <= most:
            result.append(Entry(begins, stop, text[begins:stop], text[at:begins].strip(" \t[]().")))
    return result


def _numbered(text: str, start: int, end: int) -> list[Span]:
    """Start of each entry of a numbered list, and of its text; [] if the list is not numbered."""
    best: list[re.Match[str]] = []
    for pattern in _NUMBERED:
        matches = list(pattern.finditer(text, start, end))
        chain = _chain(matches)
        if len(chain) > len(best):
            best = chain
    return [match.span() for match in best] if len(best) >= _SHORTEST_LIST else []


def _chain(matches: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The matches whose numbers count up, from the first 1, or from the first match."""
    numbers = [int(match[1]) for match in matches]
    first = numbers.index(1) if 1 in numbers else 0
    chain = list(matches[first : first + 1])
    for place in range(first + 1, len(matches)):
        last, number = int(chain[-1][1]), numbers[place]
        is_next = number == last + 1
        is_near = last < number <= last + 1 + _MOST_SKIPPED and not set(range(last + 1, number)) & set(numbers[place:])
        if is_next or is_near:
            chain.append(matches[place])
    return chain


def _labelled(text: str, start: int, end: int) -> list[Span]:
    matches = list(_LABELLED.finditer(text, start, end))
    return [match.span() for match in matches] if len(matches) >= _SHORTEST_LIST else []


def _by_author(text: str, start: int, end: int) -> list[Span]:
    """Start of each entry that begins with an author, twice."""
    lines = [stripped(text, *match.span()) for match in re.compile(r"[^\n]*\S[^\n]*").finditer(text, start, end)]
    named = [first for first, last in lines if _AUTHORS.match(text, first, last)]
    if len(named) < _SHORTEST_LIST:
        gaps = [start, *(match.end() for match in _GAP.finditer(text, start, end))]
        named = [first for first in gaps if _AUTHORS.match(text, first, end) or _FULL_NAMES.match(text, first, end)]
    starts: list[int] = []
    for first in named:
        if not starts or _is_whole(text[starts[-1] : first]):
            starts.append(first)
    return [(first, first) for first in starts]


def _is_whole(entry: str) -> bool:
    """Whether the text can be an entry: it has a year and ends as one."""
    entry = entry.rstrip()
    dated = _YEAR.search(entry) or _UNDATED.search(entry) or re.search(r"\((?:1[6-9]|20)\d\d", entry)
    return bool(dated and len(entry) >= _SHORTEST and _ENDS.search(entry) and not _GOES_ON.search(entry))


@dataclass(frozen=True)
class Citation:
    """A place [start, end) in a paper's text that cites an entry of its references."""

    start: int
    end: int
    entry: Entry


def citations(text: str, start: int, end: int, listed: Sequence[Entry]) -> list[Citation]:
    """The places in [start, end) of a paper's text that cite one of its entries, in order.

    By its label, "[3, 5–7]", or by an author and the year, "(Otter & Seal, 2001)" or "Otter et al. (2001)". What could
    cite two entries, or stands in the list itself, is left out.
    """
    if not listed:
        return []
    found = [*_by_label(text, start, end, listed), *_by_year(text, start, end, listed)]
    in_list = [(entry.start - len(entry.label) - _AROUND_LABEL, entry.end) for entry in listed]
    outside = [each for each in found if not any(first <= each.start < last for first, last in in_list)]
    return sorted(outside, key=lambda each: each.start)


def _by_label(text: str, start: int, end: int, listed: Sequence[Entry]) -> Iterator[Citation]:
    of_label = {entry.label: entry for entry in listed if entry.label}
    for group in _GROUP.finditer(text, start, end if of_label else start):
        parts = [(stripped(text, *part.span()), part.group().strip()) for part in _PART.finditer(text, *group.span(1))]
        known = [(span, of_label[label]) for span, label in parts if label in of_label]
        if any(label.isdigit() and label not in of_label for _, label in parts):
            continue  # a size, "[96, 192]"
        for (first, last), entry in known:
            opens, closes = text[first - 1] == "[", text[last] == "]"
            yield Citation(first - opens, last + closes, entry)


def _by_year(text: str, start: int, end: int, listed: Sequence[Entry]) -> Iterator[Citation]:
    of_year: dict[str, list[tuple[str, Entry]]] = {}
    for entry in listed:
        for year in {match[1] for match in _CITED_YEAR.finditer(entry.text)}:
            of_year.setdefault(year, []).append((f" {_fold_words(entry.text[:_AUTHORS_REACH])} ", entry))
    for match in _NAME_AND_YEAR.finditer(text, start, end if of_year else start):
        name = f" {_fold_words(match['name'])} "
        fitting = [(words, entry) for words, entry in of_year.get(match["year"], ()) if name in words]
        first = [(words, entry) for words, entry in fitting if words.startswith(name)]
        if len(first or fitting) == 1:
            yield Citation(match.start("name"), match.end("year"), (first or fitting)[0][1])


def _fold_words(text: str) -> str:
    """The words folded, with one space between."""
    return " ".join(filter(None, map(fold, re.split(r"[\s,.;&()]+", text))))


class Marks:
    """What a paper is recognised by in the references of others."""

    def __init__(self, paper: Paper) -> None:
        about = paper.metadata
        self.paper = paper.id
        self.doi = about.doi.value.casefold()
        self.arxiv = bare_arxiv(about.arxiv.value)
        self.title = fold(about.title.value)
        self.families = {name for name in families(about.authors.value) if name}


class References:
    """The references of a paper, in a form to look for papers in them."""

    def __init__(self, listed: Sequence[Entry]) -> None:
        self.entries = tuple(listed)
        self._folded = [fold(entry.text) for entry in listed]
        self._text = "\n".join(self._folded)
        self._starts = list(accumulate((len(folded) + 1 for folded in self._folded), initial=0))
        self._of_mark: dict[str, int] = {}  # a DOI or an arXiv id -> the entry with it
        for place, entry in enumerate(listed):
            whole = "".join(entry.text.split())  # an address may be broken over lines
            for doi in (find_doi(entry.text), find_doi(whole)):
                self._of_mark.setdefault(doi.casefold(), place)
            self._of_mark.setdefault(bare_arxiv(find_arxiv("", "", entry.text, whole)), place)
        self._of_mark.pop("", None)

    @property
    def marks(self) -> Mapping[str, int]:
        """A DOI in lower case, or an arXiv id without version -> the number of the entry with it."""
        return self._of_mark

    def find(self, wanted: Marks) -> int | None:
        """The number of the entry that cites a paper, by DOI, arXiv id, or title and an author; None if none does."""
        for mark in (wanted.doi, wanted.arxiv):
            if mark and mark in self._of_mark:
                return self._of_mark[mark]
        title = wanted.title
        at = self._text.find(title) if len(title) >= _LEAST_TITLE else -1
        while at >= 0:
            place = bisect_right(self._starts, at) - 1
            if self._is_title(place, at - self._starts[place], wanted):
                return place
            at = self._text.find(title, at + 1)
        return None

    def _is_title(self, place: int, at: int, wanted: Marks) -> bool:
        """Whether the folded title that begins here in an entry is a whole title, and the entry has an author of it."""
        folded, title = self._folded[place], wanted.title
        if not (any(name in folded for name in wanted.families) or (not wanted.families and len(title) >= _TELLING)):
            return False
        ends = list(accumulate(len(fold(char)) for char in self.entries[place].text))
        text = self.entries[place].text
        first, last = bisect_right(ends, at), bisect_right(ends, at + len(title) - 1)
        before, after = text[:first].rstrip()[-1:], text[last + 1 :].lstrip()[:1]
        return not before.isalpha() and not (after.isalnum() or after == "-")
