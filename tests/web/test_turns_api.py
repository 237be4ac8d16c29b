"""A turn over the web API: its remark, what it asked, and its papers as they are called now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel

from folio.errors import NotKnown
from folio.schema.invalid import PATTERNS
from folio.schema.web import ChatRequest
from folio.web.service import Service
from tests.helpers.factories import small_papers
from tests.helpers.live_server import builtin_app
from tests.helpers.web_client import ask, ask_streamed, client_of, papers_by_file

SLEEP, LENGTH = "How do sea otters sleep?", "How long is the Aletsch glacier?"
NONSENSE = "xqzzyv blorfgh"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("turns")
    with client_of(builtin_app(folder, small_papers(folder / "papers"))) as opened:
        yield opened


@pytest.mark.parametrize(
    ("message", "begins"),
    [
        ("hello", "Hello. Ask a question"),
        ("thank you!", "You are welcome."),
        ("How many papers are there?", "The library has 2 papers."),
    ],
)
def test_a_remark_is_in_the_reply_and_its_exports(client: TestClient, message: str, begins: str) -> None:
    reply = ask(client, message)
    assert reply["remark"] == reply["answer"]
    assert reply["remark"].startswith(begins)
    assert (reply["refused"], reply["sentences"]) == (False, [])
    assert ask_streamed(client, message)[-1][1]["remark"] == reply["remark"]
    path = f"/conversations/{reply['conversation']}"
    assert client.get(path).json()["turns"] == [reply]
    assert begins in client.get(f"{path}/markdown").text
    assert begins in client.get(f"{path}/zotero-note", params={"turn": 1}).text


def test_a_turn_keeps_what_it_asked(client: TestClient) -> None:
    otters = papers_by_file(client)["otters.pdf"]
    client.patch(f"/papers/{otters['id']}", json={"tags": ["furs"]})
    reply = ask(client, LENGTH, papers=[otters["id"]], tag=["furs", "furs"])
    kept = {"paper": otters["id"], "file": "otters.pdf", "title": "On Sea Otters"}
    assert reply["refused"]
    assert reply["scope"].items() >= {"papers": [kept], "tag": ["furs", "furs"], "year": []}.items()
    path = f"/conversations/{reply['conversation']}"
    assert client.get(path).json()["turns"][0]["scope"] == reply["scope"]
    assert "Not found in “On Sea Otters”, tagged furs." in client.get(f"{path}/markdown").text
    assert "Not found in “On Sea Otters”, tagged furs." in client.get(f"{path}/zotero-note").text
    everything = ask(client, SLEEP)
    assert set(map(str, everything["scope"].values())) == {"[]"}
    assert "Asked only" not in client.get(f"/conversations/{everything['conversation']}/markdown").text


def test_an_answer_outlives_the_paper_that_was_asked(tmp_path: Path) -> None:
    """The paper is removed while the answer is made."""
    app = builtin_app(tmp_path, small_papers(tmp_path / "papers"))
    with closing(app.open_library()) as library:
        (otters,) = (paper for paper in library.papers() if paper.file == "otters.pdf")

    class RemovesThePaper:
        def on_event(self, kind: str, value: BaseModel) -> None:
            if kind == "sentence":
                with suppress(NotKnown):
                    service.paper_files.remove(otters.id)

        def check_cancelled(self) -> None:
            """Nobody cancels."""

    asked = ChatRequest(message=SLEEP, papers=[otters.id])
    with closing(Service(app)) as service:
        reply = service.questions.answer(service.questions.begin(asked), RemovesThePaper())
        assert (reply.refused, [paper.title for paper in reply.scope.papers]) == (False, ["On Sea Otters"])
        assert len(service.conversation(reply.conversation).turns) == 1
        with pytest.raises(NotKnown):
            service.questions.answer(service.questions.begin(asked), RemovesThePaper())


def test_an_edited_paper_has_its_new_name_in_old_answers(client: TestClient) -> None:
    otters = papers_by_file(client)["otters.pdf"]["id"]
    reply = ask(client, SLEEP, papers=[otters], mode="deep")
    assert reply["citations"][0]["shown"].startswith("[otters.pdf p.")
    path = f"/conversations/{reply['conversation']}"
    edits = {"title": "Kelp Rafts of the Pacific", "authors": ["Otter, Ann"], "year": 2014, "venue": "Sea Life"}
    try:
        assert client.patch(f"/papers/{otters}", json=edits).status_code == 200
        (now,) = client.get(path).json()["turns"]
        page = now["citations"][0]["page"]
        assert now["citations"][0]["shown"] == f"[Otter 2014, p. {page}]"
        assert now["citations"][0].items() >= {"title": edits["title"], "year": 2014, "venue": "Sea Life"}.items()
        assert now["sentences"][0]["citations"][0] == now["citations"][0]
        assert "On Sea Otters" not in json.dumps(now | {"searched": ""})  # which is what was asked then
        assert (now["hits"][0]["title"], now["scope"]["papers"][0]["title"]) == (edits["title"],) * 2
        exported = client.get(f"{path}/markdown").text
        assert rf"\[Otter 2014, p. {page}\]" in exported
        assert "Sources\n\n1. otters.pdf, p. 1. Kelp Rafts of the Pacific. Sea Life, 2014" in exported
        assert "[Otter 2014, p. 1]" in client.get(f"{path}/zotero-note").text
    finally:
        client.patch(f"/papers/{otters}", json=dict.fromkeys(edits))
    assert client.get(path).json()["turns"] == [reply]


def test_a_programs_question_is_listed_after_a_follow_up(client: TestClient) -> None:
    once, page = ask(client, SLEEP), ask(client, SLEEP, listed=True)

    def listed() -> list[str]:
        return [each["id"] for each in client.get("/conversations").json()["conversations"]]

    assert page["conversation"] in listed()
    assert once["conversation"] not in listed()
    assert client.get(f"/conversations/{once['conversation']}").json()["turns"] == [once]
    assert ask(client, "And what do they eat?", conversation=once["conversation"])["turn"] == 2
    assert once["conversation"] in listed()
    assert client.delete(f"/conversations/{once['conversation']}").status_code == 204


@pytest.mark.parametrize("path", ["/papers.bib", "/papers.csl.json"])
def test_a_bibliography_has_the_papers_that_are_wanted(client: TestClient, path: str) -> None:
    otters = papers_by_file(client)["otters.pdf"]["id"]
    whole = client.get(path).text
    assert "Sea Otters" in whole
    assert "Aletsch" in whole
    wanted = client.get(path, params={"papers": [otters]})
    assert "Sea Otters" in wanted.text
    assert "Aletsch" not in wanted.text
    chosen = client.post(path, json={"papers": [otters]})
    assert (chosen.text, chosen.headers) == (wanted.text, wanted.headers)
    for wrong in (client.post(path, json={"papers": ["0" * 64]}), client.get(path, params={"tag": "nobody has it"})):
        assert wrong.status_code == 404


def test_no_error_shows_a_regular_expression(client: TestClient) -> None:
    patterns: set[str] = set()

    def collect(part: dict[str, Any]) -> dict[str, Any]:
        patterns.update(value for name, value in part.items() if name == "pattern" and isinstance(value, str))
        return part

    json.loads(client.get("/openapi.json").text, object_hook=collect)
    assert patterns == set(PATTERNS)
    wrong: list[dict[str, Any]] = [{"year": ["soon"]}, {"papers": ["x"]}, {"conversation": "x"}, {"author": [" "]}]
    for body in wrong:
        error = client.post("/chat", json={"message": "x", **body}).json()["error"]
        assert not set("^$[]{}\\") & set(error), error
    years = client.get("/papers", params={"year": "soon"}).json()["error"]
    assert years == "year.0: is not a year or a range of years, such as 2014, 2010-2015, 2020- or -1999."


def test_nothing_is_nearest_to_nonsense(client: TestClient) -> None:
    found = client.post("/search", json={"query": NONSENSE}).json()
    assert (found["hits"], found["notice"]) == ([], "None of these words is in your papers.")
    assert client.get("/papers", params={"query": NONSENSE}).json()["papers"] == []
    other = client.post("/search", json={"query": "automobile"}).json()  # a word, and near to nothing here
    assert other["hits"]
    assert other["notice"] == "No passage has these words. These are the nearest in meaning."
    known = client.post("/search", json={"query": "glacier length"}).json()
    assert (bool(known["hits"]), known["notice"]) == (True, "")


def test_the_list_of_papers_says_whether_it_has_changed(client: TestClient) -> None:
    first = client.get("/papers")
    tag = {"If-None-Match": first.headers["ETag"]}
    assert client.get("/papers", headers=tag).status_code == 304
    assert client.get("/papers", headers=tag).content == b""
    assert "ETag" not in client.get("/papers", params={"author": "nobody"}).headers
    otters = papers_by_file(client)["otters.pdf"]["id"]
    client.patch(f"/papers/{otters}", json={"year": 2014})
    changed = client.get("/papers", headers=tag)
    assert changed.status_code == 200
    assert changed.headers["ETag"] != first.headers["ETag"]
    client.patch(f"/papers/{otters}", json={"year": None})


def test_an_empty_library_has_a_tag_too(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    with client_of(builtin_app(tmp_path, tmp_path / "papers")) as empty:
        tag = empty.get("/papers").headers["ETag"]
        assert empty.get("/papers", headers={"If-None-Match": tag}).status_code == 304
