"""Finds works at the services by identifier, words or title, and the works of the library's papers.

Where a service fails, the next one is asked.
"""

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
from folio.services import arxiv, crossref, europepmc, keep, oai, openalex, semantic_scholar
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
    "crossref": lambda client, name: crossref.by_doi(client, name.value) if name.kind == "doi" else None,
    "arxiv": lambda client, name: (
        next(iter(arxiv.by_ids(client, [name.value])), None) if name.kind == "arxiv" else None
    ),
    "europepmc": europepmc.by_identifier,
}
# To get a paper: services that know open copies first. To describe it: the source that registered it first.
TO_GET: tuple[SourceName, ...] = ("openalex", "semanticscholar", "crossref", "europepmc")
TO_DESCRIBE: tuple[SourceName, ...] = ("arxiv", "crossref", "openalex", "semanticscholar", "europepmc")
# As people read it
SERVICE_NAMES: dict[FoundBy, str] = {"doi": "DOI", "arxiv": "arXiv id", "pmid": "PubMed id", "pmcid": "PMC id"}


class Lookup:
    """Asks the services in turn; failures are reported and skipped."""

    def __init__(self, client: HttpClient, on_failure: Callable[[str], None]) -> None:
        """on_failure: gets one sentence about each failure."""
        self.client = client
        self._on_failure = on_failure
        self._reported: set[str] = set()

    def find(self, identifiers: Sequence[Identifier]) -> list[Work | None]:
        """The work of each identifier; None where no service has it. One request gets all arXiv ids."""
        numbers = list(dict.fromkeys(each.value for each in identifiers if each.kind == "arxiv"))
        works = self.attempt(partial(arxiv.by_ids, self.client, numbers)) if numbers else []
        known = {work.arxiv.casefold(): work for work in works} | {bare_arxiv(work.arxiv): work for work in works}
        of_arxiv = [known.get(each.value.casefold()) if each.kind == "arxiv" else None for each in identifiers]
        return [work or self.by_identifier(each, TO_GET) for each, work in zip(identifiers, of_arxiv, strict=True)]

    def by_identifier(self, identifier: Identifier, order: Iterable[SourceName]) -> Work | None:
        """The work of an identifier, from the first service that has it."""
        for source in order:
            works = self.attempt(partial(_ask_one, _BY_IDENTIFIER[source], self.client, identifier))
            if works and works[0].title:
                return works[0]
        return None

    def by_title(self, title: str, first_author: str) -> Iterable[list[Work]]:
        """The works that each service finds for a title, service by service."""
        yield self.attempt(partial(crossref.by_title, self.client, title, first_author))
        yield self.attempt(partial(openalex.by_title, self.client, title))
        yield self.attempt(partial(semantic_scholar.by_title, self.client, title))

    def with_bibtex(self, work: Work) -> Work:
        """The work with its publisher's BibTeX entry, if Crossref described it."""
        if work.source != "crossref" or not work.doi:
            return work
        entries = self.attempt(lambda: [crossref.bibtex(self.client, work)])
        return replace(work, bibtex=entries[0]) if entries else work

    def search(self, query: SearchQuery, source: SearchSource | None) -> list[list[Work]]:
        """The works that match, each as a list of its descriptions. source: None for the first service that answers.

        arXiv is searched for categories; without words, all works of its categories and dates are listed.
        Raises SourceError if none answers; UsageError for a search that a source does not offer.
        """
        if query.categories:
            source = "arxiv"
        if source == "arxiv" and (query.sort == "citations" or query.min_cited):
            remedy = "Search OpenAlex, or leave out the minimum of citations and the order by citations."
            raise UsageError("arXiv does not count citations.", remedy)
        if query.categories and not query.words:
            return grouped(list(oai.harvest(self.client, query)))
        ask = {
            "openalex": openalex.search,
            "semanticscholar": semantic_scholar.search,
            "arxiv": arxiv.search,
            "europepmc": europepmc.search,
        }
        chosen: Sequence[SearchSource] = (source,) if source else ("openalex", "semanticscholar")
        for name in chosen[:-1]:
            try:
                return grouped(ask[name](self.client, query))
            except SourceError as error:
                self._on_failure(f"{error.happened} {NAMES[chosen[-1]]} is asked instead.")
        return grouped(ask[chosen[-1]](self.client, query))

    def pdf_links(self, work: Work) -> Iterator[str]:
        """Links to the PDF of a work: open copies, arXiv, and last Unpaywall, which is only asked when needed."""
        links = list(work.pdfs)
        if work.arxiv:
            links.append(self.client.addresses.arxiv_pdf(work.arxiv))
        yield from dict.fromkeys(links)
        if work.doi and self.client.identity.contact_email:
            known = self.attempt(lambda: list(arxiv.find_pdfs(self.client, work.doi)))
            yield from (link for link in known if link not in links)

    def attempt(self, ask: Callable[[], list[ItemT]]) -> list[ItemT]:
        """The result of `ask`; an empty list if the service fails. Each reason is reported once."""
        try:
            return ask()
        except SourceError as error:
            if error.happened not in self._reported:
                self._reported.add(error.happened)
                self._on_failure(error.happened)
            return []


def _ask_one(ask: _Ask, client: HttpClient, identifier: Identifier) -> list[Work]:
    work = ask(client, identifier)
    return [work] if work else []


@dataclass(frozen=True, slots=True)
class Described:
    """The result of looking up a paper."""

    found: PaperFound | None = None  # None if no work matches
    note: str = ""  # why an identifier was rejected


def describe_paper(about: Metadata, lookup: Lookup) -> Described:
    """Find a paper's work by DOI, by arXiv id, else by title and authors. about: metadata from other sources."""
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
    """A work; for a preprint that names its publication, the publisher's description comes first."""
    if work.source == "arxiv" and work.doi:
        published = lookup.by_identifier(Identifier("doi", work.doi), ("crossref", "openalex"))
        if published and keep.same_title(published.title, work.title):
            return lookup.with_bibtex(published), work
    return (lookup.with_bibtex(work),)


def identifiers_in(about: Metadata) -> Iterator[Identifier]:
    """A paper's DOI and arXiv id, if known."""
    for text in (about.doi.value, about.arxiv.value):
        try:
            if text:
                yield parse_identifier(text)
        except UsageError:
            continue


def changes(layers: Mapping[Source, Metadata], online: Metadata) -> list[tuple[str, Field[Any], Field[Any]]]:
    """The fields whose shown value changes: name, before, after."""
    before, after = merged_metadata(layers), merged_metadata({**layers, "online": with_own_version(layers, online)})
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in FIELDS]
    return [(name, old, new) for name, old, new in pairs if old.value != new.value]
