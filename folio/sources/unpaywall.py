"""Unpaywall: where a DOI's article can be read without paying. https://unpaywall.org/products/api"""

from __future__ import annotations

from urllib.parse import quote

from folio.sources.answers import Address, Bounded, Line, Part, parse_json, parse_one, unreadable
from folio.sources.http_client import HttpClient

NAME = "Unpaywall"


class _Location(Part):
    url_for_pdf: Address = ""


class UnpaywallWork(Part):
    doi: Line
    is_oa: bool | None = None
    best_oa_location: _Location | None = None
    oa_locations: Bounded[_Location]

    def pdfs(self) -> tuple[str, ...]:
        """Links to PDFs, the best first."""
        links = [each.url_for_pdf for each in (self.best_oa_location, *self.oa_locations) if each]
        return tuple(dict.fromkeys(filter(None, links)))


def find_pdfs(client: HttpClient, doi: str) -> tuple[str, ...]:
    """Links to the PDF of a DOI's article. Raises SourceError. Unpaywall wants a mail address: see Identity."""
    reply = client.get("unpaywall", f"/{quote(doi, safe='/')}", {})
    return read_pdfs(reply.status, reply.text)


def read_pdfs(status: int, text: str) -> tuple[str, ...]:
    """The links of an answer; none for 404. Raises SourceError."""
    if status == 404:
        return ()
    if status != 200:
        raise unreadable(NAME)
    return parse_one(UnpaywallWork, parse_json(text, NAME), NAME).pdfs()
