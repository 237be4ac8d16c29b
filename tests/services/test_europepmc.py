"""Europe PMC, in the shape that its documentation shows: nobody here has asked the service itself."""

from __future__ import annotations

import json
from datetime import date

import pytest

from folio.errors import SourceError
from folio.papers.identifiers import Identifier, parse_identifier
from folio.papers.work import WorkAuthor, grouped
from folio.services import europepmc
from folio.services.answers import SearchQuery
from folio.services.http import HttpClient
from folio.services.keep import identifier_of, identifiers_of, pdf_name
from folio.services.lookup import Lookup
from tests.helpers.source_records import europepmc_list, europepmc_work, openalex_work
from tests.helpers.source_server import SourceServer, json_answer

pytestmark = pytest.mark.fast

PDF = "https://europepmc.org/articles/PMC7?pdf=render"
OTTERS = europepmc_work(7, "Otters at Sea", ("Ada", "Byte"), doi="10.1234/X", pdf=PDF)


def test_a_work_is_read_with_its_open_copy_and_its_abstract() -> None:
    (found,), cursor = europepmc.read_works(200, json.dumps(europepmc_list(OTTERS, cursor="AoE=")))
    assert (found.source, found.title, found.doi, cursor) == ("europepmc", "Otters at Sea", "10.1234/x", "AoE=")
    assert found.authors == (WorkAuthor("Byte", "Ada", "0000-0002-5424-5260"),)
    assert (found.year, found.date, found.venue) == (2021, "2021-05-26", "Sea Life")
    assert (found.volume, found.issue, found.pages, found.kind) == ("12", "3", "137–150", "article-journal")
    assert (found.abstract, found.licence, found.cited) == ("Background Otters eat <1 kg.", "cc by", 12)
    assert (found.pdfs, found.is_open, found.is_retracted) == ((PDF,), True, False)
    assert found.marks()[:3] == ["doi 10.1234/x", "pmid 7", "pmcid PMC7"]


def test_a_copy_that_must_be_paid_for_is_no_open_one() -> None:
    closed = europepmc_work(8, "Closed", ("Ada", "Byte"), doi="10.1234/y")
    retracted = {**closed, "pubTypeList": {"pubType": ["Retracted Publication", "Journal Article"]}}
    (found, other), _ = europepmc.read_works(200, json.dumps(europepmc_list(closed, retracted)))
    assert (found.pdfs, found.is_open, other.is_retracted) == ((), False, True)


def test_a_group_of_authors_and_a_preprint_are_known() -> None:
    preprint = {
        **europepmc_work(9, "Early", doi="10.1101/2024.01.01.1"),
        "authorList": {"author": [{"collectiveName": "The Otter Group"}, {"fullName": "Byte A"}, {}]},
        "pubTypeList": {"pubType": ["Preprint"]},
        "journalInfo": None,
        "bookOrReportDetails": {"publisher": "bioRxiv", "yearOfPublication": 2024},
    }
    (found,), _ = europepmc.read_works(200, json.dumps(europepmc_list(preprint)))
    assert [author.family for author in found.authors] == ["The Otter Group", "Byte"]
    assert (found.is_preprint, found.publisher, found.venue) == (True, "bioRxiv", "")


def test_a_search_goes_from_page_to_page(server: SourceServer, client: HttpClient) -> None:
    works = [europepmc_work(n, f"Work {n}", ("Ada", "Byte")) for n in range(1, 5)]
    server.add("/europepmc/search", json_answer(europepmc_list(*works[:2], cursor="b")), parameters={"cursorMark": "*"})
    server.add("/europepmc/search", json_answer(europepmc_list(*works[2:], cursor="b")), parameters={"cursorMark": "b"})
    query = SearchQuery('"sea otters" (kelp', date(2020, 1, 1), is_open=True, sort="citations", most=3)
    assert [work.title for work in europepmc.search(client, query)] == ["Work 1", "Work 2", "Work 3"]
    asked = server.asked[0].parameters
    assert asked["query"] == '("sea otters" kelp) AND FIRST_PDATE:[2020-01-01 TO 2100-12-31] AND OPEN_ACCESS:y'
    assert (asked["format"], asked["resultType"], asked["sort"]) == ("json", "core", "CITED desc")
    assert len(europepmc.search(client, SearchQuery("x", min_cited=13))) == 0
    assert "mailto" not in asked  # it takes no such parameter: the User-Agent has the address


@pytest.mark.parametrize(
    ("typed", "kind", "value", "asked"),
    [
        ("PMID: 7", "pmid", "7", "EXT_ID:7 AND SRC:MED"),
        ("pmc7", "pmcid", "PMC7", "PMCID:PMC7"),
        ("https://pubmed.ncbi.nlm.nih.gov/7/", "pmid", "7", "EXT_ID:7 AND SRC:MED"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC7/", "pmcid", "PMC7", "PMCID:PMC7"),
        ("https://pmc.ncbi.nlm.nih.gov/articles/PMC7/", "pmcid", "PMC7", "PMCID:PMC7"),
        ("https://europepmc.org/article/MED/7", "pmid", "7", "EXT_ID:7 AND SRC:MED"),
        ("10.1234/x", "doi", "10.1234/x", 'DOI:"10.1234/x"'),
    ],
)
def test_identifiers_of_pubmed_lead_to_the_work(
    server: SourceServer, client: HttpClient, typed: str, kind: str, value: str, asked: str
) -> None:
    named = parse_identifier(typed)
    assert named == Identifier(kind, value)  # type: ignore[arg-type]
    assert parse_identifier(str(named)) == named
    other = europepmc_work(8, "Another", ("Bo", "Bit"))
    server.add("/europepmc/search", json_answer(europepmc_list(other, OTTERS)), parameters={"query": asked})
    (found,) = Lookup(client, lambda said: None).find([named])
    assert found is not None
    assert found.title == "Otters at Sea"


@pytest.mark.parametrize("typed", ["7", "PMC", "PMID", "PMCID: 7", "https://europepmc.org/search?query=7", "PMC0"])
def test_what_is_no_identifier_of_pubmed_is_none(typed: str) -> None:
    from folio.papers.identifiers import find_identifier

    assert find_identifier(typed) is None


def test_a_work_without_a_doi_has_a_name_and_can_be_asked_for() -> None:
    (found,), _ = europepmc.read_works(200, json.dumps(europepmc_list(europepmc_work(7, "Otters", ("Ada", "Byte")))))
    assert str(identifier_of(found)) == "PMC7"
    assert [str(each) for each in identifiers_of(found)] == ["PMID:7", "PMC7"]
    assert pdf_name(found) == "PMC7 Otters.pdf"


def test_it_is_one_work_with_that_of_another_service() -> None:
    from folio.services import openalex

    (found,), _ = europepmc.read_works(200, json.dumps(europepmc_list(OTTERS)))
    same = openalex.read_work(200, json.dumps(openalex_work(1, "Otters at Sea", "Ada Byte", doi="10.1234/x")))
    assert same is not None
    assert len(grouped([found, same])) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"resultList": 5}', '{"resultList": {"result": [5]}}', "{" * 99_999])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(SourceError, match="Europe PMC sent something that cannot be read"):
        europepmc.read_works(200, text)


def test_what_the_service_says_is_passed_on() -> None:
    with pytest.raises(SourceError, match=r"Europe PMC says: Invalid query\."):
        europepmc.read_works(200, '{"errCode": 404, "errMsg": "Invalid query."}')
