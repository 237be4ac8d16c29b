"""What the services know of papers that are in the library: found by DOI, by arXiv id, else by title and authors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from folio.errors import UsageError
from folio.paper_metadata import FIELDS, Field, Metadata, Source, merged
from folio.sources import paper_match
from folio.sources.identifiers import Identifier, parse_identifier
from folio.sources.lookup import TO_DESCRIBE, Lookup
from folio.work import to_metadata


@dataclass(frozen=True, slots=True)
class Described:
    """What came of a paper."""

    metadata: Metadata | None  # None: no work is known to be it
    found_by: str = ""  # "DOI", "arXiv id", "title"
    score: float = 0.0  # how well title, authors and year agree, 0 to 1
    note: str = ""  # why an identifier was not believed


def describe_paper(about: Metadata, lookup: Lookup) -> Described:
    """What services say of a paper. about: what is known of it without them."""
    note = ""
    for name, identifier in _identifiers(about):
        work = lookup.by_identifier(identifier, TO_DESCRIBE)
        if work is None:
            continue
        if paper_match.contradicts(about, work):
            note = f'its {name} is that of another work, "{work.title[:80]}"'
            continue
        return Described(to_metadata([work]), name, paper_match.score(about, work), note)
    first = about.authors.value[0].family if about.authors.value else ""
    for works in lookup.by_title(about.title.value, first) if about.title.value else ():
        if found := paper_match.best(about, works):
            return Described(to_metadata([found[0]]), "title", found[1], note)
    return Described(None, note=note)


def _identifiers(about: Metadata) -> Iterator[tuple[str, Identifier]]:
    for name, text in (("DOI", about.doi.value), ("arXiv id", about.arxiv.value)):
        try:
            if text:
                yield name, parse_identifier(text)
        except UsageError:
            continue


def changes(layers: Mapping[Source, Metadata], said: Metadata) -> list[tuple[str, Field[Any], Field[Any]]]:
    """The fields that people will see otherwise: name, before, after."""
    before, after = merged(layers), merged({**layers, "online": said})
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in FIELDS]
    return [(name, old, new) for name, old, new in pairs if old.value != new.value]
