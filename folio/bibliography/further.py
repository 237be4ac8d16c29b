"""The fields of an entry that Folio only keeps: editor, series, ISBN. They come out again as they were imported. Pure.

They are pairs of a name and a text (Metadata.further). A name is BibTeX's, or "csl " and CSL's where BibTeX has none. A
list of names is written as people type them: "Otter, Ann; Seal, Bo".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from folio.bibliography.entries import BIBTEX_TYPES, CSL_NAMES, FROM_CSL
from folio.papers.metadata import PersonName
from folio.papers.people import split_typed_name

Further = tuple[tuple[str, str], ...]

TYPE = "entrytype"  # the pair with BibTeX's own type, where several mean the same in CSL
PEOPLE = ("editor", "translator")
MONTHS = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())
CSL_ONLY = "csl "
_MOST, _LONGEST = 40, 2_000
_TOLD = {*FROM_CSL.values(), "mastersthesis"}  # types that the metadata tells
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
_CSL_NAME = re.compile(r"[A-Za-z][A-Za-z-]{0,30}")
_ALIASES = {"location": "address"}
# Fields of BibTeX that the metadata has itself, or that describe the file or the entry and not the work
_OTHERWISE = frozenset(
    "author title subtitle year date journal journaltitle booktitle doi url abstract keywords groups file volume number"
    " issue pages publisher crossref xdata timestamp owner type key ids".split()
)
_OF_ARXIV = frozenset(("eprint", "archiveprefix", "eprinttype", "primaryclass", "categories"))
# The same of CSL
_CSL_OTHERWISE = frozenset(
    "id citation-key type title author issued container-title DOI URL abstract keyword volume issue number page"
    " publisher genre archive archive_location source accessed categories custom".split()
)


def kept(pairs: Iterable[tuple[str, str]]) -> Further:
    """The pairs that may be kept: with a text, each name once, few and short enough."""
    named = {name: text[:_LONGEST].strip() for name, text in pairs if text.strip()}
    return tuple(named.items())[:_MOST]


def of_bibtex(entry_type: str, fields: Mapping[str, str], used: Iterable[str], *, is_arxiv: bool) -> Further:
    """The further fields of an entry. fields: as text, lists of names as typed. used: those that its metadata has."""
    left_out = _OTHERWISE.union(used, _OF_ARXIV if is_arxiv else ())
    names = (name for name in fields if name not in left_out and _NAME.fullmatch(name))
    own_type = entry_type if entry_type in BIBTEX_TYPES and entry_type not in _TOLD else ""
    return kept([(TYPE, own_type), *((_ALIASES.get(name, name), fields[name]) for name in names)])


def of_csl(item: Mapping[str, Any], texts: Mapping[str, str]) -> Further:
    """The further fields of an item. texts: its variables as text, lists of names as typed."""
    bibtex = {csl: name for name, csl in reversed(CSL_NAMES.items())}
    names = (name for name in texts if name not in _CSL_OTHERWISE and _CSL_NAME.fullmatch(name))
    return kept([*((bibtex.get(name, CSL_ONLY + name), texts[name]) for name in names), *_month(item.get("issued"))])


def _month(issued: Any) -> Iterator[tuple[str, str]]:
    """The month and the day of {"date-parts": [[2014, 6, 19]]}."""
    parts = issued.get("date-parts") if isinstance(issued, dict) else None
    first = parts[0] if isinstance(parts, list) and parts and isinstance(parts[0], list) else []
    numbers = [int(part) for part in map(str, first[1:3]) if part.isdecimal() and len(part) < 3]
    if numbers and 1 <= numbers[0] <= len(MONTHS):
        yield "month", MONTHS[numbers[0] - 1]
        if numbers[1:]:
            yield "day", str(numbers[1])


def month_number(text: str) -> int:
    """The number of "jun", "June" or "6"; 0 for what is no month."""
    start = text.strip().casefold()
    if start.isdecimal():
        return int(start) if 1 <= int(start[:4]) <= len(MONTHS) else 0
    return MONTHS.index(start[:3]) + 1 if start[:3] in MONTHS else 0


def people(text: str) -> list[PersonName]:
    """The names in a text of people.typed_names."""
    return [split_typed_name(name) for name in re.split(r";\s*(?![^{]*\})", text) if name.strip()]
