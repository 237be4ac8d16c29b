"""What services say becomes works; works that are one are found to be; a paper is matched with its own."""

from __future__ import annotations

import json
import tracemalloc
from datetime import date
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.errors import SourceError
from folio.papers.identifiers import Identifier, parse_identifier
from folio.papers.metadata import Field, Metadata, PersonName
from folio.papers.people import split_listed_name
from folio.papers.work import Work, WorkAuthor, grouped, merged, to_metadata
from folio.services import arxiv, europepmc, openalex, semantic_scholar
from folio.services import crossref as crossref_client
from folio.services.answers import SearchQuery, clean
from folio.services.http import HttpClient
from folio.services.keep import best, contradicts, pdf_name, score
from tests.helpers.source_records import (
    arxiv_entry,
    arxiv_feed,
    crossref,
    crossref_list,
    crossref_work,
    europepmc_list,
    europepmc_work,
    openalex_list,
    openalex_work,
    s2_work,
)
from tests.helpers.source_server import SourceServer, json_answer

pytestmark = pytest.mark.fast


def work(title: str = "Otters", family: str = "Byte", year: int | None = 2021, **more: Any) -> Work:
    return Work("openalex", title=title, authors=(WorkAuthor(family, ""),), year=year, **more)


def test_works_are_grouped_by_identifier_or_title_author_year() -> None:
    preprint = work("Otters: a survey", arxiv="2101.00001v2")
    same_version = work("Renamed", "Other", arxiv="2101.00001v5")
    journal = work("Otters -- A Survey", doi="10.1/x")
    by_doi = work("x", "y", 1990, doi="10.1/X", openalex="W1")
    by_openalex = work("z", "w", 1991, openalex="W1", semanticscholar="a" * 40)
    by_s2 = work("q", "r", 1992, semanticscholar="a" * 40)
    other_year = work("Otters: a survey", year=2019)
    other_author = work("Otters: a survey", "Bit")
    every = [preprint, other_year, same_version, journal, other_author, by_s2, by_doi, by_openalex]
    groups = grouped(every)
    assert [[each.title for each in group] for group in groups] == [
        ["Otters: a survey", "Renamed", "Otters -- A Survey", "x", "q", "z"],
        ["Otters: a survey"],
        ["Otters: a survey"],
    ]
    assert grouped([work("", "", None), work("", "", None)]) == [[work("", "", None)], [work("", "", None)]]


A_WORK = st.builds(
    work,
    st.sampled_from("abc"),
    year=st.sampled_from([1, 2]),
    doi=st.sampled_from(["", "1", "2"]),
    openalex=st.sampled_from(["", "W1", "W2"]),
)


@given(st.lists(A_WORK, max_size=8))
def test_groups_hold_every_work_once_and_share_no_mark(works: list[Work]) -> None:
    groups = grouped(works)
    assert sorted(map(id, (each for group in groups for each in group))) == sorted(map(id, works))
    marks = [{mark for each in group for mark in each.marks()} for group in groups]
    assert sum(map(len, marks)) == len(set().union(*marks))


def test_each_field_comes_from_the_first_that_has_it() -> None:
    first = work(year=None, doi="10.1/x", pdfs=("https://a.org/1",), cited=3)
    second = Work(
        "crossref", title="Otters!", year=2020, venue="J", pdfs=("https://b.org/2",), cited=9, is_retracted=True
    )
    joined = merged([first, second])
    assert (joined.title, joined.year, joined.venue, joined.cited) == ("Otters", 2020, "J", 9)
    assert (joined.pdfs, joined.is_retracted) == (("https://a.org/1", "https://b.org/2"), True)
    assert to_metadata([first, second]) == Metadata(
        title=Field("Otters", "openalex", True),
        authors=Field((PersonName("Byte"),), "openalex", True),
        year=Field(2020, "crossref", True),
        venue=Field("J", "crossref", True),
        doi=Field("10.1/x", "openalex", True),
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Jakub Lála", PersonName("Lála", "Jakub")),
        ("Lála, Jakub", PersonName("Lála", "Jakub")),
        ("Laurens van der Maaten", PersonName("van der Maaten", "Laurens")),
        ("NASA", PersonName("NASA")),
        ("", PersonName("")),
    ],
)
def test_names_have_two_parts(name: str, expected: PersonName) -> None:
    assert split_listed_name(name) == expected


def test_texts_are_plain() -> None:
    marked = "A <i>bold</i>\x00 &lt;b&gt;claim&lt;/b&gt;\n x < y &amp; z > 1 \ud800"
    assert clean(marked) == "A bold claim x < y & z > 1 \ufffd"
    assert len(clean("x" * 10_000)) == 2000


@given(st.text(max_size=300))
def test_any_text_can_be_stored(text: str) -> None:
    clean(text).encode()
    assert clean(clean(text)).isprintable() or any(not char.isprintable() for char in text)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (work("A Survey: of/Otters?", arxiv="2101.00001v2"), "2101.00001 A Survey of Otters.pdf"),
        (work("Otters", doi="10.1234/a/../b"), "10.1234_a_.._b Otters.pdf"),
        (work("..", openalex="W1"), "W1.pdf"),
        (work("word " * 60, openalex="W1"), "W1 " + "word " * 15 + "word.pdf"),
        (work("\x00/\\CON\u202e", openalex="W1"), "W1 CON.pdf"),
        (work("海" * 120, openalex="W1"), f"W1 {'海' * 59}.pdf"),  # names of files have at most 255 bytes
    ],
)
def test_files_are_named_by_identifier_and_title(named: Work, expected: str) -> None:
    assert pdf_name(named) == expected


def about(title: str, family: str = "", year: int | None = None) -> Metadata:
    authors: Field[tuple[PersonName, ...]] = Field((PersonName(family),), "page", True) if family else Field(())
    return Metadata(title=Field(title, "page", True), authors=authors, year=Field(year, "page" if year else "", True))


def test_a_paper_is_matched_by_title_authors_and_year() -> None:
    right, wrong = work("On the Sleep of Otters"), work("On the Sleep of Others", "Bit", 1999)
    assert best(about("On the sleep of otters", "Byte", 2022), [wrong, right]) == (right, 1.0)
    assert best(about("On the sleep of otters", "Nobody", 2022), [right]) is None  # 0.7 + 0.1
    assert best(about("On the sleep of otters"), [right]) == (right, 1.0)
    assert best(about("Otters"), [work("Otters")]) is None  # one word tells nothing
    assert best(about("Otters", "Byte"), [work("Otters")]) == (work("Otters"), 1.0)
    assert best(about("A study of glaciers and their flow"), [right]) is None
    assert score(about("On the sleep of otters", "Byte", 2030), right) == pytest.approx(0.9)
    assert contradicts(about("A study of glaciers and their flow"), right)
    assert not contradicts(about("On the sleep of otters"), right)


# The clients, over the loopback


def titles(works: list[Work]) -> list[str]:
    return [each.title for each in works]


def test_openalex_goes_from_page_to_page_and_along_citations(server: SourceServer, client: HttpClient) -> None:
    pages = [openalex_work(n, f"Work {n}", "Ada Byte") for n in range(4)]
    server.add("/openalex/works", json_answer(openalex_list(*pages[:2], cursor="next")), parameters={"cursor": "*"})
    server.add("/openalex/works", json_answer(openalex_list(*pages[2:])), parameters={"cursor": "next"})
    query = SearchQuery("otters", most=3)
    assert titles(openalex.search(client, query)) == ["Work 0", "Work 1", "Work 2"]
    openalex.citing(client, "W7", SearchQuery(""))
    assert [asked.parameters.get("filter") for asked in server.asked] == [None, None, "cites:W7", "cites:W7"]
    assert server.asked[-1].parameters["sort"] == "publication_date:desc"


def test_openalex_has_arxivs_papers_under_their_doi(server: SourceServer, client: HttpClient) -> None:
    found = openalex_work(1, "Otters", "Ada Byte", doi="10.48550/arxiv.2101.00001")
    server.add("/openalex/works/doi:10.48550/arxiv.2101.00001", json_answer(found))
    known = openalex.by_identifier(client, parse_identifier("2101.00001v3"))
    assert known is not None
    assert (known.arxiv, known.doi, known.openalex) == ("2101.00001", "", "W1")
    assert openalex.by_identifier(client, parse_identifier("W99")) is None
    assert openalex.by_identifier(client, Identifier("semanticscholar", "a" * 40)) is None


def test_semantic_scholar_is_searched_and_walked(server: SourceServer, client: HttpClient) -> None:
    first, second = s2_work(1, "One", "Ada Byte", DOI="10.1/x"), s2_work(2, "Two", "Bo Bit", ArXiv="2101.00001")
    server.add("/semanticscholar/paper/search", json_answer({"total": 2, "data": [first, second]}))
    server.add("/semanticscholar/paper/search/bulk", json_answer({"total": 2, "token": None, "data": [second]}))
    server.add("/semanticscholar/paper/search/match", json_answer({"error": "Title match not found"}, status=404))
    edges = {"data": [{"citingPaper": first}, {"citingPaper": None}]}
    server.add("/semanticscholar/paper/DOI:10.1/x/citations", json_answer(edges))
    server.add("/semanticscholar/paper/ARXIV:2101.00001/references", json_answer({"data": [{"citedPaper": second}]}))
    wanted = SearchQuery("a", date(2020, 1, 1), is_open=True, min_cited=4, most=5)
    assert titles(semantic_scholar.search(client, wanted)) == ["One", "Two"]
    asked = server.asked[0].parameters
    assert (asked["publicationDateOrYear"], asked["minCitationCount"]) == ("2020-01-01:", "4")
    assert asked["openAccessPdf"] == ""
    assert titles(semantic_scholar.search(client, SearchQuery("a", sort="date"))) == ["Two"]
    assert semantic_scholar.by_title(client, "nothing") == []
    assert titles(semantic_scholar.citing(client, Identifier("doi", "10.1/x"), 10)) == ["One"]
    (cited,) = semantic_scholar.cited_by(client, Identifier("arxiv", "2101.00001v2"), 10)
    assert (cited.title, cited.arxiv, cited.kind) == ("Two", "2101.00001", "paper-conference")
    empty = json_answer({"total": 0, "offset": 0})
    server.add("/semanticscholar/paper/search", empty, parameters={"query": "none"})
    assert semantic_scholar.search(client, SearchQuery("none")) == []


def test_unpaywall_knows_where_pdfs_are(server: SourceServer, client: HttpClient) -> None:
    best_one, other = {"url_for_pdf": "https://plos.org/1.pdf"}, {"url_for_pdf": None}
    said = {"doi": "10.1/x", "is_oa": True, "best_oa_location": best_one, "oa_locations": [other, best_one]}
    server.add("/unpaywall/10.1/x", json_answer(said))
    assert arxiv.find_pdfs(client, "10.1/x") == ("https://plos.org/1.pdf",)
    assert arxiv.find_pdfs(client, "10.1/y") == ()


def test_arxiv_says_what_is_wrong(server: SourceServer, client: HttpClient) -> None:
    feed = arxiv_feed(arxiv_entry("2101.00001v1", "Otters", "Ada Byte", doi="10.1234/OTTERS"))
    (found,) = arxiv.read_feed(feed.decode()).works
    assert (found.doi, found.arxiv, found.year) == ("10.1234/otters", "2101.00001v1", 2021)
    wrong = feed.replace(b"http://arxiv.org/abs/2101.00001v1", b"https://arxiv.org/api/errors#x")
    with pytest.raises(SourceError, match="arXiv says: On Otters"):
        arxiv.read_feed(wrong.decode())


BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><feed>&b;</feed>'
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><feed>&a;</feed>'


@pytest.mark.parametrize("text", ["", "{}", "<feed", BOMB, OUTSIDE, "\ud800", "<a/>" * 2, "x" * 100])
def test_what_is_no_feed_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match=r"arXiv sent something that cannot be read\."):
        arxiv.read_feed(text)


NOT_WORKS = [
    "", "{", "[]", "7", "null", '{"results": 7}', '{"results": [7]}', "[" * 100_000, '{"data": {"x": 1}}',
    '{"status": "ok", "message": []}', '{"status": "failed"}', '{"status": "ok", "message": {"items": [{}]}}',
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_WORKS, ids=lambda text: text[:30])
def test_answers_of_other_types_are_refused(text: str) -> None:
    for read in (
        openalex.read_works,
        crossref_client.read_works,
        lambda said: semantic_scholar.read_works(200, said),
        lambda said: crossref_client.read_work(200, said),
        lambda said: semantic_scholar.read_work(200, said),
        lambda said: arxiv.read_pdfs(200, said),
    ):
        with pytest.raises(SourceError, match="sent something that cannot be read"):
            read(text)


def test_dois_of_the_last_century_are_whole() -> None:
    """They have angle brackets: cut there, all articles of an issue would be one work."""
    doi = "10.1002/(sici)1097-4571(199009)41:6<391::aid-asi1>3.0.co;2-9"
    found = [
        read_openalex(openalex_work(7, "A", doi=doi)),
        read_s2(s2_work(7, "A", DOI=doi.upper())),
        read_crossref(crossref_work(doi, "A", ("B", "C"))),
    ]
    assert [each.doi for each in found if each] == [doi] * 3


def test_one_bad_item_of_a_list_leaves_the_others() -> None:
    good = crossref_work("10.1/x", "Otters", ("Ada", "Byte"))
    bad = [{"DOI": 7}, {"DOI": None, "title": [7, None]}, None, [good]]
    assert titles(crossref_client.read_works(json.dumps(crossref_list(*bad, good)))) == ["Otters"]  # type: ignore[arg-type]
    assert openalex.read_works(json.dumps(openalex_list(openalex_work(1, "A"), {"title": [1]})))[0].title == "A"


WRONG: tuple[Any, ...] = (
    *(None, 7, "text", True, 1.5, [], {}, [None], [7], ["text"], [[7]], [{}]),
    *({"x": None}, {"x": [None]}, [{"a": None}]),
)


def of_openalex(**fields: Any) -> Work:
    """What is read of OpenAlex's work 7, "A", with these fields."""
    found = openalex.read_work(200, json.dumps(openalex_work(7, "A", **fields)))
    assert found is not None
    return found


def read_openalex(record: Any) -> Work | None:
    return openalex.read_work(200, json.dumps(record))


def read_s2(record: Any) -> Work | None:
    return semantic_scholar.read_work(200, json.dumps(record))


def read_crossref(record: Any) -> Work | None:
    return crossref_client.read_work(200, json.dumps(crossref(record)))


def read_europepmc(record: Any) -> Work | None:
    works, _ = europepmc.read_works(200, json.dumps(europepmc_list(record)))
    return works[0]


WHOLE = {
    "openalex": openalex_work(7, "Otters", doi="10.1234/x", abstract_inverted_index={"Sea": [0]}),
    "semanticscholar": s2_work(7, "Otters", DOI="10.1234/x"),
    "crossref": crossref_work("10.1234/x", "Otters", ("Ada", "Byte")),
    "europepmc": europepmc_work(7, "Otters", ("Ada", "Byte"), doi="10.1234/x"),
}
READ = {"openalex": read_openalex, "semanticscholar": read_s2, "crossref": read_crossref, "europepmc": read_europepmc}
NAMING = ("title", "id", "doi", "paperId", "externalIds", "DOI")


@pytest.mark.parametrize("service", WHOLE)
def test_a_field_of_any_wrong_type_costs_itself_alone(service: str) -> None:
    """Whatever one field holds, the others say what they said: title and identifiers, authors and year."""
    record, read = WHOLE[service], READ[service]
    whole = read(record)
    assert whole is not None
    for name, wrong in product(record, WRONG):
        found = read({**record, name: wrong})
        assert found is not None
        if name not in NAMING:
            assert (found.title, found.doi) == ("Otters", "10.1234/x")
        if name not in ("authors", "authorships", "author", "authorList"):
            assert found.authors == whole.authors
        if name not in ("year", "publication_year", "issued", "published", "pubYear"):
            assert found.year == whole.year


def test_one_bad_entry_costs_no_other() -> None:
    places = {"Otters": [0], "that": [None], "sleep": [1, None, "2"], "afloat": None, "together": [2, True]}
    assert of_openalex(abstract_inverted_index=places).abstract == "Otters sleep together"
    named = [{"author": {"display_name": "Ada Byte"}}, None, {"author": 7}, {"author": {"display_name": "Bo Crane"}}]
    authors = of_openalex(authorships=named).authors
    assert [author.name.family for author in authors] == ["Byte", "Crane"]


ODD = ("\ud800", "\u202egnp.exe", "\u2028", "x" * 2000)


@pytest.mark.parametrize("odd", ODD, ids=["half", "bidi", "line", "long"])
def test_identifiers_and_addresses_have_their_form_or_are_left_out(odd: str) -> None:
    """Nothing comes out of an answer that cannot be stored, shown or read again."""
    doi, link = f"10.1234/{odd}", f"https://arxiv.org/pdf/{odd}"
    of_openalex = openalex_work(
        7, "A", doi=doi, referenced_works=["https://openalex.org/W8", odd, doi], best_oa_location={"pdf_url": link}
    )
    of_s2 = s2_work(7, "A", DOI=doi, ArXiv=odd) | {"openAccessPdf": {"url": link}}
    of_crossref = crossref_work(
        doi, "A", ("B", "C"), reference=[{"DOI": doi}, {"DOI": "10.1234/x"}],
        link=[{"URL": link, "content-type": "application/pdf"}], license=[{"URL": "https://creativecommons.org/by"}],
    )  # fmt: skip
    of_arxiv = arxiv_feed(arxiv_entry("2101.00001v1", "A", doi=doi.replace("\ud800", "\u202e"))).decode()
    found = [
        read_openalex(of_openalex),
        read_openalex({**of_openalex, "id": f"https://openalex.org/{odd}"}),
        read_s2(of_s2),
        read_s2({**of_s2, "paperId": odd}),
        read_crossref(of_crossref),
        *arxiv.read_feed(of_arxiv).works,
    ]
    for each in found:
        assert each is not None
        texts = (each.doi, each.arxiv, each.openalex, each.semanticscholar, *each.pdfs, *each.references)
        assert all(text.isprintable() and len(text) <= 500 for text in texts)
        assert {mark.partition(" ")[2][:2] for mark in each.identifiers()} <= {"10", "21", "W7", "00"}
    assert [each.references[-1:] for each in found if each and each.references] == [("W8",), ("W8",), ("10.1234/x",)]


def test_an_abstract_of_many_places_costs_little() -> None:
    text = json.dumps(openalex_work(1, "A", abstract_inverted_index={"a": [0] * 200_000}))
    tracemalloc.start()
    try:
        assert openalex.read_work(200, text) is not None
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 8 * 2**20


def test_numbers_out_of_range_are_not_known() -> None:
    odd = of_openalex(publication_year=99999, cited_by_count=-5, authorships=None, is_retracted=None)
    assert (odd.year, odd.cited, odd.authors, odd.is_retracted) == (None, None, (), False)
    assert of_openalex(abstract_inverted_index={"a": [10**9, -1, 0], "b": [1]}).abstract == "a b"
    message = crossref(crossref_work("10.1/x", "A", ("B", "C"), issued={"date-parts": [[None]]}, link=None))
    assert crossref_client.read_work(200, json.dumps(message)).year is None  # type: ignore[union-attr]
