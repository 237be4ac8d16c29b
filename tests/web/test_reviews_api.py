"""The routes of reviews: made in the background, shown, stopped, exported."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from folio.bibliography.word import read_paragraphs
from folio.cli import review as command
from folio.review.review import Reviewer
from tests.helpers.web_client import NOBODY, client_of, json_of, refusal, small_app


def made(client: Any, **request: Any) -> dict[str, Any]:
    """A review, once it is over."""
    shown = json_of(client.post("/reviews", json=request), 202)
    deadline = time.monotonic() + 30
    while shown["state"] in ("waiting", "reading", "comparing") and time.monotonic() < deadline:
        time.sleep(0.05)
        shown = json_of(client.get(f"/reviews/{shown['id']}"))
    return shown


def test_a_review_is_made_shown_and_exported(tmp_path: Path) -> None:
    with client_of(small_app(tmp_path)) as client:
        shown = made(client, questions=["How long is the Aletsch glacier?"])
        assert (shown["state"], shown["title"], shown["done"], shown["total"]) == ("done", "Review of 2 papers", 2, 2)
        assert shown["blocks"][0] == {
            "kind": "heading",
            "level": 1,
            "runs": [{"text": "Review of 2 papers", "style": "plain", "link": ""}],
        }
        links = [run["link"] for block in shown["blocks"] for run in block["runs"] if run["link"]]
        assert all(link.startswith("#paper/") for link in links)
        headings = [block["runs"][0]["text"] for block in shown["blocks"] if block["kind"] == "heading"]
        assert headings[-1] == "References"
        markdown = client.get(f"/reviews/{shown['id']}/export")
        assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
        assert markdown.text.startswith("# Review of 2 papers\n")
        word = client.get(f"/reviews/{shown['id']}/export?format=docx")
        assert read_paragraphs(word.content, "r.docx")[0] == "Review of 2 papers"


def test_a_review_of_chosen_papers_has_the_title_that_was_given(tmp_path: Path) -> None:
    with client_of(small_app(tmp_path)) as client:
        papers = json_of(client.get("/papers"))["papers"]
        shown = made(client, papers=[papers[0]["id"]], title="Ice")
        assert (shown["state"], shown["title"], shown["total"]) == ("done", "Ice", 1)


def test_what_cannot_be_reviewed_is_refused_or_fails_with_a_reason(tmp_path: Path) -> None:
    with client_of(small_app(tmp_path)) as client:
        failed = made(client, papers=[NOBODY])
        assert failed["state"] == "failed"
        assert failed["error"]["remedy"]
        assert "not there" in refusal(client.get("/reviews/0123456789abcdef"), 404)
        assert "not done" in refusal(client.get(f"/reviews/{failed['id']}/export"), 404)


def test_a_review_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(self: Reviewer, papers: Any, title: str, questions: Any, progress: Any, check_cancelled: Any) -> None:
        while True:  # as a review of very many papers
            check_cancelled()
            time.sleep(0.01)

    with client_of(small_app(tmp_path)) as client:
        monkeypatch.setattr(Reviewer, "review", wait)
        id = json_of(client.post("/reviews", json={}), 202)["id"]
        assert client.post(f"/reviews/{id}/stop").status_code == 204
        deadline = time.monotonic() + 10
        while (state := json_of(client.get(f"/reviews/{id}"))["state"]) != "stopped" and time.monotonic() < deadline:
            time.sleep(0.02)
        assert state == "stopped"


def test_the_command_writes_what_the_api_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = small_app(tmp_path)
    arguments = command.parser("folio review").parse_args(["-o", str(tmp_path / "r.md")])
    assert command._run(app, arguments) == 0
    assert "r.md" in capsys.readouterr().err
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert text.startswith("# Review of 2 papers\n")
    arguments = command.parser("folio review").parse_args(["-o", str(tmp_path / "r.docx"), "--title", "Ice"])
    assert command._run(app, arguments) == 0
    assert read_paragraphs((tmp_path / "r.docx").read_bytes(), "r.docx")[0] == "Ice"
    arguments = command.parser("folio review").parse_args([])
    assert command._run(app, arguments) == 0
    assert capsys.readouterr().out == text
