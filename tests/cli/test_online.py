"""`folio ask --online`: searches are shown, nothing is sent before a yes, papers come after a second one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from folio.errors import DiskFull
from folio.services import download, online_run
from folio.services.addresses import RATES
from tests.helpers.cli_runner import CliRunner
from tests.helpers.desk_library import papers_of
from tests.helpers.factories import GLACIERS, write_pdf
from tests.helpers.five_services import SEARCHES, five_services
from tests.helpers.source_records import (
    arxiv_feed,
    crossref_list,
    europepmc_list,
    openalex_list,
)
from tests.helpers.source_server import Answer, SourceServer, json_answer

QUESTION = "How dense is the fur of a sea otter?"


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/services holds the rates."""
    for service in RATES:
        monkeypatch.setitem(RATES, service, (1000, 1.0))
    monkeypatch.setattr("folio.services.http._seconds_to_wait", lambda state: 0.0)


@pytest.fixture
def offers(online: CliRunner, server: SourceServer) -> SourceServer:
    """A library about glaciers, and five services; one paper about otters has an open copy."""
    write_pdf(online.papers / "glaciers.pdf", GLACIERS, "The Aletsch Glacier")
    assert online.ingest().code == 0
    five_services(online.folder, server)
    return server


def searched(server: SourceServer) -> set[str]:
    return set(server.paths()) & SEARCHES


def test_nothing_is_sent_without_a_terminal_or_a_yes(online: CliRunner, offers: SourceServer) -> None:
    ran = online.query("--online", QUESTION)
    assert ran.code == 0
    assert "Not found in the provided papers." in ran.out
    assert "  1. dense fur sea otter" in ran.err
    assert "Nothing was sent: Folio cannot ask here whether to. Add --yes." in ran.err
    assert offers.asked == []
    assert not online_run.record_path(online.store).exists()


def test_papers_come_after_a_yes_and_the_question_is_asked_again(online: CliRunner, offers: SourceServer) -> None:
    ran = online.query("--online", "--yes", QUESTION)
    assert ran.code == 0, ran.err
    assert searched(offers) == SEARCHES
    sent = {asked.parameters.get("search") for asked in offers.asked} - {None}
    assert all(f". {words}\n" in ran.err for words in sent)  # word for word what was shown
    first, again = ran.out.partition("Not found in the provided papers.")[::2]
    assert (first, "10.1234_fur" in again) == ("", True)
    assert "The fur of a sea otter is dense" in ran.err  # the sentence that decided
    assert set(papers_of(online)) == {"glaciers.pdf", "10.1234_fur The Fur of Sea Otters.pdf"}
    assert not online_run.record_path(online.store).exists()
    assert not list(online.papers.glob(".*.part"))


def test_a_question_with_an_answer_asks_nobody(online: CliRunner, offers: SourceServer) -> None:
    ran = online.query("--online", "--yes", "How long is the Aletsch glacier?")
    assert (ran.code, "Searches that may find" in ran.err, offers.asked) == (0, False, [])


def test_json_is_alone_on_standard_output(online: CliRunner, offers: SourceServer) -> None:
    ran = online.query("--online", "--yes", "--json", QUESTION)
    first, second = ran.objects
    assert (first["refused"], first["missing"]) == (True, [QUESTION])
    assert (second["refused"], second["citations"][0]["file"]) == (False, "10.1234_fur The Fur of Sea Otters.pdf")


def test_a_deep_search_goes_online_too(online: CliRunner, offers: SourceServer) -> None:
    ran = online.query("--deep", "--online", "--yes", QUESTION)
    assert ran.code == 0, ran.err
    assert "10.1234_fur" in ran.out


def test_a_search_that_finds_nothing_new_says_so(online: CliRunner, offers: SourceServer) -> None:
    offers.add("/openalex/works", json_answer(openalex_list()))
    offers.add("/arxiv/query", Answer(arxiv_feed()))
    for path in ("/crossref/works",):
        offers.add(path, json_answer(crossref_list()))
    offers.add("/europepmc/search", json_answer(europepmc_list()))
    ran = online.query("--online", "--yes", QUESTION)
    assert (ran.code, "No works were found." in ran.err) == (0, True)


@pytest.mark.parametrize("status", [200, 404, 429])
def test_a_service_that_fails_costs_only_itself(online: CliRunner, offers: SourceServer, status: int) -> None:
    headers = {"Retry-After": "9999"} if status == 429 else {}
    for path in SEARCHES - {"/openalex/works"}:
        offers.add(path, Answer(b"<html>busy", status, headers))
    ran = online.query("--online", "--yes", QUESTION)
    assert ran.code == 0, ran.err
    assert "10.1234_fur" in ran.out


def test_no_service_at_all_is_an_error_that_can_be_continued(online: CliRunner, offers: SourceServer) -> None:
    for path in SEARCHES:
        offers.add(path, Answer(b"<html>"))
    ran = online.query("--online", "--yes", QUESTION)
    assert ran.code == 1
    assert "No service answered." in ran.err
    assert "ask --online --resume` continues" in ran.err or "--online --resume continues" in ran.err
    assert online_run.read(online_run.record_path(online.store)).searches
    assert "a search for papers that was stopped" in online.query("--forget").out
    assert not online_run.record_path(online.store).exists()


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def fill(*_: object) -> None:
    raise DiskFull("The disk is full.", "Make room.")


@pytest.mark.parametrize(("fault", "code"), [(interrupt, 130), (fill, 1)])
def test_a_run_that_is_cut_in_the_middle_goes_on(
    online: CliRunner,
    offers: SourceServer,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[..., None],
    code: int,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(download, "replace", fault)
        ran = online.query("--online", "--yes", QUESTION)
    assert ran.code == code
    assert not list(online.papers.glob(".*.part"))
    assert set(papers_of(online)) == {"glaciers.pdf"}
    run = online_run.read(online_run.record_path(online.store))
    assert (run.question, run.chosen is not None) == (QUESTION, True)
    asked = len(searched(offers)), len([path for path in offers.paths() if path in SEARCHES])
    ran = online.query("--online", "--resume")
    assert ran.code == 0, ran.err
    assert "10.1234_fur" in ran.out
    assert len([path for path in offers.paths() if path in SEARCHES]) == asked[1]  # nobody was searched again
    assert not online_run.record_path(online.store).exists()


def test_what_was_fetched_is_not_fetched_again(
    online: CliRunner, offers: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from folio.cli import fetch

    with monkeypatch.context() as patch:
        patch.setattr(fetch, "ingest_fetched", interrupt)
        assert online.query("--online", "--yes", QUESTION).code == 130
    assert offers.paths().count("/files/otters") == 1
    assert online.query("--online", "--resume", "--json").objects[0]["refused"] is False
    assert offers.paths().count("/files/otters") == 1


def test_half_a_pdf_is_none(online: CliRunner, offers: SourceServer) -> None:
    offers.add("/files/otters", Answer(b"%PDF-1.7\n" + b"x" * 2000, length=9999))
    ran = online.query("--online", "--yes", QUESTION)
    assert ran.code == 1
    assert "None of the papers could be downloaded." in ran.err
    assert {path.name for path in online.papers.iterdir()} == {"glaciers.pdf"}


def test_nothing_is_kept_where_nothing_is_logged(
    online: CliRunner, offers: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "replace", interrupt)
    assert online.query("--online", "--yes", "--no-log", QUESTION).code == 130
    assert not online_run.record_path(online.store).exists()
    ran = online.query("--online", "--resume")
    assert (ran.code, "There is no search for papers to resume." in ran.err) == (2, True)


@pytest.mark.parametrize(
    "content", ["", "{}", '{"version": 9}', '{"version": 1, "run": {"question": "x"}}', "[" * 9999]
)
def test_a_damaged_record_is_an_error_of_two_lines(online: CliRunner, offers: SourceServer, content: str) -> None:
    online_run.record_path(online.store).write_text(content)
    ran = online.query("--online", "--resume")
    assert (ran.code, len(ran.err.splitlines())) == (1, 2)
    assert offers.asked == []


@pytest.mark.parametrize(
    "arguments", ["--yes x", "--online", "--online --batch x", "--online --sources x", "--online --yes --papers x"]
)
def test_options_that_do_not_go_together(online: CliRunner, server: SourceServer, arguments: str) -> None:
    ran = online.query(*arguments.split())
    assert (ran.code, len(ran.err.splitlines()), server.asked) == (2, 2, [])


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    from folio.deep.checkpoint import SearchOptions
    from folio.papers.work import Work, WorkAuthor

    view: dict[str, Any] = {"title": "Å x", "pdfs": ("https://a/b",), "year": 2021}
    work = Work("europepmc", authors=(WorkAuthor("Byte", "Ada"),), references=("W1",), pmid="7", **view)
    run = online_run.OnlineRun(
        "Why?", True, SearchOptions("report", 5, (("a",), ())), ("x", "y"), (online_run.FoundWork((work,), "S."),), (0,)
    )
    path = tmp_path / "run.json"
    online_run.save(path, run)
    read = online_run.read(path)
    assert json.loads(path.read_text())["version"] == 1
    assert read.found is not None
    (found,) = read.found
    assert (found.views[0].title, found.views[0].pmid, found.views[0].references) == (view["title"], "7", ())
    assert (read.searches, read.chosen, read.options) == (run.searches, run.chosen, run.options)
    assert path.stat().st_mode & 0o077 == 0
