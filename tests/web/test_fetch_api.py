"""Searching, fetching and citations through the API: over the stand-in of the services, or refused without a socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from folio.app import App
from folio.ingest.discovery import Outcome
from folio.services.addresses import RATES
from folio.system import workers
from folio.web.papers import PaperFiles, Upload
from tests.helpers import offline_guard
from tests.helpers.citing_papers import FISH, ICE_TITLE, OTTER_TITLE, SONGS, UNNAMED, WATER, citing_papers, stand_in_app
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import GLACIERS, small_papers, write_pdf
from tests.helpers.fakes import read_here
from tests.helpers.five_services import SEARCHES, five_services
from tests.helpers.live_server import Live, until
from tests.helpers.paths import ROOT
from tests.helpers.serve_process import Served
from tests.helpers.source_records import arxiv_entry, arxiv_feed, openalex_list, openalex_work, s2_work
from tests.helpers.source_server import Answer, SourceServer, json_answer
from tests.helpers.web_client import NOBODY, events_in, papers_by_file, refusal

SOLAR = "The cells of the roof turn twenty percent of the light into electricity."
UNCLOSED = "<img src=x onerror=window.ran=true"  # closed tags are taken out when it comes
HALF = Answer(b"%PDF-1.7\n" + b"x" * 5000, drips=True, length=10**6)
OFF = "Off: this Folio contacts no service on the internet."
START = "Turn it on in Settings, under Internet."


@pytest.fixture(autouse=True)
def read_without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_here)


@pytest.fixture
def app(tmp_path: Path, server: SourceServer) -> App:
    """No paper yet."""
    return stand_in_app(tmp_path, server)


def offered(server: SourceServer, folder: Path, number: int, title: str) -> None:
    """A work of OpenAlex with a PDF."""
    link = {"is_oa": True, "pdf_url": f"{server.url}/files/{number}", "license": "cc-by"}
    work = openalex_work(number, title, "Ada Byte", best_oa_location=link)
    server.add(f"/openalex/works/W{number}", json_answer(work))
    made = write_pdf(folder / "made" / f"{number}.pdf", [f"{title}. {SOLAR} It is cell number {number}."])
    server.add(f"/files/{number}", Answer(made.read_bytes()))


def fetch(client: httpx.Client, *ids: str) -> list[tuple[str, dict[str, Any]]]:
    response = client.post("/papers/fetch", json={"ids": ids})
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    return events_in(response.text)


# Off


def test_by_default_nothing_is_asked(app: App, server: SourceServer) -> None:
    refused = {"error": "This Folio may not contact services on the internet.", "remedy": START}
    with Live(app) as live, live.client() as client:
        for response in (
            client.get("/discover", params={"query": "solar cells"}),
            client.get("/discover", params={"query": "2101.00001"}),
            client.post("/papers/fetch", json={"ids": ["W21"]}),
            client.post("/searches", json={"question": "What is a solar cell?"}),
            client.post("/discover", json={"question": "What is a solar cell?", "searches": ["solar cell"]}),
        ):
            assert (response.status_code, response.json()) == (403, refused)
        health = client.get("/health").json()
    assert (health["online"], health["network"]) == (False, f"{OFF} {START}")
    assert server.asked == []


@pytest.mark.slow
def test_an_offline_server_connects_to_nothing_outside(desk: CliRunner) -> None:
    """It would end at once: the guard lets it speak to this computer alone, where it looks for Ollama."""
    small_papers(desk.papers)
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "CONTACT_EMAIL": "me@example.org"}
    assert desk.ingest().code == 0
    guard = desk.folder / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_bytes((ROOT / "tests" / "helpers" / "offline_guard.py").read_bytes())
    desk.settings |= {"PYTHONPATH": str(guard), "OFFLINE_GUARD": "loopback"}
    with Served(desk) as served:
        assert served.client.get("/discover", params={"query": "solar cells"}).status_code == 403
        assert served.client.post("/papers/fetch", json={"ids": ["10.1234/x"]}).status_code == 403
        assert served.interrupt() == 0
    assert "BROKE OUT" not in served.err
    assert not (desk.folder / "cache").exists()
    with Served(desk, "--online") as served:  # as a proof that the guard works
        with pytest.raises(httpx.RemoteProtocolError):
            served.client.get("/discover", params={"query": "solar cells"})
        assert served.interrupt() == offline_guard.BROKE_OUT


@pytest.mark.slow
def test_the_server_goes_online_by_a_setting(desk: CliRunner, server: SourceServer) -> None:
    desk.settings |= {"SOURCES_STAND_IN": server.url, "ONLINE": "true"}
    server.add("/openalex/works", json_answer(openalex_list(openalex_work(21, "Solar Cells", "Ada Byte"))))
    with Served(desk) as served:
        health = served.client.get("/health").json()
        assert (health["online"], health["network"].split(":")[0]) == (True, "On")
        reply = served.client.get("/discover", params={"query": "solar cells"}).json()
    assert [work["title"] for work in reply["works"]] == ["Solar Cells"]


# Searching


def test_works_are_found_with_what_is_here_of_them(app: App, server: SourceServer, tmp_path: Path) -> None:
    write_pdf(tmp_path / "papers" / "W23 Whole Already.pdf", [SOLAR])
    listed = openalex_list(
        openalex_work(22, f"Solar {UNCLOSED} Cells", "Ada Byte", "Bo Bit", doi="10.1234/solar", is_retracted=True),
        openalex_work(23, "Whole Already", "Cy Cell"),
        openalex_work(24, "Shut", open_access={"is_oa": False}, cited_by_count=0, authorships=None),
    )
    server.add("/openalex/works", json_answer(listed))
    query: dict[str, str | int] = {"query": "  solar cells ", "since": 2020, "open_access": True, "min_cited": 3}
    query |= {"max": 7, "sort": "date"}
    with Live(app, is_online=True) as live, live.client() as client:
        reply = client.get("/discover", params=query).json()
    first, second, third = reply["works"]
    assert first == {
        "id": "W22",
        "link": "https://openalex.org/W22",
        "title": f"Solar {UNCLOSED} Cells",
        "authors": ["Ada Byte", "Bo Bit"],
        "year": 2021,
        "date": "",
        "categories": [],
        "venue": "",
        "abstract": "Otters eat Otters",
        "doi": "10.1234/solar",
        "arxiv": "",
        "cited": 12,
        "open": True,
        "retracted": True,
        "paper": None,
        "other_version": False,
        "file": "",
        "sentence": "",
    }
    assert (second["paper"], second["file"]) == (None, "W23 Whole Already.pdf")
    assert (third["authors"], third["cited"], third["open"]) == ([], 0, False)
    assert reply["notices"] == []
    (asked,) = server.asked
    assert (asked.parameters["search"], asked.parameters["sort"]) == ("solar cells", "publication_date:desc")
    for part in ("2020", "is_oa:true", "cited_by_count"):
        assert part in asked.parameters["filter"]


def test_a_work_that_is_in_the_library_is_marked(app: App, server: SourceServer, tmp_path: Path) -> None:
    entry = Answer(arxiv_feed(arxiv_entry("2101.00001v2", "Glaciers of the Alps", "Ada Ice")))
    for asked in ("2101.00001", "2101.00001v2"):
        server.add("/arxiv/query", entry, parameters={"id_list": asked})
    server.add("/pdf/2101.00001v2", Answer(write_pdf(tmp_path / "made.pdf", GLACIERS).read_bytes()))
    address = "https://arxiv.org/abs/2101.00001"
    with Live(app, is_online=True) as live, live.client() as client:
        (work,) = client.get("/discover", params={"query": address}).json()["works"]
        assert (work["id"], work["link"], work["paper"]) == ("arXiv:2101.00001v2", f"{address}v2", None)
        assert client.get("/discover", params={"query": "10.1234/nobody"}).json() == {"works": [], "notices": []}
        sent = fetch(client, work["id"])
        (paper,) = client.get("/papers").json()["papers"]
        (again,) = client.get("/discover", params={"query": address}).json()["works"]
    assert sent[-1] == ("done", {"added": 1, "unchanged": 0, "failed": 0})
    assert (again["paper"], again["file"]) == (paper["id"], "2101.00001 Glaciers of the Alps.pdf")


def test_a_question_proposes_searches_that_go_out_word_for_word(
    app: App, server: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RATES, "arxiv", (100, 1.0))
    five_services(tmp_path, server)
    question = "How dense is the fur of a sea otter?"
    with Live(app, is_online=True) as live, live.client() as client:
        proposed = client.post("/searches", json={"question": question, "missing": [question]}).json()
        assert proposed["searches"][0] == "dense fur sea otter"
        assert server.asked == []
        chosen = ["otter fur", '"sea otter"']
        reply = client.post("/discover", json={"question": question, "searches": chosen}).json()
        for wrong in ([], [" "], ["x"] * 5, ["x" * 201]):
            assert client.post("/discover", json={"question": question, "searches": wrong}).status_code == 422
    assert {path for path in server.paths() if path in SEARCHES} == SEARCHES
    assert {asked.parameters.get("search") for asked in server.asked} - {None} == set(chosen)
    first, *others = reply["works"]
    assert (first["title"], first["sentence"]) == ("The Fur of Sea Otters", "The fur of a sea otter is dense .")
    assert (first["id"], first["open"], first["paper"]) == ("10.1234/fur", True, None)
    assert {work["title"] for work in others} == {"Prices of Fur", "Strings and Branes", "Kelp"}


def test_a_failing_service_is_replaced_by_the_next(app: App, server: SourceServer) -> None:
    server.add("/openalex/works", Answer(b"{"))
    server.add("/semanticscholar/paper/search", json_answer({"total": 1, "data": [s2_work(1, "One", "Ada Byte")]}))
    unreadable = "OpenAlex sent something that cannot be read."
    with Live(app, is_online=True) as live, live.client() as client:
        reply = client.get("/discover", params={"query": "solar"}).json()
        assert [work["title"] for work in reply["works"]] == ["One"]
        assert reply["notices"] == [f"{unreadable} Semantic Scholar is asked instead."]
        only = client.get("/discover", params={"query": "cells", "source": "openalex"})
        assert refusal(only, 502) == unreadable
        counted = client.get("/discover", params={"query": "cells", "source": "arxiv", "min_cited": 1})
        assert refusal(counted, 400) == "arXiv does not count citations."


WRONG: list[dict[str, Any]] = [
    *({"query": "x", **wrong} for wrong in ({"max": 101}, {"since": 99}, {"sort": "title"}, {"source": "x"})),
    *({"query": words} for words in ("", " ", "x" * 501)),
    {"query": "x", "min_cited": -1},
    {"query": "x", "other": 1},
]


def test_what_cannot_be_asked_is_refused(app: App, server: SourceServer) -> None:
    with Live(app, is_online=True) as live, live.client() as client:
        assert [client.get("/discover", params=query).status_code for query in WRONG] == [422] * len(WRONG)
        for ids, status in (([], 422), (["no identifier"], 400), (["W21"] * 101, 422), ([""], 422), ("W21", 422)):
            assert client.post("/papers/fetch", json={"ids": ids}).status_code == status
    assert server.asked == []


def test_pages_of_other_sites_cause_no_search(app: App, server: SourceServer) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    with Live(app, is_online=True) as live, live.client() as client:
        for headers in (link, {"Origin": "https://example.org"}, {"Sec-Fetch-Site": "cross-site"}):
            assert client.get("/discover", params={"query": "x"}, headers=headers).status_code == 403
            assert client.post("/papers/fetch", json={"ids": ["W21"]}, headers=headers).status_code == 403
        assert client.get("/papers", headers=link).status_code == 200  # other sites may link to the rest
        plain = {"Content-Type": "text/plain"}
        assert client.post("/papers/fetch", content='{"ids": ["W21"]}', headers=plain).status_code == 415
    assert server.asked == []


# Fetching


def test_papers_are_fetched_in_turn_and_each_failure_is_named(app: App, server: SourceServer, tmp_path: Path) -> None:
    for number, title in enumerate(("First Cells", "Second Cells", "Third Cells"), 21):
        offered(server, tmp_path, number, title)
    server.add("/files/22", Answer(b"<!doctype html><title>Are you a robot?</title>"))
    server.add("/files/23", Answer(b"%PDF-1.7 nothing %%EOF"))
    server.add("/openalex/works/W24", json_answer(openalex_work(24, "Shut", "Ada Byte")))
    with Live(app, is_online=True) as live, live.client() as client:
        sent = fetch(client, "W21", "W22", "W23", "W24", "10.1234/nobody", "W21")
        listed = client.get("/papers").json()
        found = client.post("/search", json={"query": "solar cells on the roof"}).json()["hits"]
        again = fetch(client, "https://openalex.org/W21")
    assert [(kind, each["id"], each.get("title")) for kind, each in sent if kind in ("added", "failed")] == [
        ("added", "W21", None),
        ("failed", "W22", "Second Cells"),
        ("failed", "W23", "Third Cells"),
        ("failed", "W24", "Shut"),
        ("failed", "10.1234/nobody", ""),
    ]
    assert sent[-1] == ("done", {"added": 1, "unchanged": 0, "failed": 4})
    stages = [each["stage"] for kind, each in sent if kind == "progress" and each["id"] == "W21"]
    assert list(dict.fromkeys(stages)) == ["downloading", "reading", "embedding"]
    errors = {each["id"]: each["error"] for kind, each in sent if kind == "failed"}
    robot = '127.0.0.1 sent a page that asks "are you a robot?" instead of a PDF.'
    assert errors["W22"] == f"No PDF could be downloaded: {robot}"
    assert errors["W24"] == "No PDF could be downloaded: no open PDF is known."
    assert errors["10.1234/nobody"] == "No service has this work."
    (paper,) = listed["papers"]
    assert (paper["title"], paper["authors"], paper["year"]) == ("First Cells", ["Ada Byte"], 2021)
    assert [hit["paper"] for hit in found] == [paper["id"]]
    assert sorted(path.name for path in (tmp_path / "papers").iterdir()) == [
        "W21 First Cells.pdf",
        "W23 Third Cells.pdf",
    ]
    assert [each["file"] for each in listed["failures"]] == ["W23 Third Cells.pdf"]
    ((_, same), (_, done)) = again
    assert (same["status"], same["paper"]["id"], done["unchanged"]) == ("unchanged", paper["id"], 1)


def test_removing_a_paper_during_a_fetch_costs_no_other_paper(
    app: App, server: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, title in ((21, "First Cells"), (22, "Second Cells")):
        offered(server, tmp_path, number, title)
    ingest = PaperFiles.ingest

    def and_remove(files: PaperFiles, upload: Upload, *more: Any) -> Outcome:
        outcome = ingest(files, upload, *more)
        if "First" in upload.file.name:
            files.remove(upload.file.sha256)
        return outcome

    monkeypatch.setattr(PaperFiles, "ingest", and_remove)
    with Live(app, is_online=True) as live, live.client() as client:
        sent = fetch(client, "W21", "W22")
    assert [(kind, each["id"]) for kind, each in sent if kind in ("added", "failed")] == [
        ("failed", "W21"),
        ("added", "W22"),
    ]
    assert sent[-1] == ("done", {"added": 1, "unchanged": 0, "failed": 1})


def test_a_client_that_leaves_ends_its_downloads(app: App, server: SourceServer, tmp_path: Path) -> None:
    for number, title in enumerate(("First Cells", "Second Cells", "Third Cells"), 21):
        offered(server, tmp_path, number, title)
    server.add("/files/22", HALF)
    with Live(app, is_online=True) as live, live.client() as client:
        with client.stream("POST", "/papers/fetch", json={"ids": ["W21", "W22", "W23"]}) as response:
            rest = until_downloading(response, "W22")
            until(lambda: "/files/22" in server.paths())
            del rest
        until(lambda: [path.name for path in (tmp_path / "papers").iterdir()] == ["W21 First Cells.pdf"])
        assert [paper["file"] for paper in client.get("/papers").json()["papers"]] == ["W21 First Cells.pdf"]
        assert "/files/23" not in server.paths()
        assert fetch(client, "W23")[-1][1]["added"] == 1  # the next request is not held up


def until_downloading(response: httpx.Response, id: str) -> Iterator[str]:
    """Reads until a download begins; returns the rest, whose end would end the connection."""
    lines = response.iter_lines()
    for line in lines:
        if "downloading" in line and f'"{id}"' in line:
            return lines
    raise AssertionError("it did not begin")


def test_the_server_stops_while_something_downloads(app: App, server: SourceServer, tmp_path: Path) -> None:
    offered(server, tmp_path, 22, "Second Cells")
    server.add("/files/22", HALF)
    with (
        Live(app, is_online=True) as live,
        live.client() as client,
        client.stream("POST", "/papers/fetch", json={"ids": ["W22"]}) as response,
    ):
        rest = until_downloading(response, "W22")
        until(lambda: "/files/22" in server.paths())
        live.stop()
        del rest
    assert list((tmp_path / "papers").iterdir()) == []


def test_requests_share_the_rates_of_the_services(app: App, server: SourceServer) -> None:
    """arXiv is asked once in three seconds, whoever asks."""
    server.add("/arxiv/query", Answer(arxiv_feed()))
    with Live(app, is_online=True) as live, live.client() as client:
        for words in ("one", "two"):
            reply = client.get("/discover", params={"query": words, "source": "arxiv"})
            assert reply.json() == {"works": [], "notices": []}
    assert reply.elapsed.total_seconds() > 2


# Citations

NOTHING = {"known": False, "references": [], "cited_by": [], "reference_count": 0, "cited_by_count": 0}


@pytest.fixture
def citing(tmp_path: Path, server: SourceServer) -> App:
    return citing_papers(tmp_path, server)


def ids(client: httpx.Client) -> dict[str, str]:
    """Title -> id."""
    return {paper["title"]: paper["id"] for paper in papers_by_file(client).values()}


def listed(works: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [(work["title"], work["id"], work["paper"] is not None) for work in works]


def test_citations_are_looked_up_once_and_listed_without_a_network(citing: App, server: SourceServer) -> None:
    with Live(citing, is_online=True) as live, live.client() as client:
        paper = ids(client)[OTTER_TITLE]
        assert client.get(f"/papers/{paper}/citations").json() == NOTHING
        assert client.get("/citations").json() == {"edges": []}
        assert server.asked == []
        looked_up = client.post(f"/papers/{paper}/citations")
        assert looked_up.status_code == 200
    asked = len(server.asked)
    with Live(citing) as live, live.client() as client:
        kept = client.get(f"/papers/{paper}/citations").json()
        edges = client.get("/citations").json()["edges"]
        ice = ids(client)[ICE_TITLE]
        backwards = client.get(f"/papers/{ice}/citations").json()
    assert kept == looked_up.json()
    assert listed(kept["references"]) == [
        (ICE_TITLE, "W12", True),
        (WATER, "W14", False),
        (FISH, "W13", False),
        ("", UNNAMED, False),
    ]
    assert listed(kept["cited_by"]) == [(SONGS, "W16", False)]
    assert (kept["known"], kept["reference_count"], kept["cited_by_count"]) == (True, 4, 1)
    assert kept["references"][0]["file"] == "glaciers.pdf"
    assert kept["references"][1]["retracted"]
    assert edges == [{"citing": paper, "cited": ice}]
    assert (backwards["known"], listed(backwards["cited_by"])) == (True, [(OTTER_TITLE, "W11", True)])
    assert len(server.asked) == asked


def test_a_reference_that_is_added_is_marked(citing: App, server: SourceServer) -> None:
    with Live(citing, is_online=True) as live, live.client() as client:
        paper = ids(client)[OTTER_TITLE]
        client.post(f"/papers/{paper}/citations")
        assert client.post("/papers/fetch", json={"ids": ["W13"]}).text.count("event: added") == 1
        references = client.get(f"/papers/{paper}/citations").json()["references"]
        edges = client.get("/citations").json()["edges"]
    assert listed(references)[:2] == [(ICE_TITLE, "W12", True), (FISH, "W13", True)]
    assert len(edges) == 2


def test_nobody_is_asked_by_default_and_unknown_papers_are_named(citing: App, server: SourceServer) -> None:
    with Live(citing) as live, live.client() as client:
        paper = ids(client)[OTTER_TITLE]
        assert client.post(f"/papers/{paper}/citations").status_code == 403
        assert client.get(f"/papers/{NOBODY}/citations").status_code == 404
    with Live(citing, is_online=True) as live, live.client() as client:
        assert client.post(f"/papers/{NOBODY}/citations").status_code == 404
        away = {"Origin": "https://example.org"}
        assert client.post(f"/papers/{paper}/citations", headers=away).status_code == 403
    assert server.asked == []


def test_a_paper_that_no_service_has_keeps_what_is_known(citing: App, server: SourceServer) -> None:
    for path in ("/openalex/works/doi:10.1234/otters", "/openalex/works"):
        server.add(path, Answer(b"{"))
    with Live(citing, is_online=True) as live, live.client() as client:
        paper = ids(client)[OTTER_TITLE]
        failed = client.post(f"/papers/{paper}/citations")
        assert "No service is known to have this paper." in refusal(failed, 502)
        assert failed.json()["remedy"] == "Use Edit to correct its title or to add its DOI."
        assert client.get(f"/papers/{paper}/citations").json() == NOTHING


def test_without_an_index_there_are_no_citations(tmp_path: Path, server: SourceServer) -> None:
    (tmp_path / "other").mkdir()
    with Live(stand_in_app(tmp_path / "other", server)) as live, live.client() as client:
        assert client.get("/citations").json() == {"edges": []}
        assert client.get(f"/papers/{NOBODY}/citations").status_code in (404, 409)
