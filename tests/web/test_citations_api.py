"""What a paper cites and what cites it, and which papers of the library cite each other, through the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from folio.app import App
from tests.helpers.citing_papers import FISH, ICE_TITLE, OTTER_TITLE, SONGS, UNNAMED, WATER, citing_papers, stand_in_app
from tests.helpers.live_server import Live
from tests.helpers.source_server import Answer, SourceServer
from tests.helpers.web_client import NOBODY, papers_by_file, refusal

NOTHING = {"known": False, "references": [], "cited_by": [], "reference_count": 0, "cited_by_count": 0}


@pytest.fixture
def app(tmp_path: Path, server: SourceServer) -> App:
    return citing_papers(tmp_path, server)


def ids(client: httpx.Client) -> dict[str, str]:
    """Title -> id."""
    return {paper["title"]: paper["id"] for paper in papers_by_file(client).values()}


def listed(works: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [(work["title"], work["id"], work["paper"] is not None) for work in works]


def test_citations_are_looked_up_once_and_listed_without_a_network(app: App, server: SourceServer) -> None:
    with Live(app, is_online=True) as live, live.client() as client:
        paper = ids(client)[OTTER_TITLE]
        assert client.get(f"/papers/{paper}/citations").json() == NOTHING
        assert client.get("/citations").json() == {"edges": []}
        assert server.asked == []
        looked_up = client.post(f"/papers/{paper}/citations")
        assert looked_up.status_code == 200
    asked = len(server.asked)
    with Live(app) as live, live.client() as client:
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


def test_a_reference_that_is_added_is_marked(app: App, server: SourceServer) -> None:
    with Live(app, is_online=True) as live, live.client() as client:
        paper = ids(client)[OTTER_TITLE]
        client.post(f"/papers/{paper}/citations")
        assert client.post("/papers/fetch", json={"ids": ["W13"]}).text.count("event: added") == 1
        references = client.get(f"/papers/{paper}/citations").json()["references"]
        edges = client.get("/citations").json()["edges"]
    assert listed(references)[:2] == [(ICE_TITLE, "W12", True), (FISH, "W13", True)]
    assert len(edges) == 2


def test_nobody_is_asked_by_default_and_unknown_papers_are_named(app: App, server: SourceServer) -> None:
    with Live(app) as live, live.client() as client:
        paper = ids(client)[OTTER_TITLE]
        assert client.post(f"/papers/{paper}/citations").status_code == 403
        assert client.get(f"/papers/{NOBODY}/citations").status_code == 404
    with Live(app, is_online=True) as live, live.client() as client:
        assert client.post(f"/papers/{NOBODY}/citations").status_code == 404
        away = {"Origin": "https://example.org"}
        assert client.post(f"/papers/{paper}/citations", headers=away).status_code == 403
    assert server.asked == []


def test_a_paper_that_no_service_has_keeps_what_is_known(app: App, server: SourceServer) -> None:
    for path in ("/openalex/works/doi:10.1234/otters", "/openalex/works"):
        server.add(path, Answer(b"{"))
    with Live(app, is_online=True) as live, live.client() as client:
        paper = ids(client)[OTTER_TITLE]
        failed = client.post(f"/papers/{paper}/citations")
        assert "No service is known to have this paper." in refusal(failed, 502)
        assert failed.json()["remedy"] == "Correct its title, or give it its DOI, with Edit."
        assert client.get(f"/papers/{paper}/citations").json() == NOTHING


def test_without_an_index_there_are_no_citations(tmp_path: Path, server: SourceServer) -> None:
    (tmp_path / "other").mkdir()
    with Live(stand_in_app(tmp_path / "other", server)) as live, live.client() as client:
        assert client.get("/citations").json() == {"edges": []}
        assert client.get(f"/papers/{NOBODY}/citations").status_code in (404, 409)
