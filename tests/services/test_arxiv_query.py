"""What a person writes goes to arXiv as it is written; plain words must all be there."""

from __future__ import annotations

from datetime import date

import pytest

from folio.errors import UsageError
from folio.services import arxiv
from folio.services.answers import SearchQuery
from folio.services.arxiv_query import to_arxiv
from folio.services.http import HttpClient
from tests.helpers.source_records import arxiv_entry, arxiv_feed
from tests.helpers.source_server import Answer, SourceServer

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("dense retrieval", "all:dense AND all:retrieval"),
        ("BERT (language model)", "all:BERT AND all:language AND all:model"),
        ("smile :) a", "all:smile AND all:a"),
        ("retrieval-augmented 3.5", "all:retrieval-augmented AND all:3.5"),
        ("this or that and not those", "all:this AND all:or AND all:that AND all:and AND all:not AND all:those"),
        ('"retrieval augmented generation" OR "RAG"', 'all:"retrieval augmented generation" OR all:"RAG"'),
        ('"  two   words " other', 'all:"two words" AND all:other'),
        ("ti:attention ANDNOT au:smith", "ti:attention ANDNOT au:smith"),
        ("a AND NOT b", "all:a ANDNOT all:b"),
        ("a NOT b", "all:a ANDNOT all:b"),
        ('au:"del Maestro" abs:quantum', 'au:"del Maestro" AND abs:quantum'),
        ("cat:cs.CL AND (bias OR fairness)", "cat:cs.CL AND (all:bias OR all:fairness)"),
        ("(a OR (b c)) d", "(all:a OR (all:b AND all:c)) AND all:d"),
        ("cat:hep-th", "cat:hep-th"),
        ("foo:bar", "all:foo AND all:bar"),
        ("cat:cs.IR AND submittedDate:[20230101 TO 20240101]", "cat:cs.IR AND submittedDate:[20230101 TO 20240101]"),
        ('5" pipes OR tubes', "all:5 AND all:pipes OR all:tubes"),
        ("au:o_neil*", "au:o_neil*"),
    ],
)
def test_a_search_is_sent_as_it_is_written(written: str, sent: str) -> None:
    assert to_arxiv(written) == sent


@pytest.mark.parametrize(
    "written", ["", "()", "!?", "AND", "RAG OR", "OR RAG", "a AND AND b", "(a OR b", "a OR b)", "a OR ( )"]
)
def test_a_search_without_an_end_is_refused_before_it_is_sent(written: str) -> None:
    with pytest.raises(UsageError):
        to_arxiv(written)


def test_categories_and_dates_join_what_is_written(server: SourceServer, client: HttpClient) -> None:
    server.add("/arxiv/query", Answer(arxiv_feed(arxiv_entry("2101.00001v1", "Paper", "A B"))))
    for words, more in (
        ('"a b" OR c', {"categories": ("cs.CL",)}),
        ("a", {"categories": ("cs", "hep-th", "stat.ML"), "since": date(2024, 2, 3), "until": date(2024, 2, 29)}),
        ("a b", {"until": date(1999, 12, 31)}),
        ("a OR b", {}),
    ):
        (found,) = arxiv.search(client, SearchQuery(words, **more))
        assert (found.date, found.categories) == ("2021-05-26", ("cs.IR",))
    assert [asked.parameters["search_query"] for asked in server.asked] == [
        '(all:"a b" OR all:c) AND cat:cs.CL',
        "all:a AND (cat:cs OR cat:hep-th OR cat:stat.ML OR cat:cs.* OR cat:hep-th.*)"
        " AND submittedDate:[202402030000 TO 202402292359]",
        "all:a AND all:b AND submittedDate:[199101010000 TO 199912312359]",
        "all:a OR all:b",
    ]
