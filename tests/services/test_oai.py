"""arXiv's works of a category and a time, part by part."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from folio.errors import SourceError, UsageError
from folio.papers.people import split_listed_name
from folio.papers.work import WorkAuthor
from folio.services import oai
from folio.services.answers import SearchQuery
from folio.services.http import HttpClient
from tests.helpers.source_records import oai_error, oai_list, oai_record
from tests.helpers.source_server import Answer, SourceServer

pytestmark = pytest.mark.fast

START = {"set": "cs:cs:CL", "from": "2026-01-02"}


def wanted(**more: Any) -> SearchQuery:
    return SearchQuery("", date(2026, 1, 2), **{"categories": ("cs.CL",), "most": 10, **more})


def numbers(client: HttpClient, query: SearchQuery) -> list[str]:
    return [work.arxiv for work in oai.harvest(client, query)]


@pytest.mark.parametrize(
    ("category", "named"),
    [
        ("cs.CL", "cs:cs:CL"), ("cs", "cs"), ("hep-th", "physics:hep-th"), ("astro-ph.CO", "physics:astro-ph:CO"),
        ("physics.optics", "physics:physics:optics"), ("physics", "physics"), ("q-bio.NC", "q-bio:q-bio:NC"),
        ("math-ph", "physics:math-ph"), ("cond-mat.mtrl-sci", "physics:cond-mat:mtrl-sci"),
    ],
)  # fmt: skip
def test_a_category_has_a_set(category: str, named: str) -> None:
    assert oai.set_of(category) == named


@pytest.mark.parametrize("category", ["", "cs.", "CS CL", "cs:cs", "cs.CL&verb=Identify", "../x"])
def test_what_is_no_category_is_not_asked(category: str) -> None:
    with pytest.raises(UsageError):
        oai.set_of(category)


def test_a_list_is_read_to_its_end_without_what_was_submitted_at_another_time(
    server: SourceServer, client: HttpClient
) -> None:
    old = oai_record("1211.00001", "Old", "2012-11-15", "cs.CL", changed="2026-01-05")
    first = oai_list(
        oai_record("2601.00001", "One", "2026-01-02", "cs.CL", "cs.LG"), old,
        oai_record("2601.00009", "x", "", deleted=True), token="next|1",
    )  # fmt: skip
    last = oai_list(
        oai_record("2601.00001", "One", "2026-01-02", "cs.CL"), oai_record("2601.00002", "Two", "2026-01-31", "cs.CL"),
        oai_record("2602.00003", "Three", "2026-02-01", "cs.CL"), token="",
    )  # fmt: skip
    server.add("/arxivoai/oai", Answer(first), parameters=START)
    server.add("/arxivoai/oai", Answer(last), parameters={"resumptionToken": "next|1"})
    works = list(oai.harvest(client, wanted(until=date(2026, 1, 31))))
    assert [(work.arxiv, work.date, work.year) for work in works] == [
        ("2601.00001", "2026-01-02", 2026),
        ("2601.00002", "2026-01-31", 2026),
    ]
    assert works[0].categories == ("cs.CL", "cs.LG")
    assert works[0].authors == (WorkAuthor(*split_listed_name("Ada Byte")),)
    assert (works[0].abstract, works[0].is_open) == ("On One.", True)
    assert [asked.parameters.keys() for asked in server.asked] == [
        {"verb", "metadataPrefix", "set", "from"},
        {"verb", "resumptionToken"},
    ]
    assert numbers(client, wanted(most=1)) == ["2601.00001"]
    assert len(server.asked) == 2  # the parts are in the cache: an interrupted run goes on


def test_parts_come_at_arxivs_rate(server: SourceServer, client: HttpClient) -> None:
    server.add("/arxivoai/oai", Answer(oai_list(oai_record("2601.00001", "One", "2026-01-02"), token="a")))
    server.add("/arxivoai/oai", Answer(oai_list(token="b")), parameters={"resumptionToken": "a"})
    server.add("/arxivoai/oai", Answer(oai_list(token="")), parameters={"resumptionToken": "b"})
    before = client._clock.now()
    client.get("arxiv", "/query", {"id_list": "2601.00001"})
    assert numbers(client, wanted()) == ["2601.00001"]
    assert client._clock.now() - before >= 9


def test_a_list_that_has_expired_is_read_again_from_its_start(server: SourceServer, client: HttpClient) -> None:
    one, two = oai_record("2601.00001", "One", "2026-01-02"), oai_record("2601.00002", "Two", "2026-01-03")
    first = (Answer(oai_list(one, token=token)) for token in ("old", "new"))
    server.add("/arxivoai/oai", *first, parameters=START)
    server.add("/arxivoai/oai", Answer(oai_error("badResumptionToken")), parameters={"resumptionToken": "old"})
    server.add("/arxivoai/oai", Answer(oai_list(two, token="")), parameters={"resumptionToken": "new"})
    assert numbers(client, wanted()) == ["2601.00001", "2601.00002"]
    server.add("/arxivoai/oai", Answer(oai_error("badResumptionToken")))
    with pytest.raises(SourceError, match="has expired"):
        numbers(client, wanted(categories=("cs.LG",)))


def test_a_server_that_repeats_a_token_is_left(server: SourceServer, client: HttpClient) -> None:
    server.add("/arxivoai/oai", Answer(oai_list(oai_record("2601.00001", "One", "2026-01-02"), token="again")))
    assert numbers(client, wanted()) == ["2601.00001"]
    assert len(server.asked) == 2


def test_nothing_and_faults_are_told_apart(server: SourceServer, client: HttpClient) -> None:
    server.add("/arxivoai/oai", Answer(oai_error("noRecordsMatch")))
    assert numbers(client, wanted()) == []
    server.add("/arxivoai/oai", Answer(oai_error("badArgument", "No such set.")), parameters={"set": "cs:cs:XX"})
    with pytest.raises(SourceError, match=r"arXiv says: No such set\."):
        numbers(client, wanted(categories=("cs.XX",)))
    cut = oai_list(oai_record("2601.00001", "One", "2026-01-02"))[:-40]
    for body in (b"<html>busy</html>", cut, b'<!DOCTYPE x [<!ENTITY y "z">]><x/>'):
        server.add("/arxivoai/oai", Answer(body), parameters={"set": "cs:cs:AI"})
        with pytest.raises(SourceError, match="cannot be read"):
            numbers(client, wanted(categories=("cs.AI",)))
