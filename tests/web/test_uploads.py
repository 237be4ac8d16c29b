"""The queue of uploads: what came whole is added, whatever the client, the server or another process does meanwhile."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.errors import ModelMissing, ModelServerError, StoreBusy, StoreMismatch
from folio.papers.model import Vectors
from folio.store import indexes
from folio.system import workers
from folio.web import uploads as upload_queue
from folio.web.papers import STALE_S, PaperFiles, Placed
from folio.web.uploads import MAX_TRIES, SHOWN_S, UploadQueue
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import GLACIERS, pdf_of, write_pdf
from tests.helpers.fakes import HashingApp, HashingEmbedder, hashing_app, read_here
from tests.helpers.live_server import Live, until
from tests.helpers.serve_process import Served
from tests.helpers.web_client import client_of, json_of, papers_by_file, refusal

PDF = {"Content-Type": "application/pdf"}
TORN = b"%PDF-1.7\nthe rest of it was lost"


class GatedEmbedder(HashingEmbedder):
    """Embeds no passage while `gate` is closed; `waits` once one waits there."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.waits = Event(), Event()
        self.gate.set()

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not self.gate.is_set():
            self.waits.set()
            assert self.gate.wait(60)
        return super().embed_passages(texts)


@pytest.fixture
def embedder() -> GatedEmbedder:
    return GatedEmbedder()


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: GatedEmbedder) -> HashingApp:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    monkeypatch.setattr(upload_queue, "_LOOK_S", 0.05)
    monkeypatch.setattr(upload_queue, "_AGAIN_S", 0.05, raising=False)
    return hashing_app(tmp_path, embedder, LLM="builtin", MAX_FILE_MB=1)


Start = Callable[[], TestClient]


@pytest.fixture
def start(app: HashingApp, embedder: GatedEmbedder) -> Iterator[Start]:
    """A function that starts a server over the store."""
    with ExitStack() as clients:
        yield lambda: clients.enter_context(client_of(app))
        embedder.gate.set()


@pytest.fixture
def client(start: Start) -> TestClient:
    return start()


@pytest.fixture(params=[True, False], ids=["linked", "copied"])
def linking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the queue get into the folder of papers as links, or where that cannot be, as copies."""
    if not request.param:
        monkeypatch.setattr(Path, "hardlink_to", raises(OSError(errno.EXDEV, "Invalid cross-device link")))


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


def raises(error: Exception) -> Callable[..., None]:
    """A function that raises this error."""

    def function(*_: object, **__: object) -> None:
        raise error

    return function


def send(client: Any, content: bytes, name: str = "otters.pdf") -> dict[str, Any]:
    return json_of(client.post("/uploads", params={"name": name}, content=content, headers=PDF), 202)


def uploads(client: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/uploads").json()["uploads"]
    return found


def states(client: Any) -> list[tuple[str, str]]:
    return [(each["file"], each["state"]) for each in uploads(client)]


def rested(client: Any) -> list[dict[str, Any]]:
    """The queue once nothing waits any more."""
    until(lambda: not client.get("/uploads").json()["active"])
    return uploads(client)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def queue_folder(app: HashingApp) -> Path:
    return app.store_folder / "uploads"


def contents(app: HashingApp) -> list[str]:
    """What is in the queue's folder but records and the lock."""
    return [name for name in names(queue_folder(app)) if not name.endswith((".json", ".lock"))]


# Adding


def test_what_is_sent_at_once_is_added_in_order(client: TestClient, app: HashingApp, embedder: GatedEmbedder) -> None:
    embedder.gate.clear()
    first = send(client, pdf_of())
    assert (first["file"], first["state"], first["paper"], first["error"]) == ("otters.pdf", "waiting", None, "")
    assert embedder.waits.wait(60)
    send(client, pdf_of(GLACIERS, "The Aletsch Glacier"), "glaciers.pdf")
    send(client, pdf_of(GLACIERS[:1], "A Short One"), "short.pdf")
    assert [state for _, state in states(client)] == ["embedding", "waiting", "waiting"]
    assert [json.loads(path.read_text())["tries"] for path in sorted(queue_folder(app).glob("*.json"))] == [1, 0, 0]
    assert client.get("/uploads").json()["active"] is True
    embedder.gate.set()
    done = rested(client)
    assert [(each["title"], each["state"], each["status"], each["pages"]) for each in done] == [
        ("On Sea Otters", "added", "added", 2),
        ("The Aletsch Glacier", "added", "added", 3),
        ("A Short One", "added", "added", 1),
    ]
    assert (
        sorted(papers_by_file(client)) == names(app.settings.PAPERS_DIR) == ["glaciers.pdf", "otters.pdf", "short.pdf"]
    )
    assert done[0]["paper"] == client.get("/papers", params={"query": "otters"}).json()["papers"][0]["id"]
    assert contents(app) == []
    assert app.verify() == []
    subjects = [word for text in embedder.passages for word in ("otter", "glacier") if word in text]
    assert subjects == sorted(subjects, reverse=True)


@pytest.mark.usefixtures("linking")
def test_names_and_contents_follow_the_rules_of_the_papers_folder(client: TestClient, app: HashingApp) -> None:
    send(client, pdf_of(), "../../etc/otters.pdf")
    send(client, pdf_of(GLACIERS), "otters.pdf")
    send(client, pdf_of(), "otters.pdf")
    send(client, pdf_of(), "c:\\another\\na\x1b[31mme.PDF")
    assert [(each["file"], each["status"], each["notes"]) for each in rested(client)] == [
        ("otters.pdf", "added", []),
        ("otters.pdf", "added", []),
        ("otters.pdf", "unchanged", []),
        ("na [31mme.pdf", "duplicate", ["The same file as otters.pdf."]),
    ]
    assert names(app.settings.PAPERS_DIR) == ["otters (2).pdf", "otters.pdf"]
    assert (app.settings.PAPERS_DIR / "otters.pdf").read_bytes() == pdf_of()
    assert contents(app) == []


def test_added_uploads_are_dropped_once_shown(
    client: TestClient, app: HashingApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(client, pdf_of())
    send(client, TORN, "torn.pdf")
    assert [each["state"] for each in rested(client)] == ["added", "failed"]
    assert len(uploads(client)) == 2  # another page may not have seen it
    monkeypatch.setattr(upload_queue, "SHOWN_S", SHOWN_S - 1000)
    assert states(client) == [("torn.pdf", "failed")]
    assert len([name for name in names(queue_folder(app)) if name.endswith(".json")]) == 1


# What is refused


@pytest.mark.parametrize(
    ("content", "kind", "status", "happened"),
    [
        *((content, "application/pdf", 422, "The file is not a PDF.")
          for content in (b"", b"%PD", b"<html>%PDF</html>", b" " * 1024 + b"%PDF-1.7" + b" " * 600_000)),
        (b"%PDF-1.7" + b" " * 1_000_000, "application/pdf", 413, "1,000,000 bytes"),
        ([b"%PDF-1.7", b" " * 600_000, b" " * 600_000], "application/pdf", 413, "1,000,000 bytes"),
        (TORN, "text/plain", 415, ""),
        (b"{}", "application/json", 422, ""),
    ],
    ids=["empty", "short", "HTML", "late", "too large", "too large in pieces", "text", "JSON"],
)  # fmt: skip
def test_a_refused_upload_leaves_nothing(
    client: TestClient, app: HashingApp, content: bytes | list[bytes], kind: str, status: int, happened: str
) -> None:
    sent = content if isinstance(content, bytes) else iter(content)
    reply = client.post("/uploads", params={"name": "a.pdf"}, content=sent, headers={"Content-Type": kind})
    assert happened in refusal(reply, status)
    assert (uploads(client), contents(app)) == ([], [])


@pytest.mark.parametrize("length", ["Content-Length: 5000", "Transfer-Encoding: chunked"])
def test_half_a_body_is_never_queued(app: HashingApp, length: str) -> None:
    part = b"%PDF-1.7" + b" " * 2000
    sent = part if "Content" in length else b"%x\r\n%s\r\n" % (len(part), part)
    with Live(app) as live, live.client() as client:
        with socket.create_connection(("127.0.0.1", live.port)) as leaving:
            head = f"POST /uploads?name=a.pdf HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\n{length}\r\n"
            leaving.sendall(f"{head}Content-Type: application/pdf\r\n\r\n".encode() + sent)
            until(lambda: contents(app) != [])
        until(lambda: contents(app) == [])
        assert uploads(client) == []
    assert names(app.settings.PAPERS_DIR) == []


@pytest.mark.parametrize(("module", "function"), [(os, "fsync"), (upload_queue, "write_private")])
def test_a_full_disk_is_named_and_leaves_nothing(
    client: TestClient, app: HashingApp, monkeypatch: pytest.MonkeyPatch, module: Any, function: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, function, raises(NO_SPACE))
        reply = client.post("/uploads", content=pdf_of(), headers=PDF)
    assert refusal(reply, 507).startswith("There is no space left on the disk")
    assert (uploads(client), contents(app)) == ([], [])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_what_waits_is_for_its_user_alone(client: TestClient, app: HashingApp) -> None:
    before = os.umask(0)
    try:
        send(client, TORN)
        (failed,) = rested(client)
    finally:
        os.umask(before)
    assert stat.S_IMODE(queue_folder(app).stat().st_mode) == 0o700
    assert names(queue_folder(app)) == [f"{failed['id']}.json", f"{failed['id']}.pdf", "records.lock", "worker.lock"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in queue_folder(app).iterdir()} == {0o600}


# Failures


def test_what_failed_stays_and_can_be_tried_again(client: TestClient, app: HashingApp, embedder: GatedEmbedder) -> None:
    torn = send(client, TORN, "torn.pdf")
    (failed,) = rested(client)
    assert (failed["state"], failed["paper"]) == ("failed", None)
    assert failed["error"]
    assert failed["remedy"]
    assert (names(app.settings.PAPERS_DIR), sorted(papers_by_file(client))) == ([], [])
    embedder.gate.clear()
    send(client, pdf_of())
    assert embedder.waits.wait(60)
    again = client.post(f"/uploads/{torn['id']}/retry").json()
    assert (again["id"], again["state"], again["error"]) == (torn["id"], "waiting", "")
    embedder.gate.set()
    assert [(each["file"], each["state"]) for each in rested(client)] == [
        ("torn.pdf", "failed"),
        ("otters.pdf", "added"),
    ]
    assert client.delete(f"/uploads/{torn['id']}").status_code == 204
    assert states(client) == [("otters.pdf", "added")]
    assert contents(app) == []
    gone = client.post(f"/uploads/{torn['id']}/retry")
    assert refusal(gone, 404) == "This upload is not in the queue."
    assert client.delete(f"/uploads/{torn['id']}").status_code == 404
    assert client.delete("/uploads/..%2f..%2fx").status_code == 404


def test_all_that_failed_are_tried_again_or_forgotten(
    client: TestClient, app: HashingApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(HashingEmbedder, "embed_passages", None)  # an error that nobody expected
        for name in ("one.pdf", "two.pdf"):
            send(client, pdf_of(), name)
        failed = [(each["state"], each["error"]) for each in rested(client)]
    assert failed == [("failed", "Folio failed with an internal error.")] * 2
    assert (names(app.settings.PAPERS_DIR), len(contents(app))) == ([], 2)
    send(client, TORN, "torn.pdf")
    rested(client)
    assert client.post("/uploads/retry").json() == {"retried": 3}
    assert [(each["file"], each["state"], each["status"]) for each in rested(client)] == [
        ("one.pdf", "added", "added"),
        ("two.pdf", "added", "duplicate"),
        ("torn.pdf", "failed", None),
    ]
    assert client.delete("/uploads?failed=true").json() == {"cancelled": 1}
    assert [name for name, _ in states(client)] == ["one.pdf", "two.pdf"]
    assert contents(app) == []


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_file_damaged_in_the_queue_is_not_added(client: TestClient, app: HashingApp, is_gone: bool) -> None:
    with indexes.writing(app.store_folder):
        send(client, pdf_of())
        (content,) = contents(app)
        if is_gone:
            (queue_folder(app) / content).unlink()
        else:
            (queue_folder(app) / content).write_bytes(pdf_of()[:-100])
    (failed,) = rested(client)
    assert failed["error"] == "The file was damaged on the disk of the server."
    assert sorted(papers_by_file(client)) == []


def test_an_added_paper_keeps_its_file_if_indexing_fails(
    client: TestClient, app: HashingApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(HashingApp, "finish_ingest", raises(NO_SPACE))
        send(client, pdf_of())
        until(lambda: "no space left" in client.get("/uploads").json()["notice"])
        assert sorted(papers_by_file(client)) == ["otters.pdf"]
        until(lambda: names(app.settings.PAPERS_DIR) == ["otters.pdf"])  # with nothing beside it, between two tries
        until(lambda: states(client) == [("otters.pdf", "waiting")])
    assert [(each["state"], each["status"]) for each in rested(client)] == [("added", "unchanged")]
    assert names(app.settings.PAPERS_DIR) == ["otters.pdf"]
    assert app.verify() == []


@pytest.mark.parametrize(
    "obstacle",
    [
        ModelServerError("Ollama is not running.", "Start it."),
        ModelMissing("Ollama does not have the model.", "Pull it."),
        StoreMismatch("The index was made with another embedder.", "Set it."),
        NO_SPACE,
    ],
    ids=["server", "model", "settings", "disk"],
)
def test_what_would_stop_every_file_fails_none(
    client: TestClient, app: HashingApp, monkeypatch: pytest.MonkeyPatch, obstacle: Exception
) -> None:
    asked: list[None] = []

    def refuse(*_: object) -> None:
        asked.append(None)
        raise obstacle

    with monkeypatch.context() as patch:
        patch.setattr(HashingEmbedder, "embed_passages", refuse)
        for name, content in (("otters.pdf", pdf_of()), ("glaciers.pdf", pdf_of(GLACIERS))):
            send(client, content, name)
        until(lambda: len(asked) > MAX_TRIES + 1)
        state = client.get("/uploads").json()
        assert state["notice"].startswith(getattr(obstacle, "happened", "There is no space left on the disk"))
        assert state["active"]
        assert "failed" not in dict(states(client)).values()
    assert [each["state"] for each in rested(client)] == ["added", "added"]
    assert client.get("/uploads").json()["notice"] == ""
    assert names(app.settings.PAPERS_DIR) == ["glaciers.pdf", "otters.pdf"]


# Cancelling


def test_what_waits_is_cancelled_alone_or_with_all_others(client: TestClient, app: HashingApp) -> None:
    with indexes.writing(app.store_folder):
        first, *_ = [send(client, pdf_of(), f"{number}.pdf") for number in range(4)]
        assert client.delete(f"/uploads/{first['id']}").status_code == 204
        assert states(client) == [(f"{number}.pdf", "waiting") for number in (1, 2, 3)]
        assert client.delete("/uploads").json() == {"cancelled": 3}
        assert (uploads(client), contents(app)) == ([], [])
    assert (rested(client), sorted(papers_by_file(client))) == ([], [])
    assert names(app.settings.PAPERS_DIR) == []


# Other processes, and the end of the server


def test_what_waited_for_long_is_no_leftover(
    client: TestClient, app: HashingApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = Path.hardlink_to

    def link_and_clean_up(new: Path, old: Path) -> None:
        link(new, old)
        PaperFiles(app).delete_stale_uploads()  # as another server does when it starts

    monkeypatch.setattr(Path, "hardlink_to", link_and_clean_up)
    with indexes.writing(app.store_folder):
        send(client, pdf_of())
        (content,) = queue_folder(app).glob("*.pdf")
        os.utime(content, (time.time() - 2 * STALE_S,) * 2)
    assert [(each["state"], each["error"]) for each in rested(client)] == [("added", "")]
    assert names(app.settings.PAPERS_DIR) == ["otters.pdf"]


def test_what_comes_while_another_process_writes_waits_for_it(client: TestClient, app: HashingApp) -> None:
    with indexes.writing(app.store_folder):
        send(client, pdf_of())
        until(lambda: client.get("/uploads").json()["notice"])
        assert client.get("/uploads").json()["notice"] == (
            "Another process is writing to this index. The files here are added after that."
        )
        (record,) = queue_folder(app).glob("*.json")
        before = record.stat().st_mtime_ns, record.stat().st_ino
        for _ in range(100):  # during many tries, as _LOOK_S is here, each of which looks for the lock
            assert states(client) == [("otters.pdf", "waiting")]
        assert (record.stat().st_mtime_ns, record.stat().st_ino) == before
        assert names(app.settings.PAPERS_DIR) == []
    assert [each["state"] for each in rested(client)] == ["added"]
    assert client.get("/uploads").json()["notice"] == ""


@pytest.mark.parametrize("rebuild", [False, True], ids=["a restart", "a rebuild"])
def test_what_waits_outlives_a_restart_and_a_rebuild(start: Start, app: HashingApp, rebuild: bool) -> None:
    client = start()
    send(client, pdf_of())
    rested(client)
    with indexes.writing(app.store_folder):
        send(client, pdf_of(GLACIERS), "glaciers.pdf")
        send(client, TORN, "torn.pdf")
        client.__exit__(None, None, None)
    if rebuild:
        app.run(rebuild=True)
    client = start()
    assert [(each["file"], each["state"]) for each in rested(client)] == [
        ("otters.pdf", "added"),
        ("glaciers.pdf", "added"),
        ("torn.pdf", "failed"),
    ]
    assert sorted(papers_by_file(client)) == ["glaciers.pdf", "otters.pdf"]


def test_two_servers_over_one_store_share_the_queue(start: Start, embedder: GatedEmbedder) -> None:
    one, other = start(), start()
    embedder.gate.clear()
    send(one, pdf_of())
    assert embedder.waits.wait(60)
    send(other, pdf_of(GLACIERS), "glaciers.pdf")
    assert [name for name, _ in states(one)] == [name for name, _ in states(other)] == ["otters.pdf", "glaciers.pdf"]
    embedder.gate.set()
    assert [each["state"] for each in rested(one)] == [each["state"] for each in rested(other)] == ["added"] * 2
    assert sorted(papers_by_file(other)) == ["glaciers.pdf", "otters.pdf"]
    assert len(embedder.passages) == len(set(embedder.passages))


@pytest.mark.parametrize("by_another", [False, True], ids=["by the same server", "by another"])
def test_what_is_being_added_is_stopped_and_leaves_nothing(
    start: Start, app: HashingApp, embedder: GatedEmbedder, by_another: bool
) -> None:
    one, other = start(), start()
    embedder.gate.clear()
    send(one, pdf_of(GLACIERS * 3), "glaciers.pdf")
    send(one, pdf_of())
    assert embedder.waits.wait(60)
    adds = "embedding" in dict(states(one)).values()
    stops = one if adds != by_another else other
    assert stops.delete(f"/uploads/{uploads(stops)[0]['id']}").status_code == 204
    for client in (one, other):
        assert states(client) == [("glaciers.pdf", "stopping"), ("otters.pdf", "waiting")]
    embedder.gate.set()
    assert [(each["file"], each["state"]) for each in rested(one)] == [("otters.pdf", "added")]
    assert states(other) == [("otters.pdf", "added")]
    assert sorted(papers_by_file(one)) == names(app.settings.PAPERS_DIR) == ["otters.pdf"]
    assert contents(app) == []
    assert app.verify() == []


def test_what_another_server_cancels_does_not_come_back(
    client: TestClient, app: HashingApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = UploadQueue(queue_folder(app), None, None, None)  # type: ignore[arg-type]

    def cancel_and_refuse(*_: object) -> None:
        queue.cancel_all(failed=False)
        raise StoreBusy("Another process is writing to this index.", "Wait.")

    with monkeypatch.context() as patch:
        patch.setattr(HashingEmbedder, "embed_passages", cancel_and_refuse)
        send(client, pdf_of())
        until(lambda: uploads(client) == [])
    assert (rested(client), contents(app), sorted(papers_by_file(client))) == ([], [], [])


def test_a_file_that_was_interrupted_too_often_is_tried_later(
    start: Start, app: HashingApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with indexes.writing(app.store_folder):
        client = start()
        send(client, pdf_of())
        client.__exit__(None, None, None)
    (record,) = queue_folder(app).glob("*.json")
    kept = json.loads(record.read_text())
    assert kept["tries"] == 0  # that the server ended properly, or another process wrote, is no try
    record.write_text(json.dumps({**kept, "tries": MAX_TRIES}))
    client = start()
    send(client, pdf_of(("Sponges filter the water of the sea.",), "On Sponges"), "other.pdf")
    assert [each["state"] for each in rested(client)] == ["waiting", "added"]
    notice = "Folio ended 3 times while it was adding otters.pdf, which is tried again later."
    assert client.get("/uploads").json()["notice"] == notice
    monkeypatch.setattr(upload_queue, "LATER_S", 0)
    until(lambda: [each["state"] for each in uploads(client)] == ["added", "added"])
    assert client.get("/uploads").json()["notice"] == ""


@pytest.mark.parametrize("ago_s", [5, -1e9], ids=["asked for", "by a clock that was wrong"])
def test_a_file_that_waits_is_tried_at_once(start: Start, app: HashingApp, ago_s: float) -> None:
    with indexes.writing(app.store_folder):
        client = start()
        upload = send(client, pdf_of())
        client.__exit__(None, None, None)
    (record,) = queue_folder(app).glob("*.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "tries": MAX_TRIES}))
    os.utime(record, (time.time() - ago_s,) * 2)
    client = start()
    if ago_s > 0:
        assert [each["state"] for each in rested(client)] == ["waiting"]
        assert client.post("/uploads/retry").json() == {"retried": 1}
    until(lambda: [(each["id"], each["state"]) for each in uploads(client)] == [(upload["id"], "added")])


@pytest.mark.usefixtures("linking")
@pytest.mark.parametrize("then", ["cancelled", "failed", "too often", "added"])
def test_a_file_placed_by_a_killed_server_is_taken_back(
    start: Start,
    app: HashingApp,
    embedder: GatedEmbedder,
    monkeypatch: pytest.MonkeyPatch,
    then: str,
) -> None:
    before: list[str] = []

    def die(*_: object) -> None:
        (record,) = queue_folder(app).glob("*.json")
        before.append(record.read_text())
        raise RuntimeError

    client = start()
    with monkeypatch.context() as patch:
        patch.setattr(PaperFiles, "_ingest", die)
        send(client, pdf_of())
        (upload,) = rested(client)
        client.__exit__(None, None, None)
    assert names(app.settings.PAPERS_DIR) == ["otters.pdf"]
    kept = json.loads(before[0])
    assert kept["tries"] == 1
    record = queue_folder(app) / f"{upload['id']}.json"
    record.write_text(json.dumps({**kept, "tries": MAX_TRIES if then == "too often" else 1}))
    if then == "failed":
        monkeypatch.setattr(HashingEmbedder, "embed_passages", None)
    if then == "cancelled":
        embedder.gate.clear()
    client = start()
    if then == "cancelled":
        assert embedder.waits.wait(60)
        client.delete("/uploads")
        embedder.gate.set()
    left = {"cancelled": [], "too often": ["waiting"]}.get(then, [then])
    assert [each["state"] for each in rested(client)] == left
    assert names(app.settings.PAPERS_DIR) == (["otters.pdf"] if then == "added" else [])
    if then == "added":  # a paper that landed keeps its file
        file = app.settings.PAPERS_DIR / "otters.pdf"
        PaperFiles(app).take_back(Placed(file.name, file.stat().st_dev, file.stat().st_ino))
        assert file.exists()


def test_what_is_cancelled_after_a_kill_leaves_nothing(start: Start, app: HashingApp) -> None:
    with indexes.writing(app.store_folder):
        client = start()
        upload = send(client, pdf_of())
        client.__exit__(None, None, None)
        content, record = (queue_folder(app) / f"{upload['id']}{ending}" for ending in (".pdf", ".json"))
        app.settings.PAPERS_DIR.mkdir()
        (app.settings.PAPERS_DIR / "otters.pdf").hardlink_to(content)
        place = ["otters.pdf", content.stat().st_dev, content.stat().st_ino]
        record.write_text(json.dumps({**json.loads(record.read_text()), "tries": 1, "placed": place}))
        client = start()
        client.delete(f"/uploads/{upload['id']}")
        assert states(client) == [("otters.pdf", "stopping")]
    assert rested(client) == []
    assert (names(app.settings.PAPERS_DIR), contents(app)) == ([], [])


def test_leftovers_of_a_killed_server_are_deleted(start: Start, app: HashingApp) -> None:
    folder = queue_folder(app)
    folder.mkdir(parents=True)
    part, orphan, fresh = (f"{number:019d}-{number:08x}" for number in range(3))
    for name, age in ((f"{part}.part", 2 * STALE_S), (f"{orphan}.pdf", 2 * STALE_S), (f"{fresh}.part", 0)):
        (folder / name).write_bytes(TORN)
        os.utime(folder / name, (time.time() - age,) * 2)
    damaged = f"{9:019d}-{9:08x}.json"
    (folder / damaged).write_text('{"file": ')
    (folder / "mine.json").write_text("{}")
    client = start()
    until(lambda: len(names(folder)) == 3)
    assert names(folder) == [f"{fresh}.part", damaged, "mine.json"]  # another server may be receiving the first
    assert rested(client) == []


def long_pdf(desk: CliRunner, pages: int) -> bytes:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "EMBED_BATCH": "2"}
    texts = [f"Page {number}. " + " ".join(GLACIERS * 6) for number in range(pages)]
    return write_pdf(desk.folder / "long.pdf", texts).read_bytes()


@pytest.mark.slow
def test_a_killed_server_loses_no_upload(desk: CliRunner) -> None:
    long = long_pdf(desk, 4)
    with Served(desk) as served:
        send(served.client, long, "long.pdf")
        send(served.client, pdf_of(), "otters.pdf")
        until(lambda: uploads(served.client)[0]["done"] > 0)
        served.kill()
    with Served(desk) as served:
        done = [(each["file"], each["state"]) for each in rested(served.client)]
        assert done == [("long.pdf", "added"), ("otters.pdf", "added")]
        assert sorted(papers_by_file(served.client)) == names(desk.papers) == ["long.pdf", "otters.pdf"]
    assert desk.ingest().code == 0
    assert desk.ingest("--verify").code == 0


@pytest.mark.slow
def test_ctrl_c_keeps_waiting_uploads(desk: CliRunner) -> None:
    long = long_pdf(desk, 12)
    with Served(desk) as served:
        send(served.client, long, "long.pdf")
        until(lambda: uploads(served.client)[0]["state"] == "embedding")
        assert served.interrupt() == 0
    assert (served.out, served.err, list(desk.papers.iterdir())) == ("", "", [])
    (record,) = (desk.store / "uploads").glob("*.json")
    assert json.loads(record.read_text())["state"] == "waiting"
