"""Asks in a browser, and kills the server or closes the tab at a random moment: no question is lost, none stands twice.

    python -m campaign.asking --trials 30 --seed 1

Each trial types a question into the page of a real serve.py and sends it. At a random moment the server gets SIGKILL,
or the tab is closed, or both. Then the server is started again, and the page too. A question that was sent must be
there once: answered as a whole, or to be asked again, which answers it in its place. Prints a line for each trial, and
the figures at the end.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.helpers.browser import chromium
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.live_server import until
from tests.helpers.serve_process import Served

QUESTIONS = ("How long is the Aletsch glacier?", "How do sea otters sleep?", "How thick is the ice of the glacier?")
WAYS = ("kill", "close", "both")
# Seconds after Enter within which it happens: the built-in models answer within half a second
WITHIN_S = (0.1, 0.3, 0.6)


@dataclass
class Campaign:
    """The store, the server at its work, and what was asked until now."""

    desk: CliRunner
    browser: Browser
    served: Served
    asked: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)

    def restart(self) -> None:
        """Start a server on the same port, so that the page of before finds it."""
        port = str(self.served.port)
        if self.served.process.poll() is None:
            self.served.kill()
        self.served.client.close()
        self.served = Served(self.desk, "--port", port).__enter__()

    def stored(self) -> dict[str, list[str]]:
        """Question -> "whole", "half" or the state of each turn with it."""
        found: dict[str, list[str]] = {}
        for each in self.served.client.get("/conversations").json()["conversations"]:
            shown = self.served.client.get(f"/conversations/{each['id']}").json()
            for turn in shown["turns"]:
                has_all = bool(turn["sentences"] or turn["refused"]) and not turn["stopped"]
                state = "whole" if has_all else "half"
                found.setdefault(turn["message"], []).append(state)
            for turn in shown["unanswered"]:
                found.setdefault(turn["message"], []).append(turn["state"])
        return found


def trial(campaign: Campaign, number: int, chance: random.Random) -> str:
    """Returns what happened. Raises AssertionError for a question that is lost, or stands twice."""
    way, moment = WAYS[number % len(WAYS)], chance.uniform(0, chance.choice(WITHIN_S))
    question = f"{chance.choice(QUESTIONS)} (asked as number {number})"
    context = campaign.browser.new_context()
    page = context.new_page()
    sent: list[str] = []
    page.on("request", lambda request: _note(request, sent))
    conversations = campaign.served.client.get("/conversations").json()["conversations"]
    place = f"#c/{chance.choice(conversations)['id']}" if conversations and chance.random() < 0.5 else "#ask"
    page.goto(f"{campaign.served.url}{place}")
    expect(page.locator(".turn h2:visible, .welcome h1:visible").first).to_be_visible()
    page.get_by_role("textbox", name="Your question").fill(question)
    killing = threading.Timer(moment, campaign.served.process.kill)
    page.keyboard.press("Enter")
    if way != "close":
        killing.start()
    page.wait_for_timeout(1000 * moment)
    if way != "kill":
        page.close()
    if way != "close":
        killing.join()
        campaign.restart()
    if sent:
        campaign.asked.append(question)
    until(lambda: "running" not in str(campaign.stored()))
    before = campaign.stored().get(question, [])
    campaign.figures[f"{way}: {before[0] if before else 'not stored'}"] += 1
    assert len(before) <= 1, f"{question} stands {len(before)} times"
    if way == "kill":
        _finish(page, question)
    elif sent and way == "close":
        assert before, f"{question} was sent, and is lost"
    context.close()
    _require_all_once(campaign, question if way == "both" else "")
    return f"{way} after {moment:.3f} s: {before[0] if before else 'not stored'}"


def _note(request: Request, sent: list[str]) -> None:
    if request.url.endswith("/chat/stream"):
        sent.append(request.url)


def _finish(page: Page, question: str) -> None:
    """The page knows the question still, after a reload too, and answers it in its place."""
    page.reload()
    turn = page.locator(".turn").filter(has=page.get_by_role("heading", name=question, exact=True))
    expect(turn).to_have_count(1)
    again = turn.get_by_role("button", name="Ask again")
    expect(again.or_(turn.locator(".made")).first).to_be_visible()
    if not turn.locator(".made").count():
        again.click()
    expect(turn.locator(".made")).to_be_visible()


def _require_all_once(campaign: Campaign, unsure: str) -> None:
    """Every question that was asked stands once, and no answer is a part of one.

    unsure: its server was killed and its tab closed: if the server had not received it, nobody has it.
    """
    stored = campaign.stored()
    if unsure and unsure not in stored and unsure in campaign.asked:
        campaign.asked.remove(unsure)
        campaign.figures["tab and server gone before it arrived"] += 1
    for question in campaign.asked:
        assert len(stored.get(question, [])) == 1, f"{question}: {stored.get(question)}"
    assert all(state in ("whole", "failed") for states in stored.values() for state in states), stored


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill the server, and close the tab, while questions are asked.")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch, chromium() as browser:
        desk = CliRunner(Path(folder), patch)
        desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
        small_papers(desk.papers)
        assert desk.ingest().code == 0
        campaign = Campaign(desk, browser, Served(desk).__enter__())
        try:
            for number in range(1, arguments.trials + 1):
                _say(f"{number}: {trial(campaign, number, chance)}")
        finally:
            campaign.served.kill()
        _say(f"{len(campaign.asked)} questions were asked, and each stands once. {_listed(campaign.figures)}")


def _listed(figures: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in sorted(figures.items()))


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
