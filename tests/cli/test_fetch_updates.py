"""`folio fetch --updates` and newer versions, over a server on the loopback that speaks the services' formats."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from folio.cli import ingest as ingest_command
from folio.cli import papers as papers_command
from folio.papers.metadata import Field, Metadata
from folio.services import updates
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.desk_library import describe, opened, papers_of
from tests.helpers.factories import GLACIERS, OTTERS, small_papers, write_pdf
from tests.helpers.scripted_answerer import every_outcome, script_answers
from tests.helpers.source_records import (
    arxiv_entry,
    arxiv_feed,
    crossref_list,
    crossref_update,
    crossref_work,
    openalex_list,
    openalex_work,
    with_updates,
)
from tests.helpers.source_server import Answer, SourceServer, json_answer

DOI = "10.1234/otters"
NOTICE = "10.1234/retracted"
QUESTION = "How many hairs does the fur of a sea otter have?"
FILE = "2101.00001 Glaciers of the Alps.pdf"
NEW_TEXT = ("The Aletsch glacier has a length of 22.6 kilometres and covers 79 square kilometres.", *GLACIERS[1:])


@pytest.fixture
def otters(online: CliRunner) -> CliRunner:
    """Two papers in the index; one has a DOI, nothing can be asked about the other."""
    small_papers(online.papers)
    assert online.ingest().code == 0
    describe(online, "otters.pdf", doi=DOI, title="On Sea Otters")
    return online


def notices(desk: CliRunner, file: str = "otters.pdf") -> list[str]:
    return [notice.text for notice in papers_of(desk)[file].notices]


def forget_answers(desk: CliRunner) -> None:
    """As if a day had passed."""
    shutil.rmtree(desk.folder / "cache")


def offer_notices(server: SourceServer, *updated_by: dict[str, Any], title: str = "On Sea Otters") -> None:
    """Crossref has the work of the DOI, with these notices in its record and none of their own."""
    record = with_updates(crossref_work(DOI, title, ("Cy", "Otter")), "updated-by", *updated_by)
    server.add("/crossref/works", json_answer(crossref_list(record)), parameters={"filter": f"doi:{DOI}"})
    server.add("/crossref/works", json_answer(crossref_list()), parameters={"filter": f"updates:{DOI}"})
    server.add("/openalex/works", json_answer(openalex_list()))


def run_papers(desk: CliRunner, *arguments: str) -> CliResult:
    return desk._here(papers_command, arguments)


# Notices


def test_a_retraction_is_stored_and_flagged_on_every_citation(otters: CliRunner, server: SourceServer) -> None:
    offer_notices(
        server,
        crossref_update("10.1234/erratum", "erratum", 2019, 5),
        crossref_update(NOTICE, "retraction", 2021, 3, 4),
    )
    dry = otters.fetch("--updates", "--dry-run")
    assert dry.code == 0
    table = [line.split() for line in dry.out.splitlines()]
    assert table[:3] == [
        ["paper", "new", "date"],
        ["otters.pdf", "RETRACTED", f"(doi:{NOTICE})", "2021-03-04"],
        ["otters.pdf", "Corrected", "(doi:10.1234/erratum)", "2019-05"],
    ]
    assert "Papers: 2, new notices: 2, newer versions: 0. Without DOI and arXiv id" in dry.out
    assert notices(otters) == []
    asked = len(server.asked)
    assert otters.fetch("--updates").code == 0
    assert len(server.asked) == asked
    said = f"RETRACTED 2021-03-04 (doi:{NOTICE})"
    assert notices(otters) == [said, "Corrected 2019-05 (doi:10.1234/erratum)"]
    again = otters.fetch("--updates")
    assert again.out.splitlines()[0].startswith("Papers: 2, new notices: 0, newer versions: 0.")
    answered = otters.query(QUESTION)
    lines = answered.out.splitlines()
    assert lines[0] == f"Warning: this answer cites “On Sea Otters”: {said}."
    assert any(", RETRACTED, p. 1]" in line for line in lines[1:])
    assert f"   {said}" in lines
    (found,) = otters.query("--json", QUESTION).objects
    assert {cited["notice"]["text"] for cited in found["citations"]} == {said}
    assert len(found["warnings"]) == 1
    assert said in otters.query("--sources", QUESTION).out
    assert "RETRACTED 2021-03-04 · On Sea Otters" in " ".join(run_papers(otters, "list").out.split())
    assert said in run_papers(otters, "show", "otters").out
    assert f"note = {{Retracted: 2021-03-04, doi:{NOTICE}}}" in run_papers(otters, "export").out
    assert otters.ingest("--verify").code == 0
    assert otters.ingest("--rebuild").code == 0
    assert notices(otters) == [said, "Corrected 2019-05 (doi:10.1234/erratum)"]


def test_a_notice_in_a_record_of_its_own_counts(otters: CliRunner, server: SourceServer) -> None:
    offer_notices(server)
    about = [
        crossref_update(DOI.upper(), "Expression of Concern", 2020, 1, 2),
        crossref_update("10.1/other", "removal"),
    ]
    record = with_updates(crossref_work(NOTICE, "Expression of concern", ("Ed", "Itor")), "update-to", *about)
    server.add("/crossref/works", json_answer(crossref_list(record)), parameters={"filter": f"updates:{DOI}"})
    assert otters.fetch("--updates", "otters").code == 0
    assert notices(otters) == [f"EXPRESSION OF CONCERN 2020-01-02 (doi:{NOTICE})"]
    assert ", CONCERN, p. 1]" in otters.query(QUESTION).out


def test_what_openalex_knows_alone_is_a_retraction_too(otters: CliRunner, server: SourceServer) -> None:
    offer_notices(server)
    retracted = openalex_work(7, "On Sea Otters", doi=DOI, is_retracted=True)
    server.add("/openalex/works", json_answer(openalex_list(retracted)), parameters={"filter": f"doi:{DOI}"})
    assert otters.fetch("--updates").code == 0
    assert notices(otters) == ["RETRACTED (says OpenAlex)"]


def test_a_withdrawn_notice_goes_and_one_unconfirmed_stays(otters: CliRunner, server: SourceServer) -> None:
    offer_notices(server, crossref_update(NOTICE, "retraction", 2021, 3, 4))
    assert otters.fetch("--updates").code == 0
    kept = notices(otters)
    assert len(kept) == 1
    forget_answers(otters)
    server.add("/crossref/works", Answer(status=403))
    failed = otters.fetch("--updates")
    assert (failed.code, "Crossref answers 403" in failed.err) == (1, True)
    assert notices(otters) == kept
    forget_answers(otters)
    offer_notices(server)
    assert otters.fetch("--updates").code == 0
    assert notices(otters) == []


def test_a_doi_of_another_work_brings_no_notice(otters: CliRunner, server: SourceServer) -> None:
    offer_notices(server, crossref_update(NOTICE, "retraction", 2021, 3, 4), title="The Wholly Different Study of X")
    ran = otters.fetch("--updates")
    assert 'otters.pdf: its DOI is that of another work, "The Wholly Different Study of X".' in " ".join(
        ran.err.split()
    )
    assert notices(otters) == []
    assert papers_of(otters)["otters.pdf"].flag is None


def test_crossref_is_asked_one_by_one_after_a_refusal(otters: CliRunner, server: SourceServer) -> None:
    offer_notices(server)
    server.add("/crossref/works", Answer(b"bad", 400), parameters={"filter": f"doi:{DOI}"})
    record = with_updates(
        crossref_work(DOI, "On Sea Otters"), "updated-by", crossref_update(NOTICE, "withdrawal", 2022)
    )
    server.add(f"/crossref/works/{DOI}", json_answer({"status": "ok", "message": record}))
    assert otters.fetch("--updates").code == 0
    assert notices(otters) == [f"WITHDRAWN 2022 (doi:{NOTICE})"]


def test_a_models_answer_is_flagged_too(
    otters: CliRunner, server: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    title = "The Aletsch Glacier"
    describe(otters, "alps/glaciers.pdf", doi="10.1234/ice", title=title)
    record = crossref_work("10.1234/ice", "The Aletsch Glacier", ("Ada", "Ice"))
    record = with_updates(record, "updated-by", crossref_update(NOTICE, "retraction", 2021, 3, 4))
    server.add("/crossref/works", json_answer(crossref_list(record)))
    server.add("/openalex/works", json_answer(openalex_list()))
    assert otters.fetch("--updates", "glaciers").code == 0
    script_answers(monkeypatch, every_outcome)
    lines = otters.query("How long is the Aletsch glacier?").out.splitlines()
    warned = f"Warning: this answer cites “The Aletsch Glacier”: RETRACTED 2021-03-04 (doi:{NOTICE})."
    assert lines[0] == warned
    assert lines.count(warned) == 1
    assert "[“The Aletsch Glacier”, RETRACTED, p. 2]" in next(line for line in lines if line.startswith("≈ Its"))
    (found,) = otters.query("--json", "How long is the Aletsch glacier?").objects
    marks = {cited["notice"]["mark"] for said in found["sentences"] for cited in said["citations"]}
    assert marks == {"RETRACTED"}


def test_updates_of_an_unknown_paper_are_refused(otters: CliRunner, server: SourceServer) -> None:
    assert otters.fetch("--updates", "walruses").code != 0
    assert server.asked == []


# Versions


def entry(version: int, comment: str = "") -> str:
    number, updated = f"2101.00001v{version}", f"2024-01-0{version}"
    return arxiv_entry(number, "Glaciers of the Alps", "Ada Ice", "Bo Snow", updated=updated, comment=comment)


def offer_version(server: SourceServer, folder: Path, version: int, *pages: str, asked: str = "2101.00001") -> None:
    """arXiv has this version of the paper, as the newest."""
    server.add("/arxiv/query", Answer(arxiv_feed(entry(version))), parameters={"id_list": asked})
    content = write_pdf(folder / "made" / f"v{version}.pdf", pages).read_bytes()
    server.add(f"/pdf/2101.00001v{version}", Answer(content))


@pytest.fixture
def first(online: CliRunner, server: SourceServer) -> CliRunner:
    """The first version of a paper in the index, fetched, and edited since; arXiv has the second by now."""
    offer_version(server, online.folder, 1, *GLACIERS)
    assert online.fetch("--yes", "2101.00001").code == 0
    with opened(online) as library:
        (paper,) = library.papers()
        library.set_metadata(paper.id, "person", Metadata(year=Field(1999, "person", True)))
    forget_answers(online)
    offer_version(server, online.folder, 2, *NEW_TEXT)
    server.add("/openalex/works", json_answer(openalex_list()))
    return online


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def versions_of(desk: CliRunner) -> list[str]:
    """The arXiv ids of the papers in the index."""
    return sorted(paper.arxiv for paper in papers_of(desk).values())


def test_a_newer_version_replaces_the_old_one(first: CliRunner, server: SourceServer) -> None:
    before = contents(first.papers)
    dry = first.fetch("--updates", "--dry-run")
    assert dry.out.splitlines()[1].split() == [*FILE.split(), *"version 2, here: version 1 2024-01-02".split()]
    asked_nobody = first.fetch("--updates")
    assert (asked_nobody.code, "Add --yes." in asked_nobody.err) == (0, True)
    assert contents(first.papers) == before
    assert notices(first, FILE) == ["Newer version 2101.00001v2 of 2024-01-02"]
    assert papers_of(first)[FILE].flag is None
    ran = first.fetch("--updates", "--yes")
    assert ran.code == 0
    kept = ".removed/2101.00001 Glaciers of the Alps v1.pdf"
    assert f"{FILE}: version 2 replaces version 1. The old file is kept: {kept}." in " ".join(ran.out.split())
    assert contents(first.papers) == {FILE: (first.folder / "made" / "v2.pdf").read_bytes(), kept: before[FILE]}
    (paper,) = papers_of(first).values()
    assert (paper.arxiv, paper.year, paper.title) == ("2101.00001v2", 1999, "Glaciers of the Alps")
    assert paper.notices == ()
    assert "22.6 kilometres" in first.query("How long is the Aletsch glacier?").out
    assert first.ingest("--verify").code == 0
    assert "newer versions: 0." in first.fetch("--updates").out


def test_both_versions_are_kept_and_told_apart(first: CliRunner, server: SourceServer) -> None:
    ran = first.fetch("--updates", "--yes", "--keep-versions")
    assert ran.code == 0
    assert "is in the index beside" in ran.out
    found = papers_of(first)
    assert sorted(found) == [FILE, "2101.00001v2 Glaciers of the Alps.pdf"]
    assert [paper.label for paper in found.values()] == ["Ice & Snow 1999 v1", "Ice & Snow 2021 v2"]
    assert [paper.key for paper in found.values()] == ["arXiv:2101.00001v1", "arXiv:2101.00001v2"]
    with opened(first) as library:
        assert library.papers_by_id([paper.id for paper in found.values()]) == list(found.values())
    assert "newer versions: 0." in first.fetch("--updates").out
    assert not (first.papers / ".removed").exists()
    only = first.query("--paper", "2101.00001v2", "How long is the Aletsch glacier?").out
    assert "[Ice & Snow 2021 v2, p. 1]" in only


def test_the_newest_of_several_versions_is_replaced(first: CliRunner, server: SourceServer) -> None:
    assert first.fetch("--updates", "--yes", "--keep-versions").code == 0
    copy = write_pdf(first.papers / "copy.pdf", [*GLACIERS, "A copy with another page."])
    assert first.ingest().code == 0
    describe(first, copy.name, arxiv="2101.00001v2")
    forget_answers(first)
    offer_version(server, first.folder, 3, "The Aletsch glacier has a length of 22 kilometres.", *GLACIERS[1:])
    assert first.fetch("--updates", "--yes").code == 0
    assert versions_of(first) == [f"2101.00001v{number}" for number in (1, 2, 3)]
    assert papers_of(first)[FILE].arxiv == "2101.00001v1"
    assert "newer versions: 0." in first.fetch("--updates").out


def test_an_identifier_brings_a_newer_version_never_an_older(first: CliRunner, server: SourceServer) -> None:
    dry = first.fetch("--dry-run", "2101.00001")
    assert f"{FILE}: version 2, here: version 1." in " ".join(dry.err.split())
    assert versions_of(first) == ["2101.00001v1"]
    assert first.fetch("--yes", "2101.00001").code == 0
    assert versions_of(first) == ["2101.00001v2"]
    server.add("/arxiv/query", Answer(arxiv_feed(entry(1))), parameters={"id_list": "2101.00001v1"})
    older = first.fetch("--yes", "2101.00001v1")
    assert (older.code, "All of them are in the index." in older.out) == (0, True)
    assert versions_of(first) == ["2101.00001v2"]
    assert first.fetch("--yes", "--keep-versions", "2101.00001v1").code == 0
    assert versions_of(first) == ["2101.00001v1", "2101.00001v2"]


def test_a_withdrawn_paper_is_flagged_and_not_replaced(first: CliRunner, server: SourceServer) -> None:
    gone = entry(2, comment="This paper has been withdrawn by the authors due to an error in Lemma 2")
    server.add("/arxiv/query", Answer(arxiv_feed(gone)), parameters={"id_list": "2101.00001"})
    assert first.fetch("--updates", "--yes").code == 0
    assert notices(first, FILE) == ["WITHDRAWN 2024-01-02 (arXiv:2101.00001v2)"]
    assert versions_of(first) == ["2101.00001v1"]
    assert "WITHDRAWN, p. 1]" in first.query("How long is the Aletsch glacier?").out


def test_a_file_outside_the_folder_of_papers_stays_its_owners(first: CliRunner, server: SourceServer) -> None:
    mine = first.folder / "mine" / "alps.pdf"
    mine.parent.mkdir()
    shutil.move(first.papers / FILE, mine)
    assert first.ingest(str(mine)).code == 0
    before = mine.read_bytes()
    ran = first.fetch("--updates", "--yes")
    assert ran.code == 0
    assert "alps.pdf is not in the papers' folder" in " ".join(ran.out.split())
    assert mine.read_bytes() == before
    assert sorted(papers_of(first)) == ["2101.00001v2 Glaciers of the Alps.pdf", "alps.pdf"]


def test_a_version_that_cannot_be_read_changes_nothing(first: CliRunner, server: SourceServer) -> None:
    server.add("/pdf/2101.00001v2", Answer(b"%PDF-1.7\nnothing that can be read\n%%EOF\n"))
    before, known = contents(first.papers), papers_of(first)
    ran = first.fetch("--updates", "--yes")
    assert (ran.code, "version 2 could not be read. Version 1 stays." in ran.err) == (1, True)
    assert contents(first.papers) == before
    assert {file: paper.id for file, paper in papers_of(first).items()} == {file: p.id for file, p in known.items()}
    assert first.ingest().code == 0
    server.add("/pdf/2101.00001v2", Answer(b"<!doctype html><title>Are you a robot?</title>"))
    assert first.fetch("--updates", "--yes").code == 1
    assert contents(first.papers) == before


def test_a_file_in_the_new_versions_place_stays(first: CliRunner, server: SourceServer) -> None:
    mine = write_pdf(first.papers / "2101.00001v2 Glaciers of the Alps.pdf", OTTERS)
    before = contents(first.papers)
    ran = first.fetch("--updates", "--yes", "--keep-versions")
    assert (ran.code, f"There is another file {mine.name} already." in " ".join(ran.err.split())) == (1, True)
    assert {name: data for name, data in contents(first.papers).items() if not name.startswith(".")} == before


def test_a_file_that_its_owner_has_changed_is_not_replaced(first: CliRunner, server: SourceServer) -> None:
    write_pdf(first.papers / FILE, OTTERS)
    before = contents(first.papers)
    ran = first.fetch("--updates", "--yes")
    assert (ran.code, "has changed since it was read." in ran.err) == (1, True)
    assert {name: data for name, data in contents(first.papers).items() if not name.startswith(".")} == before


def interrupted(*_: object) -> int:
    raise KeyboardInterrupt


def test_ctrl_c_leaves_one_version_whole(
    first: CliRunner, server: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(first.papers)
    with monkeypatch.context() as patch:
        patch.setattr(updates, "download_pdf", interrupted)
        ran = first.fetch("--updates", "--yes")
    assert (ran.code, "Nothing was replaced." in ran.err) == (130, True)
    assert contents(first.papers) == before
    with monkeypatch.context() as patch:  # the new file has its place, and is not read yet
        patch.setattr(ingest_command, "run", interrupted)
        assert first.fetch("--updates", "--yes").code == 130
    assert versions_of(first) == ["2101.00001v1"]
    assert "23 kilometres" in first.query("How long is the Aletsch glacier?").out
    assert first.ingest().code == 0
    (paper,) = papers_of(first).values()
    assert (paper.arxiv, paper.year) == ("2101.00001v2", 1999)
    assert before[FILE] in contents(first.papers / ".removed").values()


@pytest.mark.parametrize("step", [1, 2])
def test_a_stop_at_any_step_leaves_the_file_whole(
    first: CliRunner, server: SourceServer, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    before = contents(first.papers)[FILE]
    replaced = 0

    def stop(source: Path, target: Path) -> None:
        nonlocal replaced
        replaced += Path(target).is_relative_to(first.papers)  # others are of the cache
        if replaced == step:
            raise KeyboardInterrupt
        os.rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        patch.setattr(updates, "download_pdf", as_downloaded(first.folder / "made" / "v2.pdf"))
        assert first.fetch("--updates", "--yes").code == 130
    assert replaced == step
    assert contents(first.papers)[FILE] == before
    assert first.ingest().code == 0
    assert versions_of(first) == ["2101.00001v1"]
    assert first.fetch("--updates", "--yes").code == 0
    assert versions_of(first) == ["2101.00001v2"]
    assert sorted(contents(first.papers)) == [".removed/2101.00001 Glaciers of the Alps v1.pdf", FILE]


def test_a_run_killed_before_reading_the_file_continues(
    first: CliRunner, server: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(first.papers)[FILE]
    with monkeypatch.context() as patch:
        patch.setattr(ingest_command, "run", interrupted)
        assert first.fetch("--updates", "--yes").code == 130
    assert contents(first.papers)[FILE] != before
    ran = first.fetch("--updates", "--yes")
    assert (ran.code, "missing or has changed" in ran.err) == (0, False)
    assert versions_of(first) == ["2101.00001v2"]
    assert sorted(contents(first.papers)) == [".removed/2101.00001 Glaciers of the Alps v1.pdf", FILE]
    assert contents(first.papers)[".removed/2101.00001 Glaciers of the Alps v1.pdf"] == before


def as_downloaded(content: Path) -> Callable[..., bool]:
    """A download of this file."""

    def put(client: object, links: object, path: Path, *_: object) -> bool:
        path.parent.mkdir(exist_ok=True)
        shutil.copyfile(content, path)
        return True

    return put


def test_metadata_of_the_newest_version_keeps_the_version_here(first: CliRunner, server: SourceServer) -> None:
    server.add("/crossref/works", json_answer(crossref_list()))
    assert first.fetch("--metadata").code == 0
    assert versions_of(first) == ["2101.00001v1"]
