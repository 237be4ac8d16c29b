"""Made answers in the forms of the services, as small as they can be."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape


def openalex_work(
    number: int, title: str, *authors: str, year: int = 2021, doi: str = "", **more: Any
) -> dict[str, Any]:
    """A work of OpenAlex. authors: "Ada Byte"."""
    return {
        "id": f"https://openalex.org/W{number}",
        "doi": f"https://doi.org/{doi}" if doi else None,
        "title": title,
        "publication_year": 2021,
        "authorships": [{"author": {"display_name": author, "orcid": None}} for author in authors],
        "open_access": {"is_oa": True, "oa_url": None},
        "cited_by_count": 12,
        "is_retracted": False,
        "abstract_inverted_index": {"Otters": [0, 2], "eat": [1]},
        **more,
    }


def openalex_list(*works: dict[str, Any], cursor: str | None = None) -> dict[str, Any]:
    return {"meta": {"count": len(works), "next_cursor": cursor}, "results": list(works)}


def crossref_work(doi: str, title: str, *authors: tuple[str, str], year: int = 2021, **more: Any) -> dict[str, Any]:
    """A work of Crossref. authors: ("Ada", "Byte")."""
    return {
        "DOI": doi,
        "title": [title],
        "author": [{"given": given, "family": family} for given, family in authors],
        "issued": {"date-parts": [[year, 3]]},
        "container-title": ["Journal of Otters"],
        "type": "journal-article",
        "is-referenced-by-count": 7,
        **more,
    }


def crossref(message: Any) -> dict[str, Any]:
    return {"status": "ok", "message-type": "work", "message": message}


def crossref_list(*works: dict[str, Any]) -> dict[str, Any]:
    return crossref({"items": list(works), "total-results": len(works)})


def s2_work(number: int, title: str, *authors: str, year: int = 2021, **ids: str) -> dict[str, Any]:
    """A work of Semantic Scholar. ids: its DOI, ArXiv."""
    return {
        "paperId": f"{number:040x}",
        "externalIds": {"CorpusId": number, **ids},
        "title": title,
        "authors": [{"authorId": "1", "name": author} for author in authors],
        "year": year,
        "venue": "Otter Conference",
        "publicationTypes": ["Conference"],
        "citationCount": 3,
        "openAccessPdf": {"url": "", "status": None},
    }


def with_updates(work: dict[str, Any], name: str, *updates: Any) -> dict[str, Any]:
    """A record of Crossref with these notices. name: "updated-by" or "update-to"."""
    return {**work, name: list(updates)}


def crossref_update(doi: str, kind: str, *day: int) -> dict[str, Any]:
    """A notice in the record of a work (updated-by), or the work in the record of a notice (update-to)."""
    return {"DOI": doi, "type": kind, "updated": {"date-parts": [list(day)]}, "source": "publisher", "label": kind}


def arxiv_entry(
    number: str, title: str, *authors: str, year: int = 2021, doi: str = "", updated: str = "", comment: str = ""
) -> str:
    """An entry of arXiv's feed. number: with its version. updated: the day of this version."""
    people = "".join(f"<author><name>{escape(author)}</name></author>" for author in authors)
    link = f"<arxiv:doi>{escape(doi)}</arxiv:doi>" if doi else ""
    link += f"<updated>{updated}T10:00:00Z</updated>" if updated else ""
    link += f"<arxiv:comment>{escape(comment)}</arxiv:comment>" if comment else ""
    return (
        f"<entry><id>http://arxiv.org/abs/{number}</id><title>{escape(title)}</title>"
        f"<summary>  On {escape(title)}.</summary><published>{year}-05-26T17:59:46Z</published>{people}{link}"
        '<category term="cs.IR" scheme="http://arxiv.org/schemas/atom"/></entry>'
    )


def arxiv_feed(*entries: str, total: int | None = None) -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/"'
        ' xmlns:arxiv="http://arxiv.org/schemas/atom" xmlns="http://www.w3.org/2005/Atom">'
        f"<opensearch:totalResults>{len(entries) if total is None else total}</opensearch:totalResults>"
        f"{''.join(entries)}</feed>"
    ).encode()


def oai_record(
    number: str, title: str, created: str, *categories: str, changed: str = "", deleted: bool = False
) -> str:
    """A record of arXiv's OAI-PMH, `metadataPrefix=arXiv`. number: without a version. changed: its datestamp."""
    header = f"<identifier>oai:arXiv.org:{number}</identifier><datestamp>{changed or created}</datestamp>"
    if deleted:
        return f'<record><header status="deleted">{header}</header></record>'
    return (
        f"<record><header>{header}<setSpec>cs:cs:CL</setSpec></header><metadata>"
        f'<arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>{number}</id><created>{created}</created>'
        "<authors><author><keyname>Byte</keyname><forenames>Ada</forenames></author></authors>"
        f"<title>{escape(title)}</title><categories>{' '.join(categories)}</categories>"
        f"<license>http://creativecommons.org/licenses/by/4.0/</license><abstract>  On {escape(title)}.\n</abstract>"
        "</arXiv></metadata></record>"
    )


def oai_list(*records: str, token: str | None = None) -> bytes:
    """A part of a list. token: for the next part; "" in the last part of several, None in a list of one part."""
    more = "" if token is None else f'<resumptionToken cursor="0">{escape(token)}</resumptionToken>'
    return _oai(f"<ListRecords>{''.join(records)}{more}</ListRecords>")


def oai_error(code: str, said: str = "") -> bytes:
    return _oai(f'<error code="{code}">{escape(said)}</error>')


def _oai(content: str) -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
        "<responseDate>2026-01-05T00:00:00Z</responseDate>"
        f'<request verb="ListRecords">http://oaipmh.arxiv.org/oai</request>{content}</OAI-PMH>'
    ).encode()


def europepmc_work(number: int, title: str, *authors: tuple[str, str], doi: str = "", pdf: str = "") -> dict[str, Any]:
    """A work of Europe PMC as its documentation shows one: the service itself was never asked.

    authors: ("Ada", "Byte"). pdf: the address of an open copy.
    """
    link = {"availability": "Open access", "availabilityCode": "OA", "documentStyle": "pdf", "site": "Europe_PMC"}
    page = {"availability": "Subscription required", "availabilityCode": "S", "documentStyle": "doi", "site": "DOI"}
    links = [{**page, "url": f"https://doi.org/{doi}"}, *([{**link, "url": pdf}] if pdf else [])]
    return {
        "id": str(number),
        "source": "MED",
        "pmid": str(number),
        "pmcid": f"PMC{number}",
        **({"doi": doi} if doi else {}),
        "title": f"{title}.",
        "authorString": ", ".join(f"{family} {given[0]}" for given, family in authors),
        "authorList": {
            "author": [
                {
                    "fullName": f"{family} {given[0]}",
                    "firstName": given,
                    "lastName": family,
                    "authorId": {"type": "ORCID", "value": "0000-0002-5424-5260"},
                }
                for given, family in authors
            ]
        },
        "journalInfo": {"issue": "3", "volume": "12", "yearOfPublication": 2021, "journal": {"title": "Sea Life"}},
        "pubYear": "2021",
        "pageInfo": "137-150",
        "abstractText": "<h4>Background</h4>Otters eat &lt;1 kg.",
        "pubTypeList": {"pubType": ["research-article", "Journal Article"]},
        "fullTextUrlList": {"fullTextUrl": links},
        "isOpenAccess": "Y" if pdf else "N",
        "citedByCount": 12,
        "license": "cc by",
        "firstPublicationDate": "2021-05-26",
    }


def europepmc_list(*works: dict[str, Any], cursor: str = "") -> dict[str, Any]:
    following = {"nextCursorMark": cursor} if cursor else {}
    return {"version": "6.9", "hitCount": len(works), **following, "resultList": {"result": list(works)}}
