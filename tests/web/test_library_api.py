"""What people do with papers through the API: tags and edits of many, where they were read, removal and return."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.papers.metadata import Field, Metadata
from folio.papers.model import SourceFile
from folio.system import workers
from tests.helpers.factories import write_pdf
from tests.helpers.fakes import HashingApp, RecordedProgress, read_here
from tests.helpers.web_client import NOBODY, json_of, papers_by_file, refusal, small_app


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    return small_app(tmp_path)


@pytest.fixture
def ids(client: TestClient) -> dict[str, str]:
    """File -> paper id."""
    return {file: str(paper["id"]) for file, paper in papers_by_file(client).items()}


def edit_many(client: TestClient, papers: list[str], **changes: Any) -> int:
    return int(json_of(client.post("/papers/edits", json={"papers": papers, **changes}))["changed"])


def tags(client: TestClient) -> dict[str, list[str]]:
    return {file: paper["tags"] for file, paper in papers_by_file(client).items()}


# Tags and edits of several papers


def test_tags_are_added_to_and_removed_from_several_papers(client: TestClient, ids: dict[str, str]) -> None:
    papers = list(ids.values())
    assert edit_many(client, papers, add_tags=["To read", "ice"]) == 2
    assert edit_many(client, papers[:1], add_tags=["TO READ"]) == 0  # it has this tag
    assert edit_many(client, [ids["otters.pdf"]], add_tags=["kelp"], remove_tags=["ICE"]) == 1
    assert tags(client) == {"otters.pdf": ["To read", "kelp"], "alps/glaciers.pdf": ["To read", "ice"]}
    assert list(papers_by_file(client, tag="kelp")) == ["otters.pdf"]
    assert edit_many(client, papers, remove_tags=["kelp", "ice", "to read"]) == 2
    assert client.get(f"/papers/{ids['otters.pdf']}").json()["fields"]["tags"]["origin"] == ""  # nobody's any more


def test_tags_are_laid_over_imported_ones(client: TestClient, app: HashingApp, ids: dict[str, str]) -> None:
    otters = ids["otters.pdf"]
    with closing(app.open_library()) as library:
        library.set_metadata(otters, "zotero", Metadata(tags=Field(("sea", "old"), "zotero", True)))
    assert edit_many(client, [otters], add_tags=["new"], remove_tags=["old"]) == 1
    assert tags(client)["otters.pdf"] == ["sea", "new"]
    with closing(app.open_library()) as library:
        library.set_metadata(otters, "zotero", Metadata(tags=Field(("other",), "zotero", True)))
    assert tags(client)["otters.pdf"] == ["sea", "new"]
    assert json_of(client.patch(f"/papers/{otters}", json={"tags": None}))["tags"] == ["other"]


def test_fields_of_several_papers_are_edited_together(client: TestClient, ids: dict[str, str]) -> None:
    papers = list(ids.values())
    assert edit_many(client, papers, edits={"venue": "Tides", "year": 2014}, add_tags=["a"]) == 2
    assert {(paper["venue"], paper["year"]) for paper in papers_by_file(client).values()} == {("Tides", 2014)}
    assert edit_many(client, papers, edits={"title": "Zanzibar"}) == 2
    hits = client.post("/search", json={"query": "Zanzibar"}).json()["hits"]
    assert {hit["title"] for hit in hits} == {"Zanzibar"}
    assert edit_many(client, papers, edits={"title": "Zanzibar"}) == 0


def test_after_an_error_no_paper_is_edited(client: TestClient, app: HashingApp, ids: dict[str, str]) -> None:
    papers = list(ids.values())
    request: dict[str, Any] = {"papers": [*papers, NOBODY], "add_tags": ["a"]}
    assert refusal(client.post("/papers/edits", json=request), 404) == "This paper is not in the index."
    request = {"papers": papers, "add_tags": ["a"], "edits": {"kind": "poem"}}
    assert refusal(client.post("/papers/edits", json=request), 400).startswith("“poem” is not a kind")
    edit_many(client, papers[1:], add_tags=[f"tag {number}" for number in range(100)])
    assert refusal(client.post("/papers/edits", json={"papers": papers, "add_tags": ["a"]}), 400)
    assert sorted(map(len, tags(client).values())) == [0, 100]
    assert refusal(client.post("/papers/edits", json={"papers": []}), 422)
    assert refusal(client.post("/papers/edits", json={"papers": papers, "add_tags": ["a\u202eb"]}), 400)


# Reading


def test_where_a_paper_was_read_is_listed(client: TestClient, app: HashingApp, ids: dict[str, str]) -> None:
    otters = ids["otters.pdf"]
    assert {(paper["read"], paper["read_page"]) for paper in papers_by_file(client).values()} == {("", 0)}
    tag = client.get("/papers").headers["ETag"]
    assert client.put(f"/papers/{otters}/reading", json={"page": 2}).status_code == 204
    response = client.get("/papers", headers={"If-None-Match": tag})
    assert response.status_code == 200
    paper = papers_by_file(client)["otters.pdf"]
    assert paper["read_page"] == 2
    assert datetime.now(UTC) - datetime.fromisoformat(paper["read"]) < timedelta(minutes=1)
    assert papers_by_file(client, query="otters")["otters.pdf"]["read_page"] == 2  # also where papers are ranked
    client.put(f"/papers/{otters}/reading", json={"page": 1})
    assert papers_by_file(client)["otters.pdf"]["read_page"] == 1
    assert app.verify() == []


def test_only_pages_of_a_paper_are_read(client: TestClient, ids: dict[str, str]) -> None:
    otters = ids["otters.pdf"]
    assert refusal(client.put(f"/papers/{otters}/reading", json={"page": 3}), 404) == "The paper has no page 3."
    assert refusal(client.put(f"/papers/{otters}/reading", json={"page": 0}), 422)
    assert refusal(client.put(f"/papers/{NOBODY}/reading", json={"page": 1}), 404)


def test_what_was_read_outlives_a_rebuild_and_removal(client: TestClient, app: HashingApp, ids: dict[str, str]) -> None:
    client.put(f"/papers/{ids['otters.pdf']}/reading", json={"page": 2})
    app.run(rebuild=True)
    assert papers_by_file(client)["otters.pdf"]["read_page"] == 2


# Removal


def restored(client: TestClient, *papers: str) -> list[dict[str, Any]]:
    """Brings removed papers back; returns them as they are listed."""
    reply = json_of(client.post("/removed/restore", json={"papers": papers}))
    assert reply["failed"] == []
    listed: list[dict[str, Any]] = reply["restored"]
    return listed


def test_a_removed_paper_comes_back_with_its_edits(client: TestClient, app: HashingApp, ids: dict[str, str]) -> None:
    glaciers, place = ids["alps/glaciers.pdf"], app.settings.PAPERS_DIR / "alps" / "glaciers.pdf"
    before = papers_by_file(client)["alps/glaciers.pdf"]
    assert client.get("/removed").json() == {"papers": []}
    edit_many(client, [glaciers], add_tags=["ice"])
    client.put(f"/papers/{glaciers}/reading", json={"page": 1})
    client.delete(f"/papers/{glaciers}")
    assert not place.exists()
    (removed,) = client.get("/removed").json()["papers"]
    assert removed.items() >= {"paper": glaciers, "title": before["title"], "file": "alps/glaciers.pdf"}.items()
    (back,) = restored(client, glaciers)
    assert back.items() >= {"id": glaciers, "file": "alps/glaciers.pdf", "tags": ["ice"], "read_page": 1}.items()
    assert place.exists()
    assert list((app.settings.PAPERS_DIR / ".removed").iterdir()) == []
    assert client.get("/removed").json() == {"papers": []}
    assert client.post("/search", json={"query": "glaciers"}).json()["hits"]
    assert [paper["id"] for paper in restored(client, glaciers)] == [glaciers]  # as another tab may ask
    assert app.verify() == []


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Gets an entry for each update of the indexes."""
    made: list[object] = []
    finish = HashingApp.finish_ingest

    def count(self: HashingApp) -> None:
        made.append(self)
        finish(self)

    monkeypatch.setattr(HashingApp, "finish_ingest", count)
    return made


def test_several_papers_come_back_with_one_update_of_the_indexes(
    client: TestClient, app: HashingApp, ids: dict[str, str], updates: list[object]
) -> None:
    both = [ids["otters.pdf"], ids["alps/glaciers.pdf"]]
    client.post("/removed", json={"papers": both})
    updates.clear()
    assert refusal(client.post("/removed/restore", json={"papers": [*both, "0" * 64]}), 404)
    assert {paper["id"] for paper in restored(client, *both, both[0])} == set(both)
    assert len(updates) == 1
    assert papers_by_file(client).keys() == ids.keys()
    assert client.get("/removed").json() == {"papers": []}
    assert app.verify() == []


def test_of_several_papers_those_whose_files_are_there_come_back(
    client: TestClient, app: HashingApp, ids: dict[str, str]
) -> None:
    both = [ids["otters.pdf"], ids["alps/glaciers.pdf"]]
    client.post("/removed", json={"papers": both})
    (app.settings.PAPERS_DIR / ".removed" / "otters.pdf").unlink()
    reply = json_of(client.post("/removed/restore", json={"papers": both}))
    assert [paper["file"] for paper in reply["restored"]] == ["alps/glaciers.pdf"]
    assert [failure["file"] for failure in reply["failed"]] == ["otters.pdf"]
    assert [each["file"] for each in client.get("/removed").json()["papers"]] == ["otters.pdf"]


def test_a_paper_that_cannot_be_put_back_costs_no_other(
    client: TestClient, app: HashingApp, ids: dict[str, str]
) -> None:
    client.post("/removed", json={"papers": [ids["alps/glaciers.pdf"], ids["otters.pdf"]]})
    (app.settings.PAPERS_DIR / "alps").rmdir()
    (app.settings.PAPERS_DIR / "alps").write_bytes(b"a file")
    both = {"papers": [ids["alps/glaciers.pdf"], ids["otters.pdf"]]}
    reply = json_of(client.post("/removed/restore", json=both))
    assert [paper["file"] for paper in reply["restored"]] == ["otters.pdf"]
    (failure,) = reply["failed"]
    assert failure["error"].startswith("The file alps/glaciers.pdf could not be moved back to its folder (")
    (app.settings.PAPERS_DIR / "alps").unlink()
    assert {paper["file"] for paper in restored(client, *both["papers"])} == {"otters.pdf", "alps/glaciers.pdf"}


def test_a_paper_comes_back_although_its_removal_has_not_ended(
    client: TestClient, app: HashingApp, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, begun = type(app).finish_ingest, Event()

    def slow(app: HashingApp, **options: bool) -> None:
        if not begun.is_set():
            begun.set()
            sleep(2.5)  # as on a slow computer; other changes of the library wait for 2 s
        finish(app, **options)

    monkeypatch.setattr(type(app), "finish_ingest", slow)
    with ThreadPoolExecutor() as threads:
        removing = threads.submit(client.delete, f"/papers/{ids['otters.pdf']}")
        assert begun.wait(30)
        assert [paper["file"] for paper in restored(client, ids["otters.pdf"])] == ["otters.pdf"]
        assert removing.result().status_code == 200


def test_a_restore_that_was_killed_is_taken_up(client: TestClient, app: HashingApp, ids: dict[str, str]) -> None:
    client.delete(f"/papers/{ids['otters.pdf']}")
    (app.settings.PAPERS_DIR / ".removed" / "otters.pdf").rename(app.settings.PAPERS_DIR / "otters.pdf")
    assert [paper["file"] for paper in restored(client, ids["otters.pdf"])] == ["otters.pdf"]
    assert client.get("/removed").json() == {"papers": []}


def test_a_removal_is_offered_until_its_own_paper_is_back(
    client: TestClient, app: HashingApp, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, kept = app.settings.PAPERS_DIR / "otters.pdf", app.settings.PAPERS_DIR / ".removed" / "otters.pdf"
    client.delete(f"/papers/{ids['otters.pdf']}")
    write_pdf(place, ["Other otters live in rivers and eat crayfish, frogs and fish."], "Other Otters")
    other = sha256(place.read_bytes()).hexdigest()
    list(app.ingest([SourceFile(str(place), "otters.pdf", other)], RecordedProgress(), retry=frozenset()))
    app.finish_ingest()
    place.unlink()

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(workers, "run_guarded", fail)
    assert client.post("/removed/restore", json={"papers": [ids["otters.pdf"]]}).status_code >= 400
    assert kept.exists()
    assert [each["paper"] for each in client.get("/removed").json()["papers"]] == [ids["otters.pdf"]]


def test_several_papers_are_removed_with_one_update_of_the_indexes(
    client: TestClient, app: HashingApp, ids: dict[str, str], updates: list[object]
) -> None:
    both = [ids["otters.pdf"], ids["alps/glaciers.pdf"]]
    assert refusal(client.post("/removed", json={"papers": [*both, "0" * 64]}), 404)
    assert set(papers_by_file(client)) == set(ids)
    reply = json_of(client.post("/removed", json={"papers": [*both, both[0]]}))
    assert [each["file"] for each in reply["removed"]] == ["otters.pdf", "alps/glaciers.pdf"]
    assert len(updates) == 1
    assert {each["paper"] for each in client.get("/removed").json()["papers"]} == set(both)
    assert not set(papers_by_file(client)) & {"otters.pdf", "alps/glaciers.pdf"}
    assert app.verify() == []


def test_a_paper_comes_back_if_the_indexes_could_not_be_updated(
    client: TestClient, app: HashingApp, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(HashingApp, "finish_ingest", fail)
        assert client.delete(f"/papers/{ids['otters.pdf']}").status_code >= 400
    assert [each["paper"] for each in client.get("/removed").json()["papers"]] == [ids["otters.pdf"]]
    assert [paper["file"] for paper in restored(client, ids["otters.pdf"])] == ["otters.pdf"]


def test_a_restored_file_replaces_no_other(client: TestClient, app: HashingApp, ids: dict[str, str]) -> None:
    otters, place = ids["otters.pdf"], app.settings.PAPERS_DIR / "otters.pdf"
    client.delete(f"/papers/{otters}")
    place.write_bytes(b"another file")
    assert [paper["file"] for paper in restored(client, otters)] == ["otters (2).pdf"]
    assert place.read_bytes() == b"another file"


def test_a_file_outside_the_papers_folder_is_read_where_it_lies(
    client: TestClient, app: HashingApp, ids: dict[str, str], tmp_path: Path
) -> None:
    otters, outside = ids["otters.pdf"], tmp_path / "elsewhere" / "otters.pdf"
    outside.parent.mkdir()
    (app.settings.PAPERS_DIR / "otters.pdf").rename(outside)
    outcomes = app.ingest([SourceFile(str(outside), "otters.pdf", otters)], RecordedProgress(), retry=frozenset())
    assert [outcome.file.path for outcome in outcomes] == [str(outside)]
    app.finish_ingest()
    client.delete(f"/papers/{otters}")
    assert outside.exists()
    assert restored(client, otters)
    with closing(app.open_library()) as library:
        assert str(outside) in [file.path for file in library.files()]


def test_a_removed_paper_whose_file_is_gone_stays_removed(
    client: TestClient, app: HashingApp, ids: dict[str, str]
) -> None:
    otters, kept = ids["otters.pdf"], app.settings.PAPERS_DIR / ".removed" / "otters.pdf"
    client.delete(f"/papers/{otters}")
    kept.write_bytes(b"%PDF- changed")
    for _ in range(2):
        reply = json_of(client.post("/removed/restore", json={"papers": [otters]}))
        assert reply["restored"] == []
        assert [each["error"] for each in reply["failed"]] == ["The file otters.pdf is gone, or has changed."]
        kept.unlink(missing_ok=True)
    assert "otters.pdf" not in papers_by_file(client)


def test_a_paper_that_cannot_be_read_again_stays_removed(
    client: TestClient, app: HashingApp, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    otters, kept = ids["otters.pdf"], app.settings.PAPERS_DIR / ".removed" / "otters.pdf"
    client.delete(f"/papers/{otters}")

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(workers, "run_guarded", fail)
    assert client.post("/removed/restore", json={"papers": [otters]}).status_code >= 400
    assert kept.exists()
    assert not (app.settings.PAPERS_DIR / "otters.pdf").exists()
    monkeypatch.setattr(workers, "run_guarded", read_here)
    assert restored(client, otters)


def test_a_removal_is_offered_for_a_day(client: TestClient, app: HashingApp, ids: dict[str, str]) -> None:
    otters, kept = ids["otters.pdf"], app.settings.PAPERS_DIR / ".removed" / "otters.pdf"
    client.delete(f"/papers/{otters}")
    yesterday = (datetime.now(UTC) - timedelta(hours=25)).isoformat(timespec="seconds")
    with closing(app.open_library()) as library, library.database.transaction("user"):
        library.database.execute("UPDATE removals SET removed = :yesterday", yesterday=yesterday)
    assert client.get("/removed").json() == {"papers": []}
    refused = refusal(client.post("/removed/restore", json={"papers": [otters]}), 404)
    assert refused == "This paper cannot be brought back."
    assert not kept.exists()


def test_files_of_removed_papers_are_deleted_now(client: TestClient, app: HashingApp, ids: dict[str, str]) -> None:
    otters, folder = ids["otters.pdf"], app.settings.PAPERS_DIR / ".removed"
    client.delete(f"/papers/{otters}")
    (folder / "replaced v1.pdf").write_bytes(b"%PDF-1.7 of an earlier version")
    (folder / "a folder.pdf").mkdir()
    emptied = client.post("/removed/empty", json={}).json()
    assert emptied["deleted"] == 2
    (stays,) = emptied["stay"]
    assert stays.startswith(f"{folder / 'a folder.pdf'} stays: it cannot be deleted (")
    assert client.get("/removed").json() == {"papers": []}
    (folder / "a folder.pdf").rmdir()
    assert client.post("/removed/empty", json={}).json() == {"deleted": 0, "stay": []}
    assert not folder.exists()
