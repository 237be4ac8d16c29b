"""Settings over the API: changed without a restart, models got, the index made again, folders, storage, the log."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from config import Settings
from folio.app import App
from folio.system import workers
from folio.web.api import make_web
from folio.web.guard import AccessRules
from tests.helpers.factories import small_papers, write_pdf
from tests.helpers.fakes import HashingApp, read_here
from tests.helpers.live_server import ingest, new_builtin_app
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.web_client import ask, client_of, json_of, refusal

NAMES = ("LLM", "OLLAMA_HOST", "EMBEDDER")


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of settings of this test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for name in Settings.model_fields:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(workers, "run_guarded", read_here)
    return tmp_path / "config" / "folio" / ".env"


@pytest.fixture
def real(tmp_path: Path, ollama_server: OllamaStandIn) -> App:
    """The tool with its built-in models over two papers, and an Ollama server that it does not use."""
    app = new_builtin_app(tmp_path, small_papers(tmp_path / "papers"), OLLAMA_HOST=ollama_server.url)
    assert ingest(app) == ["added", "added"]
    return app


@pytest.fixture
def owner(real: App) -> Iterator[TestClient]:
    with client_of(real) as opened:
        yield opened


def change(client: TestClient, **changes: str | None) -> dict[str, Any]:
    return json_of(client.patch("/settings", json={"changes": changes}))


def values(client: TestClient) -> dict[str, tuple[str, str]]:
    listed = json_of(client.get("/settings"))["settings"]
    return {each["name"]: (each["value"], each["origin"]) for each in listed}


def ended(client: TestClient, task: dict[str, Any]) -> dict[str, Any]:
    """A task once it has ended."""
    for _ in range(1200):
        (now,) = [each for each in json_of(client.get("/tasks"))["tasks"] if each["id"] == task["id"]]
        if now["state"] not in ("running", "stopping"):
            return dict(now)
        time.sleep(0.05)
    raise AssertionError(f"it does not end: {now}")


def test_a_model_is_switched_without_a_restart(owner: TestClient, own_settings: Path) -> None:
    assert ask(owner, "How long do otters sleep?")["models"]["llm"].endswith("(built in)")
    own_settings.parent.mkdir(parents=True)
    own_settings.write_text("# mine\nTOP_K=5\nSOMETHING=else\n")
    reply = change(owner, LLM="ollama", LLM_MODEL="llama3.1:8b")
    assert reply["needs_rebuild"] == ""
    assert values(owner)["LLM"] == ("ollama", "file")
    assert own_settings.read_text() == "# mine\nTOP_K=5\nSOMETHING=else\nLLM='ollama'\nLLM_MODEL='llama3.1:8b'\n"
    assert json_of(owner.get("/health"))["model"] == "llama3.1:8b"
    assert ask(owner, "How long do otters sleep?")["models"]["llm"].startswith("llama3.1:8b")
    change(owner, LLM=None, LLM_MODEL=None)
    assert own_settings.read_text() == "# mine\nTOP_K=5\nSOMETHING=else\n"
    assert values(owner)["LLM"] == ("auto", "default")


def test_what_cannot_be_changed_changes_nothing(
    owner: TestClient, own_settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RERANKER", "builtin")
    before = values(owner)
    assert before["RERANKER"] == ("builtin", "environment")
    for changes, status, error in (
        ({"RERANKER": "none"}, 400, "RERANKER is set by the environment that Folio was started in"),
        ({"LLM": "best"}, 400, "LLM cannot be best."),
        ({"OLLAMA_HOST": "http://far.example"}, 400, "OLLAMA_HOST cannot be changed here."),
        ({"ALLOW_REMOTE_OLLAMA": "true"}, 400, "ALLOW_REMOTE_OLLAMA cannot be changed here."),
        ({"OPENAI_BASE_URL": "http://far.example/v1"}, 400, "OPENAI_BASE_URL is"),
        ({"LLM": "ollama", "LLM_MODEL": "nobody:1b"}, 503, "does not have the model nobody:1b"),
        ({"PAPERS_DIR": "/no/such/folder"}, 400, "There is no folder /no/such/folder."),
        ({"WATCH": "relative"}, 400, "There is no folder relative."),
    ):
        reply = owner.patch("/settings", json={"changes": changes})
        assert error in refusal(reply, status)
    assert values(owner) == before
    assert not own_settings.exists()


def test_a_change_that_needs_another_index_says_so_and_comes_into_use_with_it(
    owner: TestClient, own_settings: Path
) -> None:
    reply = change(owner, EMBEDDER="ollama")
    assert "embedder is builtin in the index and ollama now" in reply["needs_rebuild"]
    assert values(owner)["EMBEDDER"] == ("builtin", "default")
    assert not own_settings.exists()
    task = json_of(owner.post("/tasks/rebuild", json={"changes": {"EMBEDDER": "ollama"}}), 202)
    assert (task["kind"], task["state"]) == ("rebuild", "running")
    assert "embedder is builtin" in task["reason"]
    done = ended(owner, task)
    assert (done["state"], done["result"]) == ("done", "The index has 2 papers.")
    assert values(owner)["EMBEDDER"] == ("ollama", "file")
    health = json_of(owner.get("/health"))
    assert health["fingerprint"]["embedder"] == "ollama"
    assert health["models"]["embedder"].startswith("nomic-embed-text")
    assert json_of(owner.post("/search", json={"query": "otters"}))["hits"]
    assert own_settings.read_text() == "EMBEDDER='ollama'\n"
    owner.delete(f"/tasks/{task['id']}")
    assert json_of(owner.get("/tasks"))["tasks"] == []


def test_a_rebuild_that_would_lose_a_paper_asks_first(owner: TestClient, real: App) -> None:
    (real.papers_folder / "otters.pdf").unlink()
    task = ended(owner, json_of(owner.post("/tasks/rebuild", json={}), 202))
    assert task["state"] == "failed"
    assert task["error"]["error"] == "Indexed files that are missing: 1, including otters.pdf."
    assert len(json_of(owner.get("/papers"))["papers"]) == 2
    task = ended(owner, json_of(owner.post("/tasks/rebuild", json={"drops_missing": True}), 202))
    assert (task["state"], task["result"]) == ("done", "The index has 1 paper.")
    assert len(json_of(owner.get("/papers"))["papers"]) == 1


def test_a_rebuild_is_cancelled_and_the_old_index_stays(
    owner: TestClient, real: App, ollama_server: OllamaStandIn
) -> None:
    ollama_server.faults.first_byte_s = 0.5
    task = json_of(owner.post("/tasks/rebuild", json={"changes": {"EMBEDDER": "ollama"}}), 202)
    second = owner.post("/tasks/read")
    assert refusal(second, 409) == "Another such task is running."
    assert owner.delete(f"/tasks/{task['id']}").status_code == 204
    now = ended(owner, task)
    assert now["state"] == "cancelled"
    assert json_of(owner.get("/health"))["fingerprint"]["embedder"] == "builtin"
    assert values(owner)["EMBEDDER"] == ("builtin", "default")


def test_damaged_indexes_are_repaired(owner: TestClient, real: App) -> None:
    task = ended(owner, json_of(owner.post("/tasks/repair"), 202))
    passages = json_of(owner.get("/health"))["store"]["chunks"]
    assert (task["state"], task["result"]) == ("done", f"The index is repaired: {passages} passages.")
    assert real.verify() == []


def test_a_model_is_got_from_ollama_and_listed_with_its_size(owner: TestClient, ollama_server: OllamaStandIn) -> None:
    before = json_of(owner.get("/settings/models"))
    named = {each["name"]: each for each in before["models"] if each["source"] == "ollama"}
    assert "all-minilm:latest" not in named
    assert named["llama3.1:8b"]["use"] == "answers"
    assert named["llama3.1:8b"]["bytes"] > 0
    assert not named["llama3.1:8b"]["in_use"]
    builtin = [each for each in before["models"] if each["source"] == "builtin"]
    assert [(each["use"], each["in_use"]) for each in builtin] == [
        ("search", True), ("ranking", True), ("answers", True),
    ]  # fmt: skip
    task = ended(owner, json_of(owner.post("/tasks/pull", json={"model": "all-minilm"}), 202))
    assert (task["state"], task["about"], task["result"]) == ("done", "all-minilm", "all-minilm is there.")
    after = json_of(owner.get("/settings/models"))["models"]
    assert "all-minilm:latest" in [each["name"] for each in after]
    task = ended(owner, json_of(owner.post("/tasks/pull", json={"model": "no-such"}), 202))
    assert task["state"] == "failed"
    assert "could not download no-such" in task["error"]["error"]
    assert refusal(owner.post("/tasks/pull", json={"model": "a b"}), 422) == "model: is not the name of a model."


def test_folders_are_listed_and_followed(owner: TestClient, real: App, tmp_path: Path) -> None:
    other = tmp_path / "others"
    (other / "deep").mkdir(parents=True)
    (other / ".hidden").mkdir()
    listing = json_of(owner.get("/settings/folders", params={"path": str(other)}))
    assert [each["name"] for each in listing["folders"]] == ["deep"]
    assert (listing["parent"], listing["pdfs"]) == (str(tmp_path), 0)
    write_pdf(other / "deep" / "third.pdf", ["A third paper about badgers. Badgers dig long tunnels at night."])
    assert json_of(owner.get("/settings/folders", params={"path": str(other)}))["pdfs"] == 1
    assert json_of(owner.get("/settings/folders"))["path"] == str(tmp_path / "home")
    assert "cannot be opened" in refusal(owner.get("/settings/folders", params={"path": "/no/such"}), 400)
    assert refusal(owner.get("/settings/folders", params={"path": "others"}), 400)
    change(owner, WATCH=str(other))
    for _ in range(400):
        if len(json_of(owner.get("/papers"))["papers"]) == 3:
            break
        time.sleep(0.05)
    assert len(json_of(owner.get("/papers"))["papers"]) == 3
    change(owner, WATCH=None)
    assert real.watched.folders == ()


def test_the_folder_of_papers_is_changed_and_read(owner: TestClient, real: App, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    write_pdf(new / "third.pdf", ["A third paper about badgers. Badgers dig long tunnels at night."])
    change(owner, PAPERS_DIR=str(new))
    task = ended(owner, json_of(owner.post("/tasks/read"), 202))
    assert (task["state"], task["result"]) == ("done", "1 paper added.")
    voles = write_pdf(tmp_path / "x.pdf", ["Voles eat grass and seeds."]).read_bytes()
    added = owner.post("/papers", files={"file": ("x.pdf", voles)})
    assert added.status_code in (200, 201), added.text
    assert (new / "x.pdf").is_file()


def test_zotero_is_looked_for(owner: TestClient) -> None:
    assert json_of(owner.get("/settings/zotero")) == {"folder": "", "pdfs": 0, "is_followed": False, "problem": None}
    task = ended(owner, json_of(owner.post("/tasks/zotero"), 202))
    assert task["state"] == "failed"
    assert "No Zotero library was found" in task["error"]["error"]


BIB = """@article{otter2020, title = {On Sea Otters}, author = {Byte, Ada}, year = {2020}, file = {otters.pdf}}
@article{nobody, title = {On Nothing At All}, year = {1999}}
@article{broken, title = {"""


def test_a_bibliography_is_previewed_before_it_is_taken(owner: TestClient) -> None:
    file = {"file": ("mine.bib", BIB.encode())}
    preview = json_of(owner.post("/bibliography/preview", files=file))
    (matched,) = preview["matched"]
    assert (matched["key"], preview["count_changed"], preview["is_taken"]) == ("otter2020", 1, False)
    assert {"authors", "year"} <= set(matched["changes"])
    assert [each["key"] for each in preview["unmatched"]] == ["nobody"]
    papers = {each["file"]: each for each in json_of(owner.get("/papers"))["papers"]}
    assert papers["otters.pdf"]["year"] != 2020
    assert json_of(owner.post("/bibliography", files=file))["is_taken"]
    papers = {each["file"]: each for each in json_of(owner.get("/papers"))["papers"]}
    assert papers["otters.pdf"]["year"] == 2020
    again = json_of(owner.post("/bibliography/preview", files=file))
    assert (again["count_matched"], again["count_changed"]) == (1, 0)
    less = {"file": ("mine.bib", b"@article{other, title = {Other}}")}
    assert json_of(owner.post("/bibliography/preview", files=less))["count_withdrawn"] == 1
    assert refusal(owner.post("/bibliography", files={"file": ("a.txt", b"x")}), 400) == "a.txt is not a bibliography."


def test_a_backup_is_restored_whole_or_not_at_all(owner: TestClient, real: App) -> None:
    ask(owner, "How long do otters sleep?")
    (paper, *_) = json_of(owner.get("/papers"))["papers"]
    json_of(owner.patch(f"/papers/{paper['id']}", json={"title": "A title of mine"}))
    backup = owner.get("/backup")
    assert backup.headers["content-disposition"].startswith('attachment; filename="folio-backup-')
    json_of(owner.patch(f"/papers/{paper['id']}", json={"title": "Another title"}))
    assert json_of(owner.delete("/log"))["deleted"] == 1

    cut = backup.content[: len(backup.content) // 2]
    flipped = bytearray(backup.content)
    flipped[len(flipped) // 2] ^= 1
    plain = gzip.decompress(backup.content)
    assert b"How long do otters sleep?" in plain
    spoiled = plain.replace(b"How long do otters sleep?", b"How long do badgers nap??")
    for wrong in (b"no backup", cut, bytes(flipped), plain[: len(plain) // 2], spoiled, b""):
        assert refusal(owner.post("/backup", files={"file": ("b.sqlite", wrong)}), 400)
    assert json_of(owner.get(f"/papers/{paper['id']}"))["title"] == "Another title"

    restored = json_of(owner.post("/backup", files={"file": ("b.sqlite", backup.content)}))
    assert (restored["questions"], restored["edits"] > 0) == (1, True)
    assert json_of(owner.get(f"/papers/{paper['id']}"))["title"] == "A title of mine"
    assert json_of(owner.get("/log"))["count"] == 1
    with closing(real.open_library()) as library:
        assert library.check() == []
    # What was there before is in the copy of today.
    (day, *_) = json_of(owner.get("/settings/storage"))["copies"]
    json_of(owner.post(f"/backup/{day}"))
    assert json_of(owner.get(f"/papers/{paper['id']}"))["title"] == "Another title"
    assert refusal(owner.post("/backup/1999-01-01"), 400) == "There is no copy of 1999-01-01."


def test_the_log_is_seen_and_deleted(owner: TestClient) -> None:
    assert json_of(owner.get("/log")) == {"questions": [], "count": 0, "logged": True}
    ask(owner, "How long do otters sleep?")
    log = json_of(owner.get("/log"))
    assert [(each["question"], each["model"] != "") for each in log["questions"]] == [
        ("How long do otters sleep?", True)
    ]
    assert json_of(owner.delete("/log")) == {"deleted": 1}
    assert json_of(owner.get("/log"))["count"] == 0


def test_sizes_are_told(owner: TestClient, real: App) -> None:
    sizes = {each["what"]: each for each in json_of(owner.get("/settings/storage"))["sizes"]}
    assert sizes["library"]["bytes"] >= real.library_path.stat().st_size
    assert sizes["papers"]["place"] == str(real.papers_folder)
    assert sizes["indexes"]["bytes"] > 0


@pytest.mark.parametrize(
    "rules",
    [{"token": "a-token-of-24-characters"}, {"public_url": "https://example.org"}, {"host": "0.0.0.0"}],
)
def test_others_change_nothing(app: HashingApp, rules: dict[str, str]) -> None:
    access = AccessRules(**{"host": "127.0.0.1", "port": 8420, **rules})  # type: ignore[arg-type]
    web = make_web(app, access)
    headers = {"Authorization": "Bearer a-token-of-24-characters"}
    with TestClient(web, base_url="http://127.0.0.1:8420", headers=headers, raise_server_exceptions=False) as client:
        settings = json_of(client.get("/settings"))
        assert (settings["changeable"], settings["settings"], settings["file"]) == (False, [], "")
        for method, path in (
            ("GET", "/settings/models"), ("GET", "/settings/folders"), ("GET", "/settings/zotero"),
            ("GET", "/settings/storage"), ("GET", "/backup"), ("GET", "/log"), ("DELETE", "/log"),
            ("POST", "/tasks/read"), ("POST", "/tasks/zotero"), ("POST", "/backup/2026-01-01"),
        ):  # fmt: skip
            assert client.request(method, path).status_code == 403, path
        assert client.patch("/settings", json={"changes": {"LLM": "auto"}}).status_code == 403
        assert client.post("/tasks/rebuild", json={}).status_code == 403
        assert client.post("/tasks/pull", json={"model": "x"}).status_code == 403
        for path in ("/backup", "/bibliography", "/bibliography/preview"):
            assert client.post(path, files={"file": ("x.bib", b"")}).status_code == 403
