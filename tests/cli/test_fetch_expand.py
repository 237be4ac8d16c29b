"""`folio fetch --expand`, and what is kept of works, over a server on the loopback in place of the services."""

from __future__ import annotations

from typing import Any

import pytest

from folio.cli import papers
from folio.papers.identifiers import without_version
from folio.papers.metadata import Field, Metadata, PersonName
from folio.papers.work import Work
from folio.store import works
from tests.helpers.cli_runner import CliRunner
from tests.helpers.desk_library import describe, opened, papers_of
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.source_records import (
    arxiv_entry,
    arxiv_feed,
    crossref,
    crossref_list,
    crossref_work,
    openalex_list,
    openalex_work,
    s2_work,
)
from tests.helpers.source_server import Answer, SourceServer, json_answer

OTTER_TITLE, ICE_TITLE = "On the Sea Otters of Alaska", "The Length of the Aletsch Glacier"
OTTER_DOI, ICE_DOI = "10.1234/otters", "10.1234/ice"


@pytest.fixture
def online(online: CliRunner) -> CliRunner:
    """A folder with two papers in the index, which have DOIs; the server is in place of the services."""
    write_pdf(online.papers / "otters.pdf", OTTERS, OTTER_TITLE)
    write_pdf(online.papers / "glaciers.pdf", GLACIERS, ICE_TITLE)
    assert online.ingest().code == 0
    describe(online, "otters.pdf", title=OTTER_TITLE, doi=OTTER_DOI)
    describe(online, "glaciers.pdf", title=ICE_TITLE, doi=ICE_DOI)
    return online


def openalex_id(number: int) -> str:
    return f"https://openalex.org/W{number}"


@pytest.fixture
def graph(online: CliRunner, server: SourceServer) -> SourceServer:
    """The otters (W1) cite W3, W4 and the glaciers (W2); the glaciers cite W4; W4 cites W5; W6 cites the otters."""
    of = {
        1: openalex_work(1, OTTER_TITLE, "Cy Otter", doi=OTTER_DOI, referenced_works=list(map(openalex_id, (2, 3, 4)))),
        2: openalex_work(2, ICE_TITLE, "Ada Ice", doi=ICE_DOI, referenced_works=[openalex_id(4)]),
        3: openalex_work(3, "Three Kinds of Fish", "Al Fin", cited_by_count=900, publication_year=1990),
        4: openalex_work(4, "Four Kinds of Water", "Bo Wet", cited_by_count=2, referenced_works=[openalex_id(5)]),
        5: openalex_work(5, "Five Deep Seas", "Di Deep", cited_by_count=7),
        6: openalex_work(6, "Six Otter Songs", "Si Six", cited_by_count=1),
    }
    for doi, number in ((OTTER_DOI, 1), (ICE_DOI, 2)):
        server.add(f"/openalex/works/doi:{doi}", json_answer(of[number]))
        server.add(f"/openalex/works/W{number}", json_answer(of[number]))
    for wanted in ((4, 2, 3), (4,), (5,), (2, 3, 4)):
        names = "|".join(f"W{number}" for number in wanted)
        found = json_answer(openalex_list(*(of[number] for number in wanted)))
        server.add("/openalex/works", found, parameters={"filter": f"openalex:{names}"})
    server.add("/openalex/works", json_answer(openalex_list(of[6])), parameters={"filter": "cites:W1"})
    server.add("/openalex/works", json_answer(openalex_list()), parameters={"filter": "cites:W2"})
    return server


def table(out: str) -> list[list[str]]:
    """The rows of the table: the first word of the title, the links, the file."""
    rows = [line.split() for line in out.splitlines()[1:]]
    return [[row[0], *[word for word in row[-2:] if word.isdecimal() or word.endswith(".pdf")]] for row in rows if row]


def test_cited_works_are_ranked_by_links_then_citations(online: CliRunner, graph: SourceServer) -> None:
    ran = online.fetch("--expand", "cites", "--dry-run")
    assert ran.code == 0
    assert table(ran.out) == [["Four", "2"], ["Three", "1"], ["The", "1", "glaciers.pdf"]]
    assert ran.out.split()[:7] == ["title", "authors", "year", "cited", "open", "links", "here"]
    asked = len(graph.asked)
    assert online.fetch("--expand", "cites", "--dry-run").out == ran.out
    assert len(graph.asked) == asked  # the cache
    with opened(online) as library:
        assert library.database.query("SELECT count(*) FROM works") == [(0,)]


def test_citations_are_kept(online: CliRunner, graph: SourceServer) -> None:
    ran = online.fetch("--expand", "cites")
    assert ran.code == 2
    assert "Folio cannot ask here whether to download these papers." in ran.err
    with opened(online) as library:
        database = library.database
        ids = {file: paper.id for file, paper in papers_of(online).items()}
        otters, ice = (works.of_paper(database, ids[file])[0] for file in ("otters.pdf", "glaciers.pdf"))
        assert (otters.work.doi, otters.work.openalex) == (OTTER_DOI, "W1")
        assert works.references_of(database, otters.id) == ["openalex W2", "openalex W3", "openalex W4"]
        assert works.citing(database, ice.id) == [otters.id]
        assert works.library_edges(database) == [(ids["otters.pdf"], ids["glaciers.pdf"])]
        assert [kept.work.title for kept in works.with_mark(database, "openalex W4")] == ["Four Kinds of Water"]
        (four,) = works.with_mark(database, "openalex W4")
        assert set(works.citing(database, four.id)) == {otters.id, ice.id}
        assert works.papers_of(database, ice.id) == [ids["glaciers.pdf"]]
    assert online.ingest("--verify").code == 0


def test_the_filters_the_cap_and_the_depth_hold(online: CliRunner, graph: SourceServer) -> None:
    def found(*options: str) -> list[str]:
        return [row[0] for row in table(online.fetch("--expand", "cites", "--dry-run", *options).out)]

    assert found("--since", "2000") == ["Four", "The"]
    assert found("--min-cited", "800") == ["Three"]
    assert found("--cap", "1") == ["Four"]
    assert found("--max", "2") == ["Four", "Three"]
    assert found("glaciers.pdf") == ["Four"]
    assert found("--depth", "2") == ["Four", "Five", "Three", "The"]
    assert found("glaciers.pdf", "--depth", "3", "--cap", "2") == ["Four", "Five"]


def test_what_cites_the_papers(online: CliRunner, graph: SourceServer) -> None:
    ran = online.fetch("--expand", "cited-by", "--dry-run")
    assert table(ran.out) == [["Six", "1"]]
    assert online.fetch("--expand", "cited-by", "--yes", "otters").code == 1  # no PDF is known
    with opened(online) as library:
        (otters,) = works.with_mark(library.database, "openalex W1")
        (six,) = works.with_mark(library.database, "openalex W6")
        assert works.citing(library.database, otters.id) == [six.id]


def test_found_works_are_fetched_and_then_here(online: CliRunner, graph: SourceServer) -> None:
    link = {"is_oa": True, "pdf_url": f"{graph.url}/files/water"}
    water = openalex_work(4, "Four Kinds of Water", "Bo Wet", best_oa_location=link)
    graph.add("/openalex/works", json_answer(openalex_list(water)), parameters={"filter": "openalex:W4"})
    pages = ["Water is wet. It boils at 100 degrees Celsius in a pot that stands at the sea."]
    graph.add("/files/water", Answer(write_pdf(online.folder / "made" / "water.pdf", pages).read_bytes()))
    assert online.fetch("--expand", "cites", "glaciers", "--yes").code == 0
    asked = len(graph.asked)
    again = online.fetch("--expand", "cites", "glaciers", "--yes")
    assert (again.code, len(graph.asked)) == (0, asked)
    assert "All of them are in the index." in again.out
    with opened(online) as library:
        ids = {file: paper.id for file, paper in papers_of(online).items()}
        edges = {(ids["glaciers.pdf"], ids["W4 Four Kinds of Water.pdf"])}
        assert edges <= set(works.library_edges(library.database))


def test_other_services_are_asked_where_openalex_fails(online: CliRunner, server: SourceServer) -> None:
    server.add(f"/openalex/works/doi:{OTTER_DOI}", Answer(status=403))
    otters = s2_work(1, OTTER_TITLE, "Cy Otter", DOI=OTTER_DOI)
    server.add(f"/semanticscholar/paper/DOI:{OTTER_DOI}", json_answer(otters))
    three = s2_work(3, "Three Fish", "Al Fin", DOI="10.1234/3")
    cited = {"data": [{"citedPaper": three}, {"citedPaper": s2_work(9, "")}]}
    server.add(f"/semanticscholar/paper/DOI:{OTTER_DOI}/references", json_answer(cited))
    references = [{"DOI": "10.1234/3"}, {"DOI": "10.1234/4"}, {}]
    ice = crossref_work(ICE_DOI, ICE_TITLE, ("Ada", "Ice"), reference=references)
    server.add(f"/crossref/works/{ICE_DOI}", json_answer(crossref(ice)))
    four = crossref_work("10.1234/4", "Four Waters", ("Bo", "Wet"))
    server.add("/crossref/works/10.1234/4", json_answer(crossref(four)))
    ran = online.fetch("--expand", "cites", "--dry-run")
    assert [row[0] for row in table(ran.out)] == ["Three", "Four"]
    assert "OpenAlex answers 403 (it refuses)." in ran.err


def test_papers_without_identifier_are_found_by_title(online: CliRunner, graph: SourceServer) -> None:
    for file, paper in papers_of(online).items():
        describe(online, file, title=paper.title)
    graph.add("/crossref/works", json_answer(crossref_list(crossref_work(ICE_DOI, ICE_TITLE, ("Ada", "Ice")))))
    ran = online.fetch("--expand", "cites", "glaciers", "--dry-run")
    assert [row[0] for row in table(ran.out)] == ["Four"]
    other = online.fetch("--expand", "cites", "otters", "--dry-run")
    assert (other.code, "otters.pdf: no service is known to have it." in other.err) == (1, True)
    unknown = online.fetch("--expand", "cites", "nothing like it")
    assert (unknown.code, len(unknown.err.splitlines())) == (2, 2)


def test_questions_go_to_what_a_paper_cites(online: CliRunner, graph: SourceServer) -> None:
    unknown = online.query("--sources", "--cited-by", "otters", "How long is the glacier?")
    assert unknown.code == 2
    assert unknown.err.splitlines() == [
        "What “otters” cites is not known yet.",
        "Run `python fetch.py --expand cites otters.pdf`, which asks services on the internet.",
    ]
    assert online.fetch("--expand", "cites", "--yes").code == 1  # none of them is open
    hits = online.query("--sources", "--json", "--cited-by", "otters", "What do otters eat?").object["hits"]
    assert {hit["file"] for hit in hits} == {"glaciers.pdf"}
    ranked = online.query("--papers", "--json", "--cited-by", "otters.pdf", "otters").object["papers"]
    assert [paper["file"] for paper in ranked] == ["glaciers.pdf"]
    listed = online._here(papers, ("list", "--cited-by", "otters", "--json"))
    assert [paper["file"] for paper in listed.objects] == ["glaciers.pdf"]
    nothing = online.query("--sources", "--cited-by", "glaciers", "What do otters eat?")
    assert (nothing.code, "No paper fits what is cited by that." in nothing.err) == (2, True)
    misnamed = online.query("--sources", "--cited-by", "oters.pdf", "x")
    assert "No paper in the index is called “oters.pdf”. Similar names: otters.pdf" in misnamed.err


# What `fetch` keeps


def kept(desk: CliRunner, file: str) -> list[Work]:
    """What sources say of a paper's work."""
    with opened(desk) as library:
        known = works.of_paper(library.database, papers_of(desk)[file].id)
        return [view for one in known for view in one.said.values()]


def metadata(desk: CliRunner, file: str) -> Metadata:
    return papers_of(desk)[file].metadata


def test_an_identifier_that_is_here_is_described_again(online: CliRunner, graph: SourceServer) -> None:
    more: dict[str, Any] = {"is_retracted": True, "publication_year": 2019}
    graph.add(
        f"/openalex/works/doi:{OTTER_DOI}",
        json_answer(openalex_work(1, OTTER_TITLE, "Cy Otter", doi=OTTER_DOI, **more)),
    )
    assert metadata(online, "otters.pdf").year.value is None
    ran = online.fetch(OTTER_DOI)
    assert ran.code == 0
    assert f'"{OTTER_TITLE}": already here as otters.pdf.' in ran.err
    assert metadata(online, "otters.pdf").year == Field(2019, "openalex", True)
    assert metadata(online, "otters.pdf").authors == Field((PersonName("Otter", "Cy"),), "openalex", True)
    assert [view.openalex for view in kept(online, "otters.pdf")] == ["W1"]
    with opened(online) as library:
        found = works.notices_of_papers(library.database, [paper.id for paper in library.papers()])
        assert [[each.kind for each in of_one] for of_one in found.values()] == [["retraction"]]
    assert online.ingest("--verify").code == 0
    assert "otters.pdf" in online.query("--sources", "otter").out


def test_another_version_of_a_paper_is_said_to_be_here(online: CliRunner, graph: SourceServer) -> None:
    assert online.fetch(OTTER_DOI).code == 0
    entry = arxiv_entry("2001.00001v3", OTTER_TITLE, "Cy Otter", year=2019)
    graph.add("/arxiv/query", Answer(arxiv_feed(entry)), parameters={"id_list": "2001.00001"})
    ran = online.fetch("--yes", "2001.00001")
    assert f'"{OTTER_TITLE}": already here as otters.pdf, another version of it.' in ran.err
    assert "All of them are in the index." in ran.out
    assert metadata(online, "otters.pdf").arxiv.value == ""


def test_a_publication_is_preferred_to_its_preprint(online: CliRunner, server: SourceServer) -> None:
    describe(online, "otters.pdf", title=OTTER_TITLE, arxiv="2001.00001")
    describe(online, "glaciers.pdf")
    entry = arxiv_entry("2001.00001v3", OTTER_TITLE, "Cy Otter", year=2019, doi=OTTER_DOI)
    server.add("/arxiv/query", Answer(arxiv_feed(entry)), parameters={"id_list": "2001.00001"})
    journal = crossref_work(OTTER_DOI, f"{OTTER_TITLE}.", ("Cy", "Otter"), year=2021)
    server.add(f"/crossref/works/{OTTER_DOI}", json_answer(crossref(journal)))
    ran = online.fetch("--metadata")
    assert "  year: (none) -> 2021" in ran.out
    found = metadata(online, "otters.pdf")
    assert (found.year, found.venue.value) == (Field(2021, "crossref", True), "Journal of Otters")
    assert (found.doi.value, without_version(found.arxiv.value)) == (OTTER_DOI, "2001.00001")
    assert {view.source for view in kept(online, "otters.pdf")} == {"arxiv", "crossref"}
    assert "changed: 0" in online.fetch("--metadata").out


def test_the_publishers_bibtex_is_exported_until_an_edit(online: CliRunner, server: SourceServer) -> None:
    otters = crossref_work(OTTER_DOI, OTTER_TITLE, ("Cy", "Otter"), year=2021)
    server.add(f"/crossref/works/{OTTER_DOI}", json_answer(crossref(otters)))
    written = f" @article{{Otter_2021, title={{{OTTER_TITLE}}}, DOI={{{OTTER_DOI}}}, ISSN={{1234-5678}}, month=may }}\n"
    server.add(f"/crossref/works/{OTTER_DOI}/transform/application/x-bibtex", Answer(written.encode()))
    assert online.fetch("--metadata").code == 0
    assert "ISSN={1234-5678}, month=may,\n" in online._here(papers, ("export",)).out
    asked = len(server.asked)
    assert "changed: 0" in online.fetch("--metadata").out
    assert len(server.asked) == asked
    assert online._here(papers, ("edit", "otters.pdf", "year=2020")).code == 0
    exported = online._here(papers, ("export",)).out
    assert ("ISSN" in exported, "year = {2020}" in exported) == (False, True)


def test_a_work_without_identifier_only_describes_its_paper(online: CliRunner, server: SourceServer) -> None:
    nameless = crossref_work("no DOI", OTTER_TITLE, year=2020)
    server.add("/crossref/works", json_answer(crossref_list(nameless)))
    assert online.fetch("--metadata").code == 0
    assert metadata(online, "otters.pdf").year == Field(2020, "crossref", True)
    assert kept(online, "otters.pdf") == []


def test_ctrl_c_stores_nothing(online: CliRunner, graph: SourceServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("folio.services.openalex.by_ids", interrupted)
        ran = online.fetch("--expand", "cites", "--yes")
    assert ran.code == 130
    assert "Stopped. Nothing was stored; the answers so far are kept for a day." in ran.err
    with opened(online) as library:
        assert library.database.query("SELECT count(*) FROM citations") == [(0,)]


def test_hostile_answers_control_nothing(online: CliRunner, graph: SourceServer) -> None:
    odd = openalex_work(4, "\x1b[2J [Fake 2014, p. 6] " + "x" * 5000, "A\x07 B", referenced_works=[7, None, "x" * 9999])
    graph.add("/openalex/works", json_answer(openalex_list(odd)), parameters={"filter": "openalex:W4"})
    ran = online.fetch("--expand", "cites", "glaciers.pdf", "--depth", "2", "--dry-run")
    assert ran.code in (0, 1)
    assert not {"\x1b", "\x07"} & set(ran.out)
    assert "[Fake 2014, p. 6]" not in ran.out
    assert "Traceback" not in ran.err


def test_expanding_needs_papers(desk: CliRunner, server: SourceServer) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "SOURCES_STAND_IN": server.url}
    ran = desk.fetch("--expand", "cites")
    assert (ran.code, len(ran.err.splitlines())) == (1, 2)
