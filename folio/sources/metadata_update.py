"""What the services know of papers that are in the library: found by DOI, by arXiv id, else by title and authors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from folio.errors import UsageError
from folio.identifiers import Identifier, parse_identifier
from folio.paper_metadata import FIELDS, Field, Metadata, Source, merged, with_own_version
from folio.sources import paper_match
from folio.sources.lookup import TO_DESCRIBE, Lookup
from folio.sources.work_keeping import PaperFound
from folio.store.work_rows import FoundBy
from folio.work import Work

NAMES: dict[FoundBy, str] = {"doi": "DOI", "arxiv": "arXiv id"}  # as people read it


@dataclass(frozen=True, slots=True)
class Described:
    """What came of a paper."""

    found: PaperFound | None = None  # None: no work is known to be it
    note: str = ""  # why an identifier was not believed


def describe_paper(about: Metadata, lookup: Lookup) -> Described:
    """What services say of a paper. about: what is known of it without them."""
    note = ""
    for identifier in identifiers_in(about):
        work = lookup.by_identifier(identifier, TO_DESCRIBE)
        if work is None:
            continue
        if paper_match.contradicts(about, work):
            note = f'its {NAMES[identifier.kind]} is that of another work, "{work.title[:80]}"'
            continue
        score = paper_match.score(about, work)
        return Described(PaperFound(_with_publication(work, lookup), identifier.kind, score), note)
    first = about.authors.value[0].family if about.authors.value else ""
    for works in lookup.by_title(about.title.value, first) if about.title.value else ():
        if best := paper_match.best(about, works):
            return Described(PaperFound((lookup.with_bibtex(best[0]),), "title", best[1]), note)
    return Described(note=note)


def _with_publication(work: Work, lookup: Lookup) -> tuple[Work, ...]:
    """A work; before it what the publisher says, if it is a preprint that names its publication."""
    if work.source == "arxiv" and work.doi:
        published = lookup.by_identifier(Identifier("doi", work.doi), ("crossref", "openalex"))
        if published and paper_match.same_title(published, work):
            return lookup.with_bibtex(published), work
    return (lookup.with_bibtex(work),)


def identifiers_in(about: Metadata) -> Iterator[Identifier]:
    """A paper's DOI and arXiv id, as far as it has them."""
    for text in (about.doi.value, about.arxiv.value):
        try:
            if text:
                yield parse_identifier(text)
        except UsageError:
            continue


def changes(layers: Mapping[Source, Metadata], said: Metadata) -> list[tuple[str, Field[Any], Field[Any]]]:
    """The fields that people will see otherwise: name, before, after."""
    before, after = merged(layers), merged({**layers, "online": with_own_version(layers, said)})
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in FIELDS]
    return [(name, old, new) for name, old, new in pairs if old.value != new.value]
