"""All services are asked at once and several papers are downloaded at once; each can be cancelled, and fails alone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from folio.errors import DiskFull, SourceError
from folio.papers.metadata import Metadata
from folio.papers.work import Work
from folio.services import download
from folio.services.addresses import RATES, InternetAccess
from folio.services.keep import Candidate
from folio.services.online import AT_ONCE, OnlineServices
from tests.helpers.five_services import SEARCHES, five_services
from tests.helpers.live_server import until
from tests.helpers.source_server import Answer, SourceServer
from tests.helpers.stores import Notices

PDF = b"%PDF-1.7\n" + b"x" * 5000 + b"\n%%EOF\n"
DRIPPING = Answer(b"%PDF-1.7\n", drips=True, length=10**6)


class LeftError(Exception):
    """The client has left."""


@pytest.fixture
def online(server: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnlineServices:
    monkeypatch.setattr("folio.services.http.PDF_RATE", (1000, 1.0))
    monkeypatch.setitem(RATES, "arxiv", (1000, 1.0))
    return OnlineServices(InternetAccess("", "", "", server.url, tmp_path / "cache", 10))


def wanted(server: SourceServer, folder: Path, *names: str) -> list[Candidate]:
    works = [Work("openalex", title=name, pdfs=(f"{server.url}/{name}",)) for name in names]
    return [Candidate(work, Metadata(), folder / "papers" / f"{work.title}.pdf") for work in works]


def nothing() -> None:
    pass


def test_what_came_whole_is_told_from_what_did_not(
    online: OnlineServices, server: SourceServer, tmp_path: Path
) -> None:
    server.add("/one", Answer(PDF))
    server.add("/two", Answer(b"<html>"))
    server.add("/three", Answer(PDF))
    notices, ended = Notices(), list[int]()
    files = online.download_all(
        wanted(server, tmp_path, "one", "two", "three"), notices, lambda: ended.append(1), nothing
    )
    assert [each.work.title for each in files] == ["one", "three"]
    assert len(ended) == 3
    assert {path.name for path in (tmp_path / "papers").iterdir()} == {"one.pdf", "three.pdf"}
    before = len(server.asked)
    assert len(online.download_all(files, notices, nothing, nothing)) == 2  # they are there
    assert len(server.asked) == before


def test_several_are_under_way_and_all_end_when_one_leaves(
    online: OnlineServices, server: SourceServer, tmp_path: Path
) -> None:
    names = [f"paper{number}" for number in range(AT_ONCE + 1)]
    for name in names:
        server.add(f"/{name}", DRIPPING)
    left = threading.Event()

    def check() -> None:
        if left.is_set():
            raise LeftError

    def leave() -> None:
        until(lambda: len(server.asked) == AT_ONCE)
        left.set()

    threading.Thread(target=leave).start()
    with pytest.raises(LeftError):
        online.download_all(wanted(server, tmp_path, *names), Notices(), nothing, check)
    assert len(server.asked) == AT_ONCE  # the last one never began
    assert list((tmp_path / "papers").iterdir()) == []


def test_a_full_disk_ends_the_others(
    online: OnlineServices, server: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add("/one", Answer(PDF))
    server.add("/two", DRIPPING)

    def fail(*_: object) -> None:
        until(lambda: "/two" in server.paths())
        raise DiskFull("The disk is full.", "Make room.")

    monkeypatch.setattr(download, "replace", fail)
    with pytest.raises(DiskFull):
        online.download_all(wanted(server, tmp_path, "one", "two"), Notices(), nothing, nothing)
    assert list((tmp_path / "papers").iterdir()) == []


def test_every_service_gets_every_search(online: OnlineServices, server: SourceServer, tmp_path: Path) -> None:
    five_services(tmp_path, server)
    works = online.search_all(["otter fur", "sea otter"], Notices(), nothing)
    assert {path: server.paths().count(path) for path in SEARCHES} == dict.fromkeys(SEARCHES, 2)
    assert {work.source for work in works} == {"arxiv", "openalex", "crossref", "europepmc"}


def test_a_search_that_arxiv_cannot_read_goes_to_the_others(
    online: OnlineServices, server: SourceServer, tmp_path: Path
) -> None:
    five_services(tmp_path, server)
    notices = Notices()
    works = online.search_all(["otter OR", "sea otter"], notices, nothing)
    assert server.paths().count("/arxiv/query") == 1
    assert "arXiv: OR stands without a term" in str(notices)
    assert {work.source for work in works} == {"arxiv", "openalex", "crossref", "europepmc"}


def test_no_service_is_an_error(online: OnlineServices, server: SourceServer) -> None:
    for path in SEARCHES:
        server.add(path, Answer(b"<html>"))
    with pytest.raises(SourceError, match="No service answered"):
        online.search_all(["otter"], Notices(), nothing)
