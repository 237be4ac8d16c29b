"""Where a paper appeared, from the lines of its first pages that say so.

A venue inside a sentence belongs to another paper or to an earlier version.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from folio.papers.metadata import MASTER, PHD, TECHNICAL, Field
from folio.pdf import limits
from folio.pdf.dates import MONTH
from folio.text import fold, one_line


class Publication(NamedTuple):
    """Where a paper was published. A field that no line states is "", and the year None."""

    venue: Field[str] = Field("")
    kind: Field[str] = Field("")
    genre: Field[str] = Field("")
    volume: Field[str] = Field("")
    issue: Field[str] = Field("")
    pages: Field[str] = Field("")
    year: int | None = None


# Cover sheets that libraries and networks put in front of a paper
COVER = re.compile(
    r"see discussions, stats|researchgate|jstor|this content downloaded|hal (?:is a|id:)|archives-ouvertes"
    r"|citation for published"
    r"|downloaded from|see profile|this version is available|link to publication|terms of use|to cite this version",
    re.I,
)
_YEAR = r"(?P<year>(?:18|19|20)\d\d)\b"
_MEETING = re.compile(
    r"\bproc(?:eedings|\.)|\b(?:conference|symposium|workshop|meeting|congress)\b|[’'‘`]\s?\d\d\b"
    r"|^(?-i:[A-Z][\w&/@-]*[A-Z])[\w&/@-]*(?: [\w&/@-]+)? (?:19|20)\d\d$",
    re.I,
)
_SERIAL = re.compile(
    r"\b(?:journal|transactions|annals|letters|bulletin|communications|magazine|review|quarterly|working papers)\b",
    re.I,
)
# Words before the venue which state that this paper appeared there
_APPEARED_IN = re.compile(
    r"\W{0,3}(?:this (?:paper|article|work|chapter) (?:is|was|has been)\s+|originally\s+|to\s+)?"
    r"(?:(?:included|appear(?:s|ed|ing)?|published|presented|accepted)(?: as an? [\w ]{3,30}?)?\s+(?:in|at|by|to)"
    r"|(?-i:In)\b:?)\s+(?:the\s+)?(?=(?-i:[A-Z0-9]))",
    re.I,
)
# The beginning of a line that names a venue: "Proceedings of", "37th Conference on", "2013 Conference on"
_NAMED = re.compile(
    r"\W{0,3}(?:[Tt]he\s+)?"
    r"(?=[Pp]roc(?:eedings|\.)\s|PROCEEDINGS\s|(?:\d+(?:st|nd|rd|th)|(?:19|20)\d\d)\s+[A-Z])"
)
_ACRONYM = re.compile(r"\W{0,3}(?P<venue>[A-Z][\w&/@-]*(?: [A-Z][\w&/@-]*)?\s?[’'‘`]\s?(?P<short>\d\d))(?=\W|$)")
# Words about an earlier version, or one that has not appeared
_OTHER_VERSION = re.compile(
    r"preliminary|earlier|previous|prior|initial|abridged|extended|announcement|version|revis|under review|submi"
    r"|reprint|based on",
    re.I,
)
# "A Journal, Vol. 3, No. 1", "A Journal 56 (1988) 3-57", "A Journal, 7(80), 200", "A Journal 2, 4, November, 1984"
_ISSUES = tuple(
    re.compile(rf"(?P<venue>(?-i:[A-Z]).{{3,120}}?),?\s{pattern}", re.I)
    for pattern in (
        r"[(\[]?vol(?:ume)?\b\.?\s*(?P<volume>\d+|[IVXLC]+)\b",
        rf"(?P<volume>\d{{1,4}})\s?\({_YEAR}\)\s?[:,]?\s*(?:pp?\.\s*)?(?P<pages>\d+\s?[-–—]+\s?\d+)",
        r"(?P<volume>\d{1,4})\s?\((?P<issue>\d{1,4}(?:[-–]\d+)?)\)\s?[:,]\s*(?P<pages>\d+(?:\s?[-–]\s?\d+)?)",
        rf"(?P<volume>\d{{1,3}}),\s?(?P<issue>\d{{1,3}}),\s[^\n]{{0,20}}{_YEAR}",
        # "A Journal 8.1 (#3) - Lovelace and Babbage 1843": only if an author is named
        rf"(?P<volume>\d{{1,3}})\.(?P<issue>\d{{1,3}})\b(?P<people>.*)\b{_YEAR}\W*$",
    )
)
_ISSUE = re.compile(r"\b(?:no|number|issue)\b\.?:?\s*(\d+(?:[-–]\d+)?)", re.I)
_PAGES = re.compile(r"\b(?:pages?|pp?)\b\.?:?\s*(\d+\s?[-–—]+\s?\d+)", re.I)
_ANY_YEAR = re.compile(rf"(?<![\d-]){_YEAR}(?!-)")
# Text after the name of a venue
_VENUE_ENDS = re.compile(
    r"[,.;:(]?\s*(?:\bvol(?:ume)?\b\.?\s*\w|\bno\.|\bnumber \d|\bpages?\b|\bpp?\.|\d+\s?\(|[;:]|https?:|\bdoi\b|©"
    rf"|\bcopyright|,\s*(?:\d|{MONTH}\W)).*$|\s\s?\d{{1,4}}$(?<!\s(?:18|19|20)\d\d)",
    re.I,
)
_SENTENCE = re.compile(r"(?:(?<=[a-z]{5})|(?<=\d\d)|(?<=\)))\.(?:\s.*)?$")
_SMALL = frozenset("of on in and for the at to a an & de der des du für und et".split())
_OPEN = re.compile(r"(?:[-,]|\([^)]*|\b(?:of|on|in|and|for|the|at|&))$")
_DEGREE = re.compile(r"\bpartial\s+fulfil+ment\b[^.]{0,80}?\bdegree\s+of\s+(?P<degree>[A-Z]\w+)", re.I)
_REPORT = re.compile(
    r"\W{0,3}(?:[A-Z][\w&-]*\s){0,4}(?:technical|tech\.?|research)\s(?:report|memo(?:randum)?)\b"
    r"[\s:#,]*(?:(?:no|number)\b\.?\s*)?(?P<issue>[\w./-]*\d[\w./-]*)\W*$",
    re.I,
)
# What a cover sheet says of the paper below it: JSTOR's "Source: A Journal, Vol. 3", ResearchGate's "Article in A
# Journal · May 2018", and the reference with which a repository asks to cite it.
_SOURCE = re.compile(r"\s*(?:source|publication)\s*:\s*(?=[^\W\d_])", re.I)
_ENTRY = re.compile(
    rf"(?:article|(?:conference )?paper|chapter|preprint)\s+in\s+(?P<venue>[^·•]{{4,200}}?)\s*[·•]\s*{MONTH}\s+"
    r"(?P<year>(?:19|20)\d\d)\b",
    re.I,
)
_TO_CITE = re.compile(r"\b(?:to cite this|citation for published|please cite|cite (?:as|this))\b", re.I)
_CITED_VENUE = re.compile(
    rf"\W*(?:[Ii]n:?\s+)?(?P<venue>(?!\d{{4}}\b)\w.{{3,150}}?)[,.]?\s+(?=\(?\d|(?i:vol\b|{MONTH}\s+\d))(?P<rest>.{{0,200}})"
)
_VOLUME = re.compile(r"(?<!\d)(?P<volume>\d{1,4})\s?[(:]\s?(?P<issue>\d{1,3}(?:[-–]\d{1,3})?)\b")
_INSTITUTIONS = (re.compile(r"universit", re.I), re.compile(r"institut|laborator|college|academy", re.I))


def find_publication(text: str, title: str, families: Sequence[str] = ()) -> Publication:
    """The publication in the clearest line.

    text: the text of the first pages. title: the paper's. families: the family names of the paper's authors.
    """
    lines = [one_line(line) for line in unicodedata.normalize("NFKC", text).split("\n")]
    folded_title = fold(title)
    if COVER.search(text) and (publication := _on_cover(lines, folded_title)):
        return publication
    statements = [stated for stated in _statements(lines, families) if fold(stated.venue.value) not in folded_title]
    sure = next((stated for stated in statements if stated.venue.sure), None)
    return sure or _thesis(lines) or _report(lines) or next(iter(statements), Publication())


def _on_cover(lines: Sequence[str], folded_title: str) -> Publication | None:
    """The publication that the cover sheet of a library, a network or a repository states."""
    for number, line in enumerate(lines):
        following = " ".join(lines[number + 1 : number + 3])
        if (source := _SOURCE.match(line)) and (publication := _serial(f"{line[source.end() :]} {following}", False)):
            return publication
        if entry := _ENTRY.match(line):
            venue = _venue(entry["venue"])
            kind = "paper-conference" if _MEETING.search(venue) else "article-journal"
            if venue:
                return Publication(Field(venue, "page", True), Field(kind, "page", True), year=int(entry["year"]))
        if _TO_CITE.search(line):
            return _own_reference(" ".join(lines[number : number + 12])[:2000], folded_title)
    return None


def _own_reference(text: str, folded_title: str) -> Publication | None:
    """The publication in a reference to this paper: what stands after the paper's title."""
    letters = [(letter, index) for index, character in enumerate(text) for letter in fold(character)]
    at = "".join(letter for letter, _ in letters).find(folded_title) if folded_title else -1
    if at < 0:
        return None
    begin, end = letters[at][1], letters[at + len(folded_title) - 1][1] + 1
    stated = _CITED_VENUE.match(text[end:])
    venue = _venue(stated["venue"]) if stated else ""
    if not stated or not venue:
        return None
    numbers, pages = _VOLUME.search(stated["rest"]), re.search(r"(?<!\d)\d+\s?[-–—]+\s?\d+", stated["rest"])
    year = _ANY_YEAR.search(stated["rest"]) or re.search(rf"\({_YEAR}", text[:begin])
    kind = "paper-conference" if _MEETING.search(venue) else "article-journal"
    return Publication(
        Field(venue, "page", True), Field(kind, "page", True), Field(""),
        _dashed(numbers["volume"] if numbers else "", True),
        _dashed(numbers["issue"] if numbers else "", True), _dashed(pages[0] if pages else "", True),
        int(year["year"]) if year else None,
    )  # fmt: skip


def _statements(lines: Sequence[str], families: Sequence[str]) -> Iterator[Publication]:
    for number, line in enumerate(lines):
        before = lines[number - 1] if number else ""
        if not 4 < len(line) < 400 or _OPEN.search(before):
            continue
        after = lines[number + 1 : number + 3]
        named = any(family and fold(family) in fold(line) for family in families[:3])
        # The paper's own citation, or an incomplete name, continues on the next line.
        if after and ((named and re.search(r"\(\d{4}\)", line)) or _OPEN.search(line)):
            line, after = (line[:-1] if line.endswith("-") else f"{line} ") + after[0], after[1:]
        context = "" if before.endswith((".", ":")) else before.rpartition(". ")[2]
        if _OTHER_VERSION.search(context):
            continue
        if publication := _serial(line, named) or _meeting(line, after) or _bare(line):
            yield publication


def _meeting(line: str, after: Sequence[str]) -> Publication | None:
    """The conference that a line names, with the year and the paper's pages from that line or the next two."""
    appeared = _APPEARED_IN.match(line)
    short = None if appeared else _ACRONYM.match(line)
    beginning = appeared or _NAMED.match(line)
    if not beginning and not short:
        return None
    venue = short["venue"] if short else _venue(line[beginning.end() :] if beginning else "")
    is_meeting = bool(_MEETING.search(venue))
    if not venue or not (is_meeting or _SERIAL.search(venue)):
        return None
    all_lines = " ".join((line, *(following for following in after if len(following) < 80)))
    dates = [int(match["year"]) for match in _ANY_YEAR.finditer(all_lines)]
    in_century = int(short["short"]) if short else 0
    year = in_century + (1900 if in_century > 60 else 2000) if short else next(iter(dates), None)
    pages = _PAGES.search(all_lines)
    sure = year in dates if short else bool(appeared or dates or pages)
    return Publication(
        Field(venue, "page", sure),
        Field("paper-conference" if is_meeting else "article-journal", "page", sure),
        pages=_dashed(pages[1] if pages else "", sure),
        year=year,
    )


def _serial(line: str, named: bool) -> Publication | None:
    """The journal that a line names with its volume: at its beginning, or at the end of the paper's own citation.

    named: whether the line names an author of the paper.
    """
    appeared = _APPEARED_IN.match(line)
    parts = [line[appeared.end() :] if appeared else line]
    if named:
        parts += re.split(r"(?<=[.?!])\s+", line)[1:]
    for part in parts:
        for pattern in _ISSUES:
            match = pattern.match(part)
            if not match or ("people" in pattern.groupindex and not named):
                continue
            values = match.groupdict()
            issue, pages, year = (
                values.get(name) or (number[1] if (number := search.search(line)) else "")
                for name, search in (("issue", _ISSUE), ("pages", _PAGES), ("year", _ANY_YEAR))
            )
            venue = _venue(match["venue"])
            is_whole = venue == match["venue"].strip(" ,.;[")
            is_journal = _SERIAL.search(venue) or "people" in values or (year and values.get("pages"))
            if is_whole and is_journal and (issue or pages) and not (_MEETING.search(venue) and not issue):
                volume = _dashed(values["volume"], True)
                return Publication(
                    Field(venue, "page", True), Field("article-journal", "page", True), Field(""), volume,
                    _dashed(issue, True), _dashed(pages, True), int(year) if year else None,
                )  # fmt: skip
    return None


def _bare(line: str) -> Publication | None:
    """A journal's name alone on a line, which is uncertain: nothing states that the paper appeared there."""
    if (match := _SERIAL.search(line)) and line[match.end() :].startswith((" of ", " on ")) and _venue(line) == line:
        return Publication(Field(line, "page"))
    return None


def _dashed(value: str, sure: bool) -> Field[str]:
    """The value with en dashes in its ranges; Field("") if it is empty."""
    return Field(re.sub(r"\s?[-–—]+\s?", "–", value), "page", sure) if value else Field("")


def _venue(text: str) -> str:
    """The venue at the beginning of a text, without places, dates and pages after it; "" if there is none."""
    name = _SENTENCE.sub("", _VENUE_ENDS.sub("", text)).strip(" ,.;[")
    first, *parts = re.split(r",\s+", name)
    name_parts = [first]
    for number, part in enumerate(parts):  # "Acoustics, Speech, and Signal Processing" continues; a place ends it
        if not re.search(r"\b(?:and|&)\s", ", ".join(parts[number:])) or re.search(r"\d", part):
            break
        name_parts.append(part)
    name = ", ".join(name_parts)
    words = [word.strip("()[],.:'’‘\"“”") for word in name.split()]
    is_name = all(not word or not word[0].islower() or word in _SMALL for word in words)
    fits = 1 <= len(words) <= 25 and 3 < len(name) <= limits.VENUE
    return name if is_name and fits and words[-1] not in _SMALL else ""


def _thesis(lines: Sequence[str]) -> Publication | None:
    if not (match := _DEGREE.search(" ".join(lines)[:10_000])):
        return None
    genre = PHD if match["degree"].lower().startswith(("doctor", "ph")) else MASTER
    return Publication(_institution(lines), Field("thesis", "page", True), Field(genre, "page", True))


def _report(lines: Sequence[str]) -> Publication | None:
    match = next(filter(None, map(_REPORT.match, lines)), None)
    if not match:
        return None
    genre = Field(TECHNICAL, "page", True)
    return Publication(
        _institution(lines), Field("report", "page", True), genre, issue=Field(match["issue"], "page", True)
    )


def _institution(lines: Sequence[str]) -> Field[str]:
    """The university or else the institute that a line of the page names."""
    for pattern in _INSTITUTIONS:
        for line in lines:
            part = next(filter(pattern.search, line.split(",")), "").strip(" .∗*†‡")
            if part and len(part) < 80 and all(word[0].isupper() or word in _SMALL for word in part.split()):
                return Field(part, "page", True)
    return Field("")
