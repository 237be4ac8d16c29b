"""A person's edits of a paper's fields: parsed from FIELD=VALUE, and checked. Pure."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Literal

from folio.errors import ChangedElsewhere, UsageError, command
from folio.papers.identifiers import ARXIV_ADDRESS, ARXIV_ID, DOI_ADDRESS, DOI_START
from folio.papers.metadata import FIELDS, NO_METADATA, Field, Metadata, PersonName, Source, is_date, merged
from folio.papers.people import split_typed_name, typed_name
from folio.text import one_line, shorten

# Fields that only an import sets
_IMPORTED = frozenset({"collections", "zotero", "bibliography", "further"})
EDITABLE: tuple[str, ...] = tuple(name for name in FIELDS if name not in _IMPORTED)
# Field -> its new value; None resets it to the value of the other sources
Edits = Mapping[str, Field[Any] | None]

FIRST_YEAR = 1400  # before the printing press there are no papers
LONGEST: Mapping[str, int] = {
    "title": 1_000, "venue": 500, "doi": 300, "arxiv": 40, "date": 10, "abstract": 20_000, "kind": 40, "genre": 100,
    "volume": 50, "issue": 50, "pages": 50, "publisher": 300, "url": 2_000, "citation_key": 100,
}  # fmt: skip
MOST_AUTHORS, LONGEST_PERSON = 5_000, 200  # a paper of CERN has some 3,000 authors
MOST_TAGS, LONGEST_TAG = 100, 100  # and so many categories, and collections
LONGEST_COLLECTION = 500  # of its path

# The types of CSL 1.0.2: https://docs.citationstyles.org/en/stable/specification.html#appendix-iii-types
KINDS = frozenset(
    "article article-journal article-magazine article-newspaper bill book broadcast chapter classic collection dataset"
    " document entry entry-dictionary entry-encyclopedia event figure graphic hearing interview legal_case legislation"
    " manuscript map motion_picture musical_score pamphlet paper-conference patent performance periodical"
    " personal_communication post post-weblog regulation report review review-book software song speech standard thesis"
    " treaty webpage".split()
)
_PREFIXES = {
    "doi": re.compile(rf"(?:{DOI_ADDRESS}|doi:\s*)", re.I),
    "arxiv": re.compile(rf"(?:{ARXIV_ADDRESS}|arxiv:\s*)", re.I),
}
_FORMS = {
    "doi": (re.compile(rf"{DOI_START}\S+"), 'like "10.21105/jose.00013"'),
    "arxiv": (re.compile(ARXIV_ID), 'like "2301.01234", "2301.01234v2" or "hep-th/9901001"'),
    "url": (re.compile(r"https?://[^\s/?#]+\S*", re.I), "beginning with https:// or http://"),
    "citation_key": (re.compile(r"""[^\s{}(),"#%~\\'=]+"""), 'one word like "ongaro2014"'),
}
_JOINERS = "\u200c\u200d"  # invisible, but some scripts are written with them


def parse_edit(written: str) -> tuple[str, Field[Any]]:
    """ "year=2014" -> the field's name and its value; nothing after the "=" empties the field. Raises UsageError."""
    name, sign, text = written.partition("=")
    name = name.strip()
    if not sign:
        raise UsageError(f"{_quoted(written)} is not of the form FIELD=VALUE.", "Write, for example, year=2014.")
    return require_field(name), parse_field(name, text)


def parse_edits(changes: Sequence[str], reset: Sequence[str]) -> dict[str, Field[Any] | None]:
    """The edits of texts like "year=2014" and of names of fields to reset ("all" for every one). Raises UsageError."""
    edits = resets(reset)
    for written in changes:
        name, field = parse_edit(written)
        if edits.get(name) is not None or name in reset:
            raise UsageError(f"The field {name} is given twice.", "Give it once.")
        edits[name] = field
    if not edits:
        raise UsageError("No change is given.", f"Give one: `{command('papers edit otters.pdf year=2014')}`.")
    return edits


def require_field(name: str) -> str:
    """The name of a field that can be edited. Raises UsageError for any other."""
    if name in EDITABLE:
        return name
    if name in _IMPORTED:
        raise UsageError(f"The field {name} cannot be edited.", "Change it in the library that it was imported from.")
    close = difflib.get_close_matches(name, EDITABLE, 1)
    meant = f" Did you mean {close[0]}?" if close else ""
    raise UsageError(f"There is no field {_quoted(name)}.{meant}", f"The fields are {', '.join(EDITABLE)}.")


def parse_field(name: str, text: str) -> Field[Any]:
    """A field as a person types it: authors, tags and categories are separated by semicolons. Raises UsageError."""
    value: Any = text.strip()
    if name in ("authors", "tags", "categories"):
        value = [part for part in map(str.strip, text.split(";")) if part]
    elif name == "year" and value:
        if not re.fullmatch(r"\d{4}", value, re.ASCII):
            raise UsageError(f"{_quoted(value)} is not a year.", "Write four digits: year=2014.")
        value = int(value)
    return checked_field(name, value)


def checked_field(name: str, value: Any) -> Field[Any]:
    """A person's value for a field: text, a list of tags, a list of names (text or PersonName), or a year.

    Empty text or an empty list empties the field. Raises UsageError for a value that the field cannot have.
    """
    if name == "authors":
        checked: Any = _bounded(name, [_person(author) for author in value], MOST_AUTHORS)
    elif name in ("tags", "categories"):
        checked = _bounded(name, list(dict.fromkeys(_line(name, tag, LONGEST_TAG) for tag in value)), MOST_TAGS)
    elif name == "collections":
        paths = (_line(name, path, LONGEST_COLLECTION) for path in value)
        checked = _bounded(name, list(dict.fromkeys(map(_collection, paths))), MOST_TAGS)
    elif name == "year":
        checked = _year(value, date.today().year + 1)
    else:
        checked = _checked_text(name, value)
    return Field(checked, "person", True)


def key_in(edits: Edits) -> str:
    """The citation key that these edits choose; "" for none."""
    field = edits.get("citation_key")
    return field.value if field else ""


def edited(person: Metadata, edits: Edits) -> Metadata:
    """A person's metadata of a paper after these edits. person: before them."""
    known: dict[str, Field[Any]] = person.known()
    for name, field in edits.items():
        known.pop(name, None)
        if field is not None:
            known[name] = field
    return Metadata(**known)


def reverted(now: Metadata, before: Metadata, after: Metadata) -> Metadata:
    """A person's metadata of a paper without a change, which made `after` of `before`.

    Raises ChangedElsewhere if one of these fields was changed again since.
    """
    known, old, new = (each.known() for each in (now, before, after))
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if any(known.get(name) not in (new.get(name), old.get(name)) for name in changed):
        raise ChangedElsewhere("This paper was changed again since.", "It stays as it is now.")
    return edited(now, {name: old.get(name) for name in changed})


def retagged(
    layers: Mapping[Source, Metadata],
    add: Sequence[str],
    remove: Sequence[str],
    name: Literal["tags", "collections"] = "tags",
) -> Metadata:
    """A person's metadata of a paper after adding and removing tags, or collections. layers: the metadata of all
    sources, before.

    Case does not matter. If the imported ones are left, the person's are reset. Raises UsageError as checked_field.
    """
    person = layers.get("person", NO_METADATA)
    adding = checked_field(name, add).value
    gone = {tag.casefold() for tag in checked_field(name, remove).value} - {tag.casefold() for tag in adding}
    before = getattr(merged(layers), name).value
    kept = [tag for tag in before if tag.casefold() not in gone]
    known = {tag.casefold() for tag in kept}
    tags = checked_field(name, [*kept, *(tag for tag in adding if tag.casefold() not in known)])
    if tags.value == before:
        return person
    imported = merged({source: metadata for source, metadata in layers.items() if source != "person"})
    return edited(person, {name: None if tags.value == getattr(imported, name).value else tags})


def resets(names: Iterable[str]) -> dict[str, Field[Any] | None]:
    """Edits that reset these fields, or every field for "all". Raises UsageError."""
    wanted = list(names)
    return dict.fromkeys(EDITABLE if "all" in wanted else map(require_field, wanted))


def parse_person(text: str) -> PersonName:
    """A name as a person types it (people.split_typed_name). Raises UsageError."""
    person = split_typed_name(_line("authors", text, LONGEST_PERSON))
    if not person.family or "," in person.given or set("{};") & set(person.family + person.given):
        remedy = 'Write "Family, Given; Family, Given", and an organisation in braces: "{European Union}".'
        raise UsageError(f"{_quoted(text)} is not the name of one author.", remedy)
    return person


def value_text(value: Any) -> str:
    """A field's value as `parse_field` reads it; "" for none."""
    if isinstance(value, tuple) and value and type(value[0]) is tuple:
        return "; ".join(f"{name}: {text}" for name, text in value)
    if isinstance(value, tuple):
        return "; ".join(typed_name(part) if isinstance(part, PersonName) else part for part in value)
    return "" if value is None else str(value)


def _person(value: Any) -> PersonName:
    if not isinstance(value, PersonName):
        return parse_person(value)
    family, given = (_line("authors", part, LONGEST_PERSON) for part in (value.family, value.given))
    if not family:
        raise UsageError("An author has no family name.", "Write an author with one name as family name.")
    return PersonName(family, given)


def _collection(path: str) -> str:
    """A path with a name at each step. Raises UsageError."""
    steps = [step.strip() for step in path.split("/")]
    if not all(steps):
        raise UsageError(f"{_quoted(path)} is not the path of a collection.", "Write it like Systems/Consensus.")
    return "/".join(steps)


def _year(value: Any, newest: int) -> int | None:
    if value == "":
        return None
    if not FIRST_YEAR <= value <= newest:
        raise UsageError(f"The year {value} is not between {FIRST_YEAR} and {newest}.", "Give the right year.")
    return int(value)


def _checked_text(name: str, value: str) -> str:
    line = _line(name, value, LONGEST[name])
    prefix = _PREFIXES[name].match(line) if name in _PREFIXES else None
    line = line[prefix.end() :] if prefix else line
    if name in _FORMS and line:
        form, example = _FORMS[name]
        if not form.fullmatch(line):
            raise UsageError(f"{_quoted(line)} cannot be the field {name}.", f"Write one {example}.")
    if name == "date" and line and not is_date(line):
        raise UsageError(f"{_quoted(line)} is not a date.", "Write the day or the month: 2014-06-19 or 2014-06.")
    if name == "kind" and line and line not in KINDS:
        close = difflib.get_close_matches(line, sorted(KINDS), 3, 0.4) or ["article-journal", "paper-conference"]
        raise UsageError(f"{_quoted(line)} is not a kind of publication.", f"Write a CSL type like {', '.join(close)}.")
    return line


def _line(name: str, value: str, longest: int) -> str:
    """Text on one line. Raises UsageError if it is too long or has characters that cannot be shown."""
    line = one_line(unicodedata.normalize("NFC", value))
    if not all(char.isprintable() or char in _JOINERS for char in line):
        raise UsageError(f"The field {name} has characters that cannot be shown.", "Type it instead of pasting it.")
    if len(line) > longest:
        raise UsageError(f"The field {name} is longer than {longest:,} characters.", "Shorten it.")
    return line


def _bounded(name: str, values: Sequence[Any], most: int) -> tuple[Any, ...]:
    if len(values) > most:
        raise UsageError(f"There are more than {most:,} {name}.", "Leave some out.")
    return tuple(value for value in values if value)


def _quoted(text: str) -> str:
    return f"“{shorten(text, 80)}”"
