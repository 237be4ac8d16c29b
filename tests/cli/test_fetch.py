"""`folio fetch`, over a server on the loopback that speaks the services' formats."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

from folio.bibliography import bibtex
from folio.cli import fetch
from folio.papers.metadata import Field, Metadata, PersonName
from folio.services import arxiv
from folio.store.indexes import LIBRARY
from tests.cli.test_papers import run as run_papers
from tests.helpers.cli_runner import CliRunner
from tests.helpers.desk_library import describe, opened, papers_of
from tests.helpers.factories import GLACIERS, OTTERS, small_papers, write_pdf
from tests.helpers.source_records import (
    arxiv_entry,
    arxiv_feed,
    crossref,
    crossref_list,
    crossref_work,
    oai_list,
    oai_record,
    openalex_list,
    openalex_work,
    s2_work,
)
from tests.helpers.source_server import Answer, SourceServer, json_answer

OTTER_DOI = "10.1234/otters"


def pdf(folder: Path, pages: Iterable[str]) -> bytes:
    return write_pdf(folder / "made" / "made.pdf", pages).read_bytes()


@pytest.fixture
def offers(online: CliRunner, server: SourceServer) -> SourceServer:
    """A work of arXiv's, and one with a DOI that OpenAlex has; both with PDFs."""
    entry = arxiv_entry("2101.00001v2", "Glaciers of the Alps", "Ada Ice", "Bo Snow")
    server.add("/arxiv/query", Answer(arxiv_feed(entry)), parameters={"id_list": "2101.00001"})
    server.add("/pdf/2101.00001v2", Answer(pdf(online.folder, GLACIERS)))
    link = {"is_oa": True, "pdf_url": f"{server.url}/files/otters", "license": "cc-by"}
    work = openalex_work(7, "Otters at Sea", "Cy Otter", doi=OTTER_DOI, best_oa_location=link)
    server.add(f"/openalex/works/doi:{OTTER_DOI}", json_answer(work))
    server.add("/files/otters", Answer(pdf(online.folder, OTTERS)))
    return server


def test_papers_come_by_identifier_once(online: CliRunner, offers: SourceServer) -> None:
    named = ("arXiv:2101.00001", f"https://doi.org/{OTTER_DOI}")
    ran = online.fetch("--yes", *named)
    assert (ran.code, "Traceback" in ran.err) == (0, False)
    found = papers_of(online)
    assert sorted(found) == ["10.1234_otters Otters at Sea.pdf", "2101.00001 Glaciers of the Alps.pdf"]
    glaciers = found["2101.00001 Glaciers of the Alps.pdf"].metadata
    assert glaciers.title == Field("Glaciers of the Alps", "arxiv", True)
    assert glaciers.authors == Field((PersonName("Ice", "Ada"), PersonName("Snow", "Bo")), "arxiv", True)
    assert glaciers.arxiv == Field("2101.00001v2", "arxiv", True)
    otters = found["10.1234_otters Otters at Sea.pdf"].metadata
    assert (otters.doi, otters.year) == (Field(OTTER_DOI, "openalex", True), Field(2021, "openalex", True))
    assert otters.abstract.value == "Otters eat Otters"
    assert "Otters at Sea" in ran.out
    asked = len(offers.asked)
    again = online.fetch("--yes", *named)
    assert (again.code, len(offers.asked)) == (0, asked)
    assert "All of them are in the index." in again.out
    assert online.ingest("--verify").code == 0
    assert online.query("--sources", "glacier").code == 0


def test_a_dry_run_downloads_nothing(online: CliRunner, offers: SourceServer) -> None:
    entry = arxiv_entry("2101.00001v2", "Glaciers of the Alps", "Ada Ice", "Bo Snow")
    offers.add("/arxiv/query", Answer(arxiv_feed(entry, entry)), parameters={"id_list": "2101.00001,2101.00001v2"})
    ran = online.fetch("--dry-run", "2101.00001", "2101.00001v2", OTTER_DOI)
    assert ran.code == 0
    table = [line.split() for line in ran.out.splitlines()]
    assert table[0] == ["title", "authors", "year", "cited", "open", "here"]
    assert table[1] == ["Glaciers", "of", "the", "Alps", "Ice", "&", "Snow", "2021", "yes"]
    assert table[2] == ["Otters", "at", "Sea", "Otter", "2021", "12", "yes"]
    assert list(online.papers.iterdir()) == []
    assert not any("/pdf" in path or "/files" in path for path in offers.paths())


def test_nothing_is_downloaded_without_a_yes(online: CliRunner, offers: SourceServer) -> None:
    ran = online.fetch("2101.00001")
    assert ran.code == 2
    assert "Folio cannot ask here whether to download these papers." in ran.err
    assert list(online.papers.iterdir()) == []


def test_identifiers_come_from_a_file_and_standard_input(online: CliRunner, offers: SourceServer) -> None:
    listed = online.folder / "list.txt"
    listed.write_text("# wanted\n\n2101.00001\n", encoding="utf-8")
    ran = online.fetch("--dry-run", str(listed), "-", typed=f"{OTTER_DOI}\n")
    assert ran.code == 0
    assert "Glaciers of the Alps" in ran.out
    assert "Otters at Sea" in ran.out


def test_each_failure_is_a_line_and_the_rest_comes(online: CliRunner, offers: SourceServer) -> None:
    robot = Answer(b"<!doctype html><title>Are you a robot?</title>")
    offers.add("/files/otters", robot)
    ran = online.fetch("--yes", "2101.00001", OTTER_DOI, "10.1234/none")
    assert ran.code == 1
    assert "10.1234/none: no service has it." in ran.err
    assert '"Otters at Sea": 127.0.0.1 sent a page that asks "are you a robot?" instead of a PDF.' in ran.err
    assert list(papers_of(online)) == ["2101.00001 Glaciers of the Alps.pdf"]
    assert [path.name for path in online.papers.iterdir()] == ["2101.00001 Glaciers of the Alps.pdf"]


def test_unpaywall_is_asked_where_the_open_copy_fails(online: CliRunner, offers: SourceServer) -> None:
    offers.add("/files/otters", Answer(b"gone", 410))
    copies = [{"url_for_pdf": f"{offers.url}/files/{name}"} for name in ("otters", "copy")]
    offers.add(f"/unpaywall/{OTTER_DOI}", json_answer({"doi": OTTER_DOI, "is_oa": True, "oa_locations": copies}))
    offers.add("/files/copy", Answer(pdf(online.folder, OTTERS)))
    online.settings["CONTACT_EMAIL"] = "me@example.org"
    ran = online.fetch("--yes", OTTER_DOI)
    assert (ran.code, ran.err) == (0, '"Otters at Sea": 127.0.0.1 answers 410 (it is gone).\n')
    assert list(papers_of(online)) == ["10.1234_otters Otters at Sea.pdf"]
    assert offers.paths().count("/files/otters") == 1


def test_where_one_service_fails_the_next_is_asked(online: CliRunner, server: SourceServer) -> None:
    server.add("/openalex/works/doi:10.1000/x", Answer(b"{"))
    server.add("/semanticscholar/paper/DOI:10.1000/x", Answer(b'{"paperId": 7}'))
    sea_life = crossref(crossref_work("10.1000/x", "Sea Life", ("Al", "Fin")))
    server.add("/crossref/works/10.1000/x", json_answer(sea_life))
    ran = online.fetch("--dry-run", "10.1000/x")
    assert (ran.code, "Sea Life" in ran.out) == (0, True)
    assert ran.err.splitlines() == [
        "OpenAlex sent something that cannot be read.",
        "Semantic Scholar sent something that cannot be read.",
    ]
    server.add("/openalex/works", Answer(status=403))
    answer = {"total": 1, "offset": 0, "data": [s2_work(3, "Otter Songs", "Eve Otter")]}
    server.add("/semanticscholar/paper/search", json_answer(answer))
    ran = online.fetch("--dry-run", "--search", "otter songs")
    assert "OpenAlex answers 403 (it refuses). Semantic Scholar is asked instead." in ran.err
    assert "Otter Songs" in ran.out


def test_a_search_is_shown_and_fetched(online: CliRunner, offers: SourceServer) -> None:
    link = {"is_oa": True, "pdf_url": f"{offers.url}/files/otters"}
    works = [
        openalex_work(7, "Otters at Sea", "Cy Otter", doi=OTTER_DOI, best_oa_location=link),
        openalex_work(8, "Otters, withdrawn", "Dee Otter", is_retracted=True),
    ]
    asked = {"search": "otters", "filter": "from_publication_date:2020-01-01,is_oa:true,cited_by_count:>4",
             "sort": "cited_by_count:desc"}  # fmt: skip
    offers.add("/openalex/works", json_answer(openalex_list(*works)), parameters=asked)
    options = ("--since", "2020", "--open-access", "--min-cited", "5", "--sort", "citations", "--max", "5")
    ran = online.fetch("--dry-run", "--search", "otters", *options)
    assert "RETRACTED: Otters, withdrawn" in ran.out
    assert online.fetch("--yes", "--search", "otters", *options).code == 1  # the second has no PDF
    assert list(papers_of(online)) == ["10.1234_otters Otters at Sea.pdf"]


def test_arxiv_is_searched_page_by_page(online: CliRunner, server: SourceServer) -> None:
    pages = [
        [arxiv_entry(f"2101.{n:05}v1", f"Paper {n}", "A B") for n in range(start, start + 100)] for start in (0, 100)
    ]
    for start, entries in zip(("0", "100"), pages, strict=True):
        server.add("/arxiv/query", Answer(arxiv_feed(*entries, total=150)), parameters={"start": start})
    ran = online.fetch("--dry-run", "--source", "arxiv", "--search", "paper", "--since", "2021", "--max", "120")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 121
    assert server.asked[0].parameters["search_query"] == "all:paper AND submittedDate:[202101010000 TO 210012312359]"


def test_a_category_of_a_month_is_listed_fetched_and_asked_alone(online: CliRunner, server: SourceServer) -> None:
    """Categories and dates are stored, survive a rebuild, are shown, filtered by, and come out of an export whole."""
    records = (
        oai_record("2101.00001", "Glaciers of the Alps", "2021-01-04", "cs.CL", "cs.LG"),
        oai_record("2101.00002", "Changed later", "2020-12-31", "cs.CL", changed="2021-01-05"),
    )
    asked = {"set": "cs:cs:CL", "from": "2021-01-01", "metadataPrefix": "arXiv"}
    server.add("/arxivoai/oai", Answer(oai_list(*records)), parameters=asked)
    server.add("/pdf/2101.00001", Answer(pdf(online.folder, GLACIERS)))
    write_pdf(online.papers / "otters.pdf", OTTERS)
    ran = online.fetch("--yes", "--category", "cs.CL", "--since", "2021-01", "--until", "2021-01")
    assert (ran.code, "Changed later" in ran.out) == (0, False)
    assert online.ingest("--rebuild").code == 0
    (glaciers,) = (paper for paper in papers_of(online).values() if paper.metadata.categories.value)
    assert glaciers.metadata.categories == Field(("cs.CL", "cs.LG"), "arxiv", True)
    assert glaciers.metadata.date == Field("2021-01-04", "arxiv", True)
    assert "2021-01-04" in run_papers(online, "show", glaciers.file).out
    for name in ("cs.lg", "cs"):
        ran = run_papers(online, "list", "--category", name, "--json")
        (listed,) = map(json.loads, ran.out.splitlines())
        assert (listed["date"], listed["categories"]) == ("2021-01-04", ["cs.CL", "cs.LG"])
    assert "cs.LG" in run_papers(online, "list", "--by", "category").out
    wrong = online.query("--category", "cs.AI", "How long is the glacier?")
    assert (wrong.code, "has the category “cs.AI”" in wrong.err) == (2, True)
    assert "otters.pdf" not in online.query("--sources", "--category", "cs.CL", "How long is it?").out
    exported = run_papers(online, "export").out
    for field in ("primaryClass = {cs.CL}", "categories = {cs.CL, cs.LG}", "month = jan", "day = {4}"):
        assert field in exported
    (entry,) = (entry for entry in bibtex.read(exported)[0] if entry.arxiv)
    assert entry.describe().categories.value == ("cs.CL", "cs.LG")
    items = json.loads(run_papers(online, "export", "--format", "csl-json").out)
    (item,) = (item for item in items if "archive" in item)
    assert (item["issued"], item["categories"]) == ({"date-parts": [[2021, 1, 4]]}, ["cs.CL", "cs.LG"])


@pytest.mark.parametrize(
    ("written", "first", "last"),
    [
        ("2024", (2024, 1, 1), (2024, 12, 31)),
        ("2024-02", (2024, 2, 1), (2024, 2, 29)),
        ("2023-12", (2023, 12, 1), (2023, 12, 31)),
        ("2024-02-29", (2024, 2, 29), (2024, 2, 29)),
    ],
)
def test_a_date_is_a_year_a_month_or_a_day(
    written: str, first: tuple[int, int, int], last: tuple[int, int, int]
) -> None:
    given = fetch.parser("fetch.py").parse_args(["--search", "x", "--since", written, "--until", written])
    assert (given.since, given.until) == (date(*first), date(*last))


@pytest.mark.parametrize("written", ["21", "2021-13", "2021-02-30", "1799", "20210101", "2021-", "2021-W01", "٢٠٢١"])
def test_what_is_no_date_is_refused(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fetch.parser("fetch.py").parse_args(["--search", "x", "--since", written])
    assert "must be a year, a month or a day" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "--category cs.CL",  # too large
        "--category cs.CL --since 2021 --source openalex",
        "--category CS;CL --since 2021",
        "2101.00001 --metadata",
        "otters",
        "--search=",
        "--search !? --source arxiv",
        "--search x --source arxiv --min-cited 3",  # arXiv does not count citations
        "--since 2020 2101.00001",
        "--search x 2101.00001",
        "--updates --search x",
        "--keep-versions --search x",
        "--expand cites --search x",
        "--expand cites --depth 4",
        "--expand cites --cap 5000",
        "--expand cites --source arxiv",
        "--depth 2 --metadata",
    ],
)
def test_options_that_cannot_be_fetched_with(online: CliRunner, server: SourceServer, arguments: str) -> None:
    ran = online.fetch(*arguments.split())
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 2
    assert server.asked == []


def test_metadata_is_filled_and_a_persons_edit_stays(online: CliRunner, server: SourceServer) -> None:
    write_pdf(online.papers / "otters.pdf", OTTERS, "On the Sea Otters of Alaska")
    write_pdf(online.papers / "glaciers.pdf", GLACIERS, "The Length of the Aletsch Glacier")
    assert online.ingest().code == 0
    with opened(online) as library:
        ids = {paper.file: paper.id for paper in library.papers()}
        library.set_metadata(ids["otters.pdf"], "person", Metadata(year=Field(1999, "person", True)))
    of_glaciers = crossref_work("10.1234/ice", "The Length of the Aletsch Glacier", ("Ada", "Ice"), year=2020)
    of_otters = crossref_work(OTTER_DOI, "On the Sea Otters of Alaska", ("Cy", "Otter"), year=1999)
    other = crossref_work("10.1234/other", "On the Sea Urchins of Alaska", ("No", "Body"))
    server.add("/crossref/works", json_answer(crossref_list(other, of_otters)))
    asked_for = {"query.title": "The Length of the Aletsch Glacier"}
    server.add("/crossref/works", json_answer(crossref_list(of_glaciers)), parameters=asked_for)
    before = papers_of(online)
    dry = online.fetch("--metadata", "--dry-run")
    assert "Papers: 2, found: 2, changed: 2, not found: 0. Nothing was stored" in dry.out
    assert papers_of(online) == before
    asked = len(server.asked)
    ran = online.fetch("--metadata")
    assert ran.code == 0
    assert len(server.asked) == asked
    assert "otters.pdf (by title, match 1.00):" in ran.out
    assert f"  doi: (none) -> {OTTER_DOI}" in ran.out
    found = papers_of(online)
    otters = found["otters.pdf"].metadata
    assert (otters.doi.value, otters.venue.value) == (OTTER_DOI, "Journal of Otters")
    assert otters.year == Field(1999, "person", True)
    assert found["glaciers.pdf"].metadata.authors == Field((PersonName("Ice", "Ada"),), "crossref", True)
    again = online.fetch("--metadata")
    assert "changed: 0, not found: 0." in again.out
    assert online.ingest("--verify").code == 0


def test_a_doi_of_another_work_is_not_believed(online: CliRunner, server: SourceServer) -> None:
    small_papers(online.papers)
    online.ingest()
    for file in papers_of(online):
        describe(online, file, title="On Sea Otters", doi=OTTER_DOI)
    cited = crossref_work(OTTER_DOI, "A Wholly Different Study of Something", ("X", "Y"))
    server.add(f"/crossref/works/{OTTER_DOI}", json_answer(crossref(cited)))
    server.add("/crossref/works", json_answer(crossref_list()))
    ran = online.fetch("--metadata")
    assert 'its DOI is that of another work, "A Wholly Different Study of Something".' in ran.out
    assert "found: 0, changed: 0, not found: 2." in ran.out


def test_hostile_texts_control_nothing(online: CliRunner, server: SourceServer) -> None:
    title = "Otters\x1b[2J \ud800 <b>and</b> [Fake 2014, p. 6] " + "x" * 5000
    server.add("/openalex/works", json_answer(openalex_list(openalex_work(9, title, "A\x07 B"), {"title": [1]})))
    ran = online.fetch("--dry-run", "--search", "otters")
    assert ran.code == 0
    assert not {"\x1b", "\x07", "\ud800"} & set(ran.out)
    assert "[Fake 2014, p. 6]" not in ran.out


def test_ctrl_c_keeps_whole_files_for_the_next_run(
    online: CliRunner, offers: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(arxiv, "find_pdfs", interrupted)
        offers.add("/openalex/works/doi:10.1234/second", json_answer(openalex_work(9, "Second", doi="10.1234/second")))
        online.settings["CONTACT_EMAIL"] = "me@example.org"
        ran = online.fetch("--yes", "2101.00001", "10.1234/second")
    assert ran.code == 130
    assert "Stopped. Complete files: 1. Run the same command again to continue." in ran.err
    assert [path.name for path in online.papers.iterdir()] == ["2101.00001 Glaciers of the Alps.pdf"]
    asked = len(offers.asked)
    assert online.fetch("--yes", "2101.00001").code == 0
    assert len(offers.asked) == asked
    assert papers_of(online)["2101.00001 Glaciers of the Alps.pdf"].metadata.year == Field(2021, "arxiv", True)


def interrupted(*_: object) -> tuple[str, ...]:
    raise KeyboardInterrupt


def test_an_empty_library_of_a_killed_run_is_no_obstacle(online: CliRunner, offers: SourceServer) -> None:
    online.store.mkdir()
    (online.store / LIBRARY).touch()
    ran = online.fetch("--yes", "2101.00001")
    assert (ran.code, ran.err) == (0, "")
    assert list(papers_of(online)) == ["2101.00001 Glaciers of the Alps.pdf"]


def test_a_download_that_is_cut_leaves_nothing(online: CliRunner, offers: SourceServer) -> None:
    offers.add("/files/otters", Answer(b"%PDF-1.7 half", length=10**5))
    ran = online.fetch("--yes", OTTER_DOI)
    assert ran.code == 1
    assert "127.0.0.1 could not be reached, or broke off" in ran.err
    assert list(online.papers.iterdir()) == []
    assert not (online.store / LIBRARY).exists()
