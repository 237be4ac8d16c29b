"""The page as a face of an answer: it shows every field of a reply (tests/helpers/faces.py)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from folio.schema.web import Conversation
from tests.helpers.browser import PHONE, Tab
from tests.helpers.faces import ADDED, CONVERSATION, FIELDS, REPLIES
from tests.helpers.live_server import Live, builtin_app

pytestmark = pytest.mark.slow


def test_the_page_shows_every_field_of_an_answer(opened: Callable[..., Tab], tmp_path: Path) -> None:
    about = {"title": "Ice", "updated": "2026-01-01T00:00:00Z", "pinned": False, "unanswered": []}
    kept = Conversation(id=CONVERSATION, turns=list(REPLIES), **about)  # type: ignore[arg-type]

    def reply(route: Route) -> None:
        route.fulfill(body=kept.model_dump_json(), content_type="application/json")

    (tmp_path / "papers").mkdir()
    with Live(builtin_app(tmp_path, tmp_path / "papers")) as live:
        tab = opened(live, PHONE)
        tab.page.route(re.compile(rf"/conversations/{CONVERSATION}(\?|$)"), reply)
        tab.page.route("**/followups", lambda route: route.fulfill(json={"questions": []}))
        tab.open(f"#c/{CONVERSATION}")
        expect(tab.find(".turn")).to_have_count(len(REPLIES))
        tab.page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        text = " ".join(tab.find("#turns").inner_text().split())
        fields = {name: shown for name, shown in {**FIELDS, **ADDED}.items() if "page" not in shown.left_out}
        assert [name for name, shown in fields.items() if shown.words not in text] == [], text
        assert tab.scrolls_sideways() == []
