"""Reads BibTeX and BibLaTeX: bibtexparser splits an entry into fields, this module interprets them. Pure.

A file is first cut into entries wherever a line begins with "@type{". So a broken entry does not affect the others,
every problem has its line, and no entry is longer than _LONGEST_ENTRY.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice, pairwise
from typing import Any

from folio.bibliography import further
from folio.bibliography.entries import (
    BIBTEX_TYPES,
    OF_AN_INSTITUTION,
    Entry,
    Problem,
    described,
    find_url,
    find_year,
    is_arxiv,
)
from folio.bibliography.latex import brace_depths, to_text
from folio.papers.identifiers import find_arxiv, find_doi
from folio.papers.metadata import AND_OTHERS, MASTER, PHD, TECHNICAL, Metadata, PersonName
from folio.papers.people import typed_names
from folio.text import one_line

_LONGEST_ENTRY = 10**6  # characters
_MOST_ENTRIES = 100_000
_LONGEST_STRING = 10_000  # characters of an @string, which can be built from others
_MOST_AUTHORS = 5_000
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])(?:-([0-3]\d))?")
_ESCAPED = re.compile(r"\\(.)", re.S)
_BRACE_OR_AND = re.compile(r"[{}]|(?<=\s)and(?=\s|\Z)", re.I)
_START = re.compile(r"^[ \t]*@\w*[ \t]*(?=[{(])", re.M)
_GENRES = {
    "phdthesis": PHD, "mastersthesis": MASTER, "mathesis": MASTER, "bathesis": "Bachelor's thesis",
    "techreport": TECHNICAL, "resreport": "Research report",
}  # fmt: skip
# Fields that an entry inherits from its crossref under another name
_RENAMED = {"title": "booktitle", "subtitle": "booksubtitle", "journaltitle": "journaltitle"}
_NOT_INHERITED = frozenset(("crossref", "xdata", "file", "doi", "abstract", "keywords", "pages", "url", "author"))


def read(text: str) -> tuple[list[Entry], list[Problem]]:
    """The entries of a BibTeX file in order, and what could not be read."""
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)  # it only logs the problems, which are returned
    raw: list[tuple[str, str, int, dict[str, str]]] = []
    problems: list[Problem] = []
    strings = dict(zip(further.MONTHS, further.MONTHS, strict=True))
    for line, block in _blocks(text, problems):
        _read_block(line, block, strings, raw, problems)
    by_key = {key: fields for _, key, _, fields in reversed(raw)}
    entries = [
        _entry(kind, key, line, _inherited(kind, fields, by_key)) for kind, key, line, fields in raw if kind != "xdata"
    ]
    if not entries and not problems:
        why = "It has no entry: one begins with @ and its kind, such as @article{." if text.strip() else "It is empty."
        problems.append(Problem(0, why))
    return entries, problems


def _blocks(text: str, problems: list[Problem]) -> Iterator[tuple[int, str]]:
    """Each block that begins with "@", with its first line."""
    starts = [match.start() for match in _START.finditer(text)]
    line, last = 1, 0
    for number, (start, end) in enumerate(pairwise([*starts, len(text)])):
        line += text.count("\n", last, start)
        last = start
        if number >= _MOST_ENTRIES:
            problems.append(Problem(line, f"Only the first {_MOST_ENTRIES:,} entries are read."))
            return
        if end - start > _LONGEST_ENTRY:
            problems.append(Problem(line, f"The entry has more than {_LONGEST_ENTRY:,} characters."))
        else:
            yield line, text[start:end]


def _read_block(
    first_line: int,
    text: str,
    strings: dict[str, str],
    raw: list[tuple[str, str, int, dict[str, str]]],
    problems: list[Problem],
) -> None:
    from bibtexparser.entrypoint import parse_string
    from bibtexparser.model import Entry as ParsedEntry
    from bibtexparser.model import ParsingFailedBlock, String

    for parsed in parse_string(text, parse_stack=[]).blocks:
        line = first_line + max(0, parsed.start_line or 0)
        block: Any = parsed
        if isinstance(parsed, ParsingFailedBlock) and isinstance(parsed.ignore_error_block, ParsedEntry):
            block = parsed.ignore_error_block  # a duplicate field or key does not make an entry unreadable
        if isinstance(block, String):
            strings[block.key.casefold()] = _value(block.value, strings)[:_LONGEST_STRING]
        elif isinstance(block, ParsedEntry):
            fields: dict[str, str] = {}
            for field in block.fields:
                fields.setdefault(field.key.casefold(), _value(field.value, strings))
            raw.append((block.entry_type.casefold(), block.key, line, fields))
        elif isinstance(block, ParsingFailedBlock):
            reason = getattr(block.error, "abort_reason", "") or "it is not BibTeX."
            problems.append(Problem(line, f"The entry cannot be read: {one_line(str(reason))}"))


def _value(source: str, strings: Mapping[str, str]) -> str:
    """The value of a field: {..}, "..", a number or the name of a string, or several of these joined with #."""
    parts = []
    for part in _pieces(source):
        is_delimited = part[:1] + part[-1:] in ("{}", '""') and len(part) > 1
        parts.append(part[1:-1] if is_delimited else strings.get(part.casefold(), part))
    return "".join(parts)


def _pieces(source: str) -> list[str]:
    """The parts of a value that # joins."""
    if "#" not in source:
        return [source.strip()]
    pieces, depth, quoted, begins = [], 0, False, 0
    for place, char in enumerate(source):
        if char == '"' and not depth:
            quoted = not quoted
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
        elif char == "#" and not depth and not quoted:
            pieces.append(source[begins:place].strip())
            begins = place + 1
    return [*pieces, source[begins:].strip()]


def _inherited(kind: str, fields: dict[str, str], by_key: Mapping[str, dict[str, str]]) -> dict[str, str]:
    """An entry's fields with the fields of the entries that it refers to directly."""
    merged = dict(fields)
    for key in fields.get("xdata", "").split(",")[:20]:
        merged = {**by_key.get(key.strip(), {}), **merged}
    parent = by_key.get(fields.get("crossref", "").strip(), {})
    is_part = BIBTEX_TYPES.get(kind) in ("paper-conference", "chapter")
    for name, value in parent.items():
        if name not in _NOT_INHERITED:
            merged.setdefault(_RENAMED.get(name, name) if is_part else name, value)
    return merged


def _entry(kind: str, key: str, line: int, fields: dict[str, str]) -> Entry:
    first = _names(fields.get("author", ""), 1)
    doi, arxiv = _identifiers(fields)
    return Entry(
        key=one_line(key)[:200],
        line=line,
        title=_title(fields),
        first_author=first[0].family if first else "",
        year=_year(fields),
        doi=doi,
        arxiv=arxiv,
        files=attached(fields.get("file", "")),
        describe=partial(_describe, kind, key, fields),
    )


def _title(fields: Mapping[str, str]) -> str:
    title, subtitle = to_text(fields.get("title", "")), to_text(fields.get("subtitle", ""))
    return f"{title}{' ' if title.endswith(('?', '!', ':')) else ': '}{subtitle}" if title and subtitle else title


def _year(fields: Mapping[str, str]) -> int | None:
    return find_year(to_text(fields.get("date", ""))) or find_year(to_text(fields.get("year", "")))


def _identifiers(fields: Mapping[str, str]) -> tuple[str, str]:
    """The DOI and the arXiv identifier."""
    url = _verbatim(fields.get("url", ""))
    doi = find_doi(_verbatim(fields.get("doi", ""))) or (find_doi(url) if "doi.org/" in url else "")
    archive = fields.get("archiveprefix", "") or fields.get("eprinttype", "") or "arxiv"
    eprint = fields.get("eprint", "") if archive.strip().casefold() == "arxiv" else ""
    texts = (fields.get(name, "") for name in ("url", "journal", "journaltitle", "howpublished", "note", "number"))
    return doi, find_arxiv(doi, to_text(eprint), *map(to_text, texts))


def _first(fields: Mapping[str, str], *names: str) -> str:
    """The text of the first of these fields that is not empty."""
    return next((text for name in names if (text := to_text(fields.get(name, "")))), "")


def _describe(kind: str, key: str, fields: Mapping[str, str]) -> Metadata:
    doi, arxiv = _identifiers(fields)
    csl, genre = _kind(kind, fields)
    named_by = _venue_field(csl, fields)
    venue = to_text(fields.get(named_by, ""))
    if arxiv and is_arxiv(venue):
        csl, venue = ("article" if csl == "article-journal" else csl), ""
    if arxiv and not csl:
        csl = "article"
    return described(
        title=_title(fields),
        authors=_names(fields.get("author", ""), _MOST_AUTHORS),
        year=_year(fields),
        venue=venue,
        doi=doi,
        arxiv=arxiv,
        abstract=_first(fields, "abstract"),
        kind=csl,
        genre=genre,
        volume=_first(fields, "volume"),
        issue=_first(fields, "number", "issue"),
        pages=_first(fields, "pages"),
        publisher=_first(fields, "publisher"),
        url=find_url(_verbatim(fields.get("url", "") or fields.get("howpublished", ""))),
        citation_key=one_line(key)[:200],
        tags=_first(fields, "keywords"),
        collections=_first(fields, "groups"),
        categories=f"{_first(fields, 'primaryclass')} {_first(fields, 'categories')}" if arxiv else "",
        further=_further(kind, fields, named_by, bool(arxiv)),
    )


def _further(kind: str, fields: Mapping[str, str], named_by: str, is_arxiv: bool) -> further.Further:
    """named_by: the field that names the venue."""
    used = {named_by, *(("howpublished",) if find_url(_verbatim(fields.get("howpublished", ""))) else ())}
    texts = {
        name: typed_names(_names(value, _MOST_AUTHORS)) if name in further.PEOPLE else to_text(value)
        for name, value in fields.items()
    }
    date = _DATE.match(texts.get("date", ""))  # of BibLaTeX: "2014-06-19"
    parts = {"month": further.MONTHS[int(date[1]) - 1], "day": date[2] or ""} if date else {}
    return further.of_bibtex(kind, {**parts, **texts}, used, is_arxiv=is_arxiv)


def _kind(entry_type: str, fields: Mapping[str, str]) -> tuple[str, str]:
    """The CSL type and the genre."""
    csl = BIBTEX_TYPES.get(entry_type, "")
    if csl not in OF_AN_INSTITUTION:
        return csl, ""
    stated = to_text(fields.get("type", ""))
    genre = _GENRES.get(stated.casefold(), stated) or _GENRES.get(entry_type, "")
    return csl, genre


def _venue_field(csl: str, fields: Mapping[str, str]) -> str:
    """The field with the journal, proceedings or book of a paper, or the institution of a thesis or a report."""
    names: tuple[str, ...] = ("journal", "journaltitle", "booktitle", "maintitle")
    if csl in OF_AN_INSTITUTION:
        names = ("school", "institution", "organization", "publisher")
    if not csl and not find_url(_verbatim(fields.get("howpublished", ""))):
        names = (*names, "howpublished")
    return next((name for name in names if to_text(fields.get(name, ""))), "")


def _verbatim(value: str) -> str:
    """An address or an identifier without the backslashes before LaTeX's special characters."""
    return re.sub(r"\\([&%#_$~{}])", r"\1", value[:10_000])


def _names(field: str, most: int) -> tuple[PersonName, ...]:
    """The first `most` people in a field of names."""
    people = []
    for name in islice(_separated(field), most):
        if name.strip().casefold() == "others":
            people.append(AND_OTHERS)
        elif person := _person(name):
            people.append(person)
    return tuple(people)


def _separated(field: str) -> Iterator[str]:
    """The names in a field, separated by "and" outside braces. bibtexparser loses accents at their beginning."""
    depth = begins = 0
    for match in _BRACE_OR_AND.finditer(field):
        mark = match.group()
        if mark in "{}":
            depth = max(0, depth + (1 if mark == "{" else -1))
        elif not depth:
            yield field[begins : match.start()]
            begins = match.end()
    yield field[begins:]


def _person(name: str) -> PersonName | None:
    from bibtexparser.middlewares.names import parse_single_name_into_parts

    name = name.strip()
    if not name or len(name) > 1_000:
        return None
    extended = dict(re.findall(r"(family|given|prefix|suffix)\s*=\s*([^,]*)", name)) if "=" in name else {}
    if "family" in extended:  # BibLaTeX: family=Berg, given=Jan, prefix=van der
        parts: Any = {name: to_text(value) for name, value in extended.items()}
        family = f"{parts.get('prefix', '')} {parts['family']}".strip()
        return PersonName(family, f"{parts.get('given', '')} {parts.get('suffix', '')}".strip())
    # The last brace closes the first one: "{World Health Organization}", not "{A} and {B}".
    if name.startswith("{") and (0 not in (depths := brace_depths(name))[:-1]) and depths[-1] == 0:
        whole = to_text(name)
        return PersonName(whole) if whole else None
    parts = parse_single_name_into_parts(name, strict=False)
    family, given = (to_text(" ".join(words)) for words in (parts.von + parts.last, parts.first + parts.jr))
    if not family:
        family, given = given, ""
    return PersonName(family, given) if family else None


def attached(field: str) -> tuple[str, ...]:
    r"""The PDFs in a `file` field, as Zotero, JabRef, Mendeley or a person writes it.

    {Full Text:files/1/x.pdf:application/pdf}, {:x.pdf:PDF}, {/home/me/x.pdf}; several are separated by semicolons.
    Colons, semicolons and backslashes in a name are escaped with a backslash.
    """
    paths: dict[str, None] = {}
    whole = _ESCAPED.sub(r"\1", field).strip()
    if whole.casefold().endswith(".pdf"):  # a plain path, without description and type
        paths[whole] = None
    for one in re.split(r"(?<!\\);", field[:10_000])[:100]:
        parts = [_ESCAPED.sub(r"\1", part).strip() for part in re.split(r"(?<!\\):", one)]
        for path in (":".join(parts[1:-1]), *parts):
            if path.casefold().endswith(".pdf"):
                paths.setdefault(path)
    return tuple(path for path in paths if "\x00" not in path and len(path) < 4_000)
