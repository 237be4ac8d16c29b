"""Evidence tables over the API: made, filled while somebody looks, edited, stopped, resumed, put back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.papers.model import Paper
from folio.system import workers
from folio.table.cell import Column
from folio.web import filling
from tests.helpers.factories import write_pdf
from tests.helpers.fakes import HashingApp, read_here
from tests.helpers.table_finder import WordFinder
from tests.helpers.web_client import client_of, json_of, papers_by_file, refusal, small_app

KEY = "0123456789abcdef"
KELP = {"name": "Kelp", "question": "kelp", "kind": "text", "unit": "", "choices": []}
LENGTH = {"name": "Length", "question": "length", "kind": "number", "unit": "km"}
Before = Callable[[Paper, Column], None]


class Hooks:
    """What is done before a cell is asked."""

    def __init__(self) -> None:
        self.before: Before = lambda paper, column: None


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """The server asks with a finder that needs no model."""
    hooks = Hooks()
    finder = lambda self, library: WordFinder(library, lambda *cell: hooks.before(*cell))  # noqa: E731
    monkeypatch.setattr(HashingApp, "cell_finder", finder)
    monkeypatch.setattr(filling, "LOOK_S", 0.1)
    return hooks


@pytest.fixture
def client(app: HashingApp, hooks: Hooks) -> Iterator[TestClient]:
    with client_of(app) as opened:
        yield opened


@pytest.fixture
def papers(client: TestClient) -> dict[str, str]:
    return {Path(file).name: paper["id"] for file, paper in papers_by_file(client).items()}


def new_table(client: TestClient, *columns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return json_of(client.post("/tables", json={"columns": columns or [KELP, LENGTH], **more}), 201)


def table(client: TestClient, id: str) -> dict[str, Any]:
    return json_of(client.get(f"/tables/{id}"))


def states(client: TestClient, id: str) -> dict[tuple[str, str], str]:
    """Column and file -> the state of the cell."""
    now = table(client, id)
    columns = {column["id"]: column["name"] for column in now["columns"]}
    files = {row["paper"]: Path(row["file"]).name for row in now["rows"]}
    return {(columns[cell["column"]], files[cell["paper"]]): cell["state"] for cell in now["cells"]}


def cell_of(now: dict[str, Any], column: str, paper: str) -> dict[str, Any]:
    (id,) = [each["id"] for each in now["columns"] if each["name"] == column]
    (cell,) = [each for each in now["cells"] if (each["column"], each["paper"]) == (id, paper)]
    return dict(cell)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def fill(client: TestClient, id: str, **request: Any) -> dict[str, Any]:
    """Fill a table to its end; returns it."""
    json_of(client.post(f"/tables/{id}/fill", json=request), 202)
    until(lambda: not table(client, id)["filling"])
    return table(client, id)


def test_a_table_is_made_filled_and_shown(client: TestClient, papers: dict[str, str]) -> None:
    made = new_table(client)
    assert (made["name"], made["scope"]) == ("all papers: 2", "all papers: 2")
    assert (made["follows"], made["project"]) == (True, "")
    assert (made["waiting"], made["found"], made["filling"], made["problem"]) == (4, 0, False, None)
    assert made["filter"] == {name: [] for name in made["filter"]}
    assert set(states(client, made["id"]).values()) == {"waiting"}
    now = fill(client, made["id"])
    assert states(client, made["id"]) == {
        ("Kelp", "otters.pdf"): "found",
        ("Length", "otters.pdf"): "not_found",
        ("Kelp", "glaciers.pdf"): "not_found",
        ("Length", "glaciers.pdf"): "found",
    }
    assert (now["waiting"], now["found"], now["not_found"], now["failed"]) == (0, 2, 2, 0)
    (finding,) = cell_of(now, "Length", papers["glaciers.pdf"])["findings"]
    page = json_of(client.get(f"/papers/{papers['glaciers.pdf']}/pages/1/text"))
    assert page["text"][finding["start"] : finding["end"]] == finding["quote"]
    assert finding["span"] == [page["start"] + finding["start"], page["start"] + finding["end"]]
    assert (finding["value"], finding["number"], finding["unit"], finding["by_model"]) == ("23", 23, "km", False)
    (row,) = [row for row in now["rows"] if row["file"] == "otters.pdf"]
    assert f"{{{row['key']}," in client.get("/papers.bib").text
    assert (row["title"], row["state"]) == ("On Sea Otters", "here")
    listed = json_of(client.get("/tables"))["tables"]
    assert [(each["id"], each["rows"], each["columns"], each["found"]) for each in listed] == [(made["id"], 2, 2, 2)]


def test_only_what_changed_is_sent_again(client: TestClient, papers: dict[str, str]) -> None:
    made = new_table(client)
    nothing = json_of(client.get(f"/tables/{made['id']}/cells", params={"since": made["changed"]}))
    assert (nothing["cells"], nothing["reload"], nothing["running"]) == ([], False, [])
    now = fill(client, made["id"])
    changed = json_of(client.get(f"/tables/{made['id']}/cells", params={"since": made["changed"]}))
    assert {(cell["column"], cell["paper"]) for cell in changed["cells"]} == {
        (cell["column"], cell["paper"]) for cell in now["cells"]
    }
    assert (changed["found"], changed["not_found"], changed["changed"]) == (2, 2, now["changed"])
    kelp = now["columns"][0]["id"]
    path = f"/tables/{made['id']}/cells/{kelp}/{papers['otters.pdf']}/edit"
    edited = json_of(client.put(path, json={"text": "Mine"}))
    assert (edited["state"], edited["edit"], len(edited["findings"])) == ("edited", "Mine", 1)
    changed = json_of(client.get(f"/tables/{made['id']}/cells", params={"since": now["changed"]}))
    assert (changed["cells"], changed["reload"]) == ([edited], False)
    json_of(client.patch(f"/tables/{made['id']}", json={"name": "Other"}))
    assert json_of(client.get(f"/tables/{made['id']}/cells", params={"since": now["changed"]}))["reload"]


def test_the_cells_that_are_asked_now_are_running_and_can_be_stopped(
    client: TestClient, papers: dict[str, str], hooks: Hooks
) -> None:
    began, goes_on = Event(), Event()

    def before(paper: Paper, column: Column) -> None:
        began.set()
        assert goes_on.wait(20)

    hooks.before = before
    made = new_table(client, fill=True)
    assert made["filling"]
    assert began.wait(20)
    now = json_of(client.get(f"/tables/{made['id']}/cells", params={"since": made["changed"]}))
    assert (now["filling"], len(now["running"])) == (True, 1)
    running = {cell["paper"] for cell in table(client, made["id"])["cells"] if cell["state"] == "running"}
    assert running == set(now["running"])
    assert json_of(client.post(f"/tables/{made['id']}/fill", json={}), 202)["filling"]
    assert client.post(f"/tables/{made['id']}/stop").status_code == 204
    goes_on.set()
    until(lambda: not table(client, made["id"])["filling"])
    after = table(client, made["id"])
    assert after["waiting"] == 3
    assert "running" not in {cell["state"] for cell in after["cells"]}
    time.sleep(0.3)  # nobody resumes what a person stopped
    assert table(client, made["id"])["waiting"] == 3
    assert fill(client, made["id"])["waiting"] == 0


def test_a_restarted_server_goes_on(app: HashingApp, hooks: Hooks) -> None:
    asked: list[tuple[str, str]] = []
    began = Event()

    def before(paper: Paper, column: Column) -> None:
        asked.append((paper.file, column.name))
        if len(asked) == 2:
            began.set()
            time.sleep(0.5)  # while the server is told to stop

    hooks.before = before
    with client_of(app) as client:
        made = new_table(client, fill=True)
        assert began.wait(20)
    assert len(asked) == 2
    with client_of(app) as again:
        until(lambda: table(again, made["id"])["waiting"] == 0)
        assert table(again, made["id"])["problem"] is None
    assert len(asked) <= 5  # the cell that was being asked, twice at most
    assert len(set(asked)) == 4


def test_one_cell_is_asked_again(client: TestClient, papers: dict[str, str], hooks: Hooks) -> None:
    now = fill(client, new_table(client)["id"])
    kelp, otters = now["columns"][0]["id"], papers["otters.pdf"]
    began, goes_on = Event(), Event()

    def before(paper: Paper, column: Column) -> None:
        began.set()
        assert goes_on.wait(20)

    hooks.before = before
    path = f"/tables/{now['id']}/cells/{kelp}/{otters}/ask"
    assert client.post(path).status_code == 202
    assert began.wait(20)
    (cell,) = json_of(client.get(f"/tables/{now['id']}/cells", params={"since": now["changed"]}))["cells"]
    assert (cell["state"], len(cell["findings"])) == ("running", 1)
    goes_on.set()
    until(lambda: cell_of(table(client, now["id"]), "Kelp", otters)["state"] == "found")
    assert cell_of(table(client, now["id"]), "Kelp", otters)["changed"] > now["changed"]
    assert refusal(client.post(path.replace(otters, "0" * 64)), 404) == "This paper is not in the index."
    assert refusal(client.post(path.replace(kelp, "c" * 16)), 404) == "The table has no such column."


def test_failed_cells_say_why_and_are_asked_again_with_the_table(client: TestClient, hooks: Hooks) -> None:
    def before(paper: Paper, column: Column) -> None:
        raise ValueError("a bug")

    hooks.before = before
    now = fill(client, new_table(client)["id"])
    assert now["failed"] == 4
    assert now["cells"][0]["error"]["error"] == "This cell failed with an internal error."
    hooks.before = lambda paper, column: None
    now = fill(client, now["id"])
    assert (now["found"], now["not_found"], now["failed"]) == (2, 2, 0)
    asked: list[str] = []
    hooks.before = lambda paper, column: asked.append(column.name)
    fill(client, now["id"], again=["not_found"])
    assert sorted(asked) == ["Kelp", "Length"]


def test_a_paper_that_is_added_later_gets_its_row_and_is_asked(
    app: HashingApp, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = fill(client, new_table(client)["id"])["id"]
    write_pdf(app.papers_folder / "kelp.pdf", ["Kelp grows half a metre each day in the bay."])
    monkeypatch.setattr(workers, "run_guarded", read_here)
    app.run()
    until(lambda: states(client, id).get(("Kelp", "kelp.pdf")) == "found")
    assert table(client, id)["scope"] == "all papers: 3"


def test_changes_are_undone(client: TestClient, papers: dict[str, str]) -> None:
    before = fill(client, new_table(client)["id"])
    id, kelp, otters = before["id"], before["columns"][0]["id"], papers["otters.pdf"]
    cell = f"/tables/{id}/cells/{kelp}/{otters}/edit"

    def undone(method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The table after a change that is undone again: as it was."""
        reply = client.request(method, path, json=body, params={"undo": KEY})
        assert reply.is_success, reply.text
        changed = client.get(f"/tables/{id}")
        assert client.post(f"/undo/{KEY}").status_code == 204
        back = table(client, id)
        for name in ("name", "columns", "rows", "follows", "project", "found", "not_found", "waiting"):
            assert back[name] == before[name], name
        now, then = ([{**each, "changed": 0} for each in shown["cells"]] for shown in (back, before))
        assert now == then
        return changed.json() if changed.is_success else {}

    assert undone("DELETE", f"/tables/{id}") == {}
    project = json_of(client.post("/projects", json={"name": "Sea"}), 201)["id"]
    changed = undone("PATCH", f"/tables/{id}", {"name": "Other", "project": project, "follows": False})
    assert (changed["name"], changed["project"], changed["follows"]) == ("Other", project, False)
    order = [column["id"] for column in reversed(before["columns"])]
    assert [each["id"] for each in undone("PATCH", f"/tables/{id}", {"columns": order})["columns"]] == order
    assert len(undone("DELETE", f"/tables/{id}/columns/{kelp}")["columns"]) == 1
    assert undone("PATCH", f"/tables/{id}/columns/{kelp}", {"name": "Food"})["waiting"] == 0
    assert len(undone("DELETE", f"/tables/{id}/rows/{otters}")["rows"]) == 1
    assert cell_of(undone("PUT", cell, {"text": "Mine"}), "Kelp", otters)["state"] == "edited"


def test_an_edit_is_a_persons_and_goes_back_to_what_was_found(client: TestClient, papers: dict[str, str]) -> None:
    now = fill(client, new_table(client)["id"])
    length, glaciers = now["columns"][1]["id"], papers["glaciers.pdf"]
    path = f"/tables/{now['id']}/cells/{length}/{glaciers}/edit"
    cell = json_of(client.put(path, json={"text": "24000 m"}))
    assert (cell["edit"], cell["edit_number"]) == ("24000 m", 24.0)
    assert refusal(client.put(path, json={"text": "25 km", "before": ""}), 409).startswith("This cell was changed")
    assert refusal(client.put(path, json={"text": "  "}), 422) == "text: must not be empty."
    assert json_of(client.put(path, json={"text": "25", "before": "24000 m"}))["edit_number"] == 25
    assert json_of(client.delete(path))["state"] == "found"


def test_columns_and_rows_are_added(client: TestClient, papers: dict[str, str]) -> None:
    project = json_of(client.post("/projects", json={"name": "Sea"}), 201)["id"]
    made = new_table(client, filter={"papers": [papers["otters.pdf"]]}, name="Sea", project=project)
    assert (made["scope"], made["follows"], made["filter"]["papers"]) == ("1 paper", False, [papers["otters.pdf"]])
    fill(client, made["id"])
    json_of(client.post(f"/tables/{made['id']}/columns", json={"name": "Ice", "question": "largest"}), 201)
    json_of(client.post(f"/tables/{made['id']}/rows", json={"papers": list(papers.values())}))
    until(lambda: table(client, made["id"])["waiting"] == 0)  # a table that was filled is filled on
    assert states(client, made["id"])["Ice", "glaciers.pdf"] == "found"
    assert [each["name"] for each in json_of(client.get("/tables", params={"project": project}))["tables"]] == ["Sea"]
    assert json_of(client.get("/tables", params={"project": "0" * 16}))["tables"] == []


def test_what_is_wrong_is_said(client: TestClient, papers: dict[str, str]) -> None:
    def refused(status: int, **body: Any) -> str:
        return refusal(client.post("/tables", json=body), status)

    assert refused(404, filter={"tag": ["none"]}) == "No paper in the index has the tag “none”."
    assert refused(404, filter={"papers": ["0" * 64]}) == "This paper is not in the index."
    assert refused(422, filter={"section": ["methods"]}) == "filter.section: has more than 0 entries."
    assert refused(404, filter={"year": ["1066"]}) == "No paper fits."
    assert refused(400, columns=[{"name": "Is", "kind": "choice"}]) == "A column of choices has at least two."
    assert refused(400, columns=[{"name": "Is", "kind": "number", "unit": "flup"}]) == "“flup” is an unknown unit."
    assert refused(422, columns=[{"name": " "}]) == "columns.0.name: must not be empty."
    assert refused(404, project="0" * 16) == "There is no such project."
    unknown = f"/tables/{'0' * 16}"
    for reply in (
        client.get(unknown),
        client.patch(unknown, json={"name": "x"}),
        client.delete(unknown),
        client.post(f"{unknown}/fill", json={}),
        client.post(f"{unknown}/stop"),
        client.get(f"{unknown}/cells"),
        client.post(f"{unknown}/columns", json=KELP),
        client.post(f"{unknown}/rows", json={"papers": [papers["otters.pdf"]]}),
    ):
        assert refusal(reply, 404) == "There is no such table."
    assert refusal(client.get("/tables/x"), 422) == "table: is not an id of 16 digits and letters a to f."


def test_without_an_index_there_are_no_tables(tmp_path: Path) -> None:
    app = small_app(tmp_path / "other")
    for file in app.store_folder.iterdir():
        if file.is_file():
            file.unlink()
    with client_of(app) as client:
        assert json_of(client.get("/tables")) == {"tables": []}


def test_a_paper_that_is_renamed_has_its_new_title_in_changed_cells(client: TestClient) -> None:
    made = new_table(client)
    paper = made["rows"][0]["paper"]
    assert client.patch(f"/papers/{paper}", json={"title": "Rafts of Kelp"}).status_code == 200
    assert client.get(f"/tables/{made['id']}/cells", params={"since": 0}).status_code == 200
    titles = [row["title"] for row in json_of(client.get(f"/tables/{made['id']}"))["rows"]]
    assert "Rafts of Kelp" in titles
    client.patch(f"/papers/{paper}", json={"title": None})
