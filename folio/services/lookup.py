"""Finds works at the services: by identifier, by words, by title; where one fails, the next is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from folio.errors import SourceError, UsageError
from folio.papers.identifiers import Identifier, bare_arxiv, parse_identifier
from folio.papers.metadata import FIELDS, Field, Metadata, Source, with_own_version
from folio.papers.metadata import merged as merged_metadata
from folio.papers.work import SourceName, Work, grouped
from folio.services import arxiv, crossref, keep, openalex, semantic_scholar
from folio.services.addresses import NAMES
from folio.services.answers import SearchQuery, SearchSource
from folio.services.http import HttpClient
from folio.services.keep import PaperFound
from folio.store.works import FoundBy

ItemT = TypeVar("ItemT")
_Ask = Callable[[HttpClient, Identifier], Work | None]
_BY_IDENTIFIER: dict[SourceName, _Ask] = {
    "openalex": openalex.by_identifier,
    "semanticscholar": semantic_scholar.by_identifier,
    "crossref": lambda client, found: crossref.by_doi(client, found.value) if found.kind == "doi" else None,
    "arxiv": lambda client, found: (
        next(iter(arxiv.by_ids(client, [found.value])), None) if found.kind == "arxiv" else None
    ),
}
# To get a paper: the service that knows of open copies first. To describe it: whoever registered it.
TO_GET: tuple[SourceName, ...] = ("openalex", "semanticscholar", "crossref")
TO_DESCRIBE: tuple[SourceName, ...] = ("arxiv", "crossref", "openalex", "semanticscholar")


class Lookup:
    """Asks the services in turn; what fails is told and left out."""

    def __init__(self, client: HttpClient, on_failure: Callable[[str], None]) -> None:
        """on_failure: told one sentence about each failure."""
        self.client = client
        self._on_failure = on_failure
        self._told: set[str] = set()

    def find(self, identifiers: Sequence[Identifier]) -> list[Work | None]:
        """The work of each identifier; None where no service has it. arXiv is asked for all of its own at once."""
        numbers = list(dict.fromkeys(each.value for each in identifiers if each.kind == "arxiv"))
        found = self.attempt(partial(arxiv.by_ids, self.client, numbers)) if numbers else []
        known = {work.arxiv.casefold(): work for work in found}
        known |= {bare_arxiv(work.arxiv): work for work in found}
        of_arxiv = [known.get(each.value.casefold()) if each.kind == "arxiv" else None for each in identifiers]
        return [work or self.by_identifier(each, TO_GET) for each, work in zip(identifiers, of_arxiv, strict=True)]

    def by_identifier(self, identifier: Identifier, order: Iterable[SourceName]) -> Work | None:
        """The work of an identifier, from the first service that has it."""
        for source in order:
            found = self.attempt(partial(_ask_one, _BY_IDENTIFIER[source], self.client, identifier))
            if found and found[0].title:
                return found[0]
        return None

    def by_title(self, title: str, first_author: str) -> Iterable[list[Work]]:
        """What each service knows under a title, one after the other."""
        yield self.attempt(partial(crossref.by_title, self.client, title, first_author))
        yield self.attempt(partial(openalex.by_title, self.client, title))
        yield self.attempt(partial(semantic_scholar.by_title, self.client, title))

    def with_bibtex(self, work: Work) -> Work:
        """The work with its publisher's BibTeX entry, if Crossref described it."""
        if work.source != "crossref" or not work.doi:
            return work
        found = self.attempt(lambda: [crossref.bibtex(self.client, work)])
        return replace(work, bibtex=found[0]) if found else work

    def search(self, query: SearchQuery, source: SearchSource | None) -> list[list[Work]]:
        """The works that match, each once, as everything that was said of it. source: None for the first that answers.

        Raises SourceError if none answers; UsageError for what a source cannot do.
        """
        if source == "arxiv" and (query.sort == "citations" or query.min_cited):
            remedy = "Search OpenAlex, or leave out the minimum of citations and the order by citations."
            raise UsageError("arXiv does not count citations.", remedy)
        ask = {"openalex": openalex.search, "semanticscholar": semantic_scholar.search, "arxiv": arxiv.search}
        chosen: Sequence[SearchSource] = (source,) if source else ("openalex", "semanticscholar")
        for name in chosen[:-1]:
            try:
                return grouped(ask[name](self.client, query))
            except SourceError as error:
                self._on_failure(f"{error.happened} {NAMES[chosen[-1]]} is asked instead.")
        return grouped(ask[chosen[-1]](self.client, query))

    def pdf_links(self, work: Work) -> Iterator[str]:
        """Where the PDF of a work may be: the open copies, arXiv, then what Unpaywall knows, who is asked last."""
        links = list(work.pdfs)
        if work.arxiv:
            links.append(self.client.addresses.arxiv_pdf(work.arxiv))
        yield from dict.fromkeys(links)
        if work.doi and self.client.identity.contact_email:
            known = self.attempt(lambda: list(arxiv.find_pdfs(self.client, work.doi)))
            yield from (link for link in known if link not in links)

    def attempt(self, ask: Callable[[], list[ItemT]]) -> list[ItemT]:
        """What a service says; nothing, and a line about it, if it fails. A reason is told once."""
        try:
            return ask()
        except SourceError as error:
            if error.happened not in self._told:
                self._told.add(error.happened)
                self._on_failure(error.happened)
            return []


def _ask_one(ask: _Ask, client: HttpClient, identifier: Identifier) -> list[Work]:
    found = ask(client, identifier)
    return [found] if found else []


# What the services know of papers that are in the library: found by DOI, by arXiv id, else by title and authors.

SERVICE_NAMES: dict[FoundBy, str] = {"doi": "DOI", "arxiv": "arXiv id"}  # as people read it


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
        if keep.contradicts(about, work):
            note = f'its {SERVICE_NAMES[identifier.kind]} is that of another work, "{work.title[:80]}"'
            continue
        score = keep.score(about, work)
        return Described(PaperFound(_with_publication(work, lookup), identifier.kind, score), note)
    first = about.authors.value[0].family if about.authors.value else ""
    for works in lookup.by_title(about.title.value, first) if about.title.value else ():
        if best := keep.best(about, works):
            return Described(PaperFound((lookup.with_bibtex(best[0]),), "title", best[1]), note)
    return Described(note=note)


def _with_publication(work: Work, lookup: Lookup) -> tuple[Work, ...]:
    """A work; before it what the publisher says, if it is a preprint that names its publication."""
    if work.source == "arxiv" and work.doi:
        published = lookup.by_identifier(Identifier("doi", work.doi), ("crossref", "openalex"))
        if published and keep.same_title(published, work):
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
    before, after = merged_metadata(layers), merged_metadata({**layers, "online": with_own_version(layers, said)})
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in FIELDS]
    return [(name, old, new) for name, old, new in pairs if old.value != new.value]
