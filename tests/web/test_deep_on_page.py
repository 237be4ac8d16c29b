"""A deep search on the page, in the installed Chromium: the switch, the timeline, and text that is never markup."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.helpers.browser import LIMIT_S, PHONE, WIDE, Tab, sizes
from tests.helpers.factories import small_papers, write_pdf
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.ollama_models import Json, answer_from_evidence
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.page import marks, reader_shows

pytestmark = pytest.mark.slow

QUESTION = "How do sea otters sleep?"
RUN = "window.ran=true"
HOSTILE = f"<img src=x onerror={RUN}>"
SUMMARY = f"It says how <img src=x onerror={RUN} [otters p.1]"  # no tag that the server would take out
ON_MOSS = f"On {HOSTILE} Moss and Otters"
IS_SHORT = "The Aletsch glacier has a length of 20 kilometres and covers 82 square kilometres of the Bernese Alps."
UNKNOWN = "It is unknown why the length of the Aletsch glacier shrinks faster than the models of its ice say."
TEXT = "Moss is where otters sleep in winter. It is soft, it is green, and it lies at the river."


class Model(OllamaStandIn):
    """Scores what is about sleep; the passages of the second round wait until `go_on` is set."""

    def __init__(self) -> None:
        super().__init__(dimension=64)
        self.reply = self.write
        self.go_on = threading.Event()
        self.go_on.set()
        self.rephrased = False
        self.waiting = 0

    def write(self, messages: list[Json]) -> str:
        prompt = str(messages[-1]["content"])
        if '"relevance"' in prompt:
            self.waiting += self.rephrased
            if self.rephrased:
                self.go_on.wait(LIMIT_S)
            return json.dumps({"summary": SUMMARY, "relevance": 9 if "sleep on their backs" in prompt else 2})
        if '"queries"' in prompt:
            self.rephrased = True
            return json.dumps({"queries": [f"otters at night {HOSTILE}"]})
        return answer_from_evidence(messages)


# The rounds of a library of four papers, of which each round reads two passages
SEARCHED = ["Searched", "Searched again in other words", "Searched again for the papers that come next"]


@pytest.fixture(scope="module")
def model(browser: Browser) -> Iterator[Model]:
    with Model() as server:
        yield server


@pytest.fixture(scope="module")
def live(browser: Browser, model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("deep")
    papers = small_papers(folder / "papers")
    write_pdf(papers / "moss.pdf", [TEXT], ON_MOSS)
    write_pdf(papers / "later.pdf", [IS_SHORT, UNKNOWN], "A Later Survey of Alpine Ice")
    chosen = {"LLM": "ollama", "OLLAMA_HOST": model.url, "VERIFIER": "none", "EVIDENCE_K": "2", "MIN_CONTEXTS": "2"}
    with Live(builtin_app(folder, papers, **chosen)) as made:
        yield made


@pytest.fixture(params=sizes(PHONE, WIDE), ids=str)
def tab(opened: Callable[..., Tab], live: Live, request: pytest.FixtureRequest) -> Tab:
    return opened(live, request.param)


def switch_on(tab: Tab) -> None:
    tab.question.focus()
    for _ in range(4):
        tab.page.keyboard.press("Tab")  # to the options, the model, the instruction, and the switch
    switch = tab.page.get_by_role("switch", name="Deep search")
    expect(switch).to_be_focused()
    expect(switch).not_to_be_checked()
    expect(switch).to_have_accessible_description(
        "Scores passages and searches again if they say too little. Takes longer, up to minutes."
    )
    assert tab.focus_shows()
    tab.page.keyboard.press("Space")
    expect(switch).to_be_checked()
    expect(tab.find("#deep-note")).to_be_visible()


def test_a_deep_search_is_a_stored_timeline(tab: Tab) -> None:
    switch_on(tab)
    tab.reload()
    expect(tab.page.get_by_role("switch", name="Deep search")).to_be_checked()  # remembered
    turn = tab.ask(QUESTION)
    assert_timeline(tab)
    deep = turn.locator(".deep")
    passage = deep.get_by_role("link", name="On Sea Otters, pp. 1–2").first
    passage.click()
    reader_shows(tab, 1)
    assert marks(tab, 1)
    tab.page.keyboard.press("Escape")
    expect(passage).to_be_focused()

    tab.reload()
    expect(tab.find(".turn .actions")).to_be_visible()
    assert_timeline(tab)
    assert tab.page.evaluate("window.ran") is None
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])


def assert_timeline(tab: Tab) -> None:
    """That it is closed, opens from the keyboard, and shows what was found, all of it as text."""
    deep = tab.find(".turn .deep")
    summary = deep.locator(":scope > summary")
    expect(summary).to_contain_text("passages read, 1 relevant · ")
    expect(summary).to_contain_text(" model calls · ")
    expect(deep.locator(".read-passages").first).to_be_hidden()
    summary.press("Enter")
    good = deep.locator(".read-passages > li:has(.good)")
    expect(good).to_have_count(1)
    expect(good).to_contain_text("Score 9/10On Sea Otters, pp. 1–2")
    expect(good).to_contain_text(f"Model's summary: {SUMMARY.replace('[', '(').replace(']', ')')}")  # no citation
    expect(deep.locator("strong")).to_have_text([*SEARCHED, "Search ended"])
    expect(deep.locator("li p.step").nth(1)).to_contain_text(": 1 of at least 2 relevant passages")
    expect(deep.locator("summary", has_text=f"“otters at night {HOSTILE}”: 4 papers")).to_be_visible()
    deep.locator("summary", has_text="otters at night").click()
    expect(deep.get_by_role("link", name=ON_MOSS, exact=True)).to_be_visible()
    low = deep.locator("summary", has_text="with a score below 5").first
    low.click()
    expect(deep.get_by_text("Score 2/10").first).to_be_visible()
    expect(deep.locator(":scope > p")).to_contain_text(
        "3 rounds. Scores: llama3.1:8b (Ollama). ≈ is the model's own summary"
    )


def make_differ(reply: Json) -> None:
    """Makes the papers of a reply differ, in words of markup."""
    above = {name: value for name, value in reply["citations"][0].items() if name not in ("evidence", "support")}
    other = {**above, "quote": f"It is longer {HOSTILE}."}
    reply["evidence_profile"] |= {"differences": [{"some": [above], "others": [other]}], "compared_by": HOSTILE}


def differ(route: Route) -> None:
    """Passes an answer on whose papers differ."""
    response = route.fetch()
    before, kind, data = response.text().replace("\r\n", "\n").rpartition("event: done\ndata: ")
    reply = json.loads(data)
    make_differ(reply)
    route.fulfill(response=response, body=f"{before}{kind}{json.dumps(reply)}\n\n")


def differ_when_read_again(route: Route) -> None:
    """Passes a stored conversation on whose answers are those of `differ`."""
    response = route.fetch()
    conversation = response.json()
    for reply in conversation["turns"]:
        make_differ(reply)
    route.fulfill(response=response, json=conversation)


def test_what_the_answer_rests_on_stands_below_it(tab: Tab) -> None:
    tab.page.route("**/chat/stream", differ)
    tab.page.route(re.compile(r"/conversations/[\w-]+(\?|$)"), differ_when_read_again)
    switch_on(tab)
    tab.page.get_by_role("button", name="Options").click()
    tab.find("#model").select_option("builtin")
    profile = tab.ask("How does the Aletsch glacier cover the Bernese Alps?").locator(".profile")
    expect(profile.locator("h3")).to_have_text("About the evidence")
    said = profile.locator(":scope > p")
    expect(said.first).to_contain_text(re.compile(r"^Confidence: \w+\. In tests \d+% of such answers showed what "))
    expect(said.last).to_have_text(f"{HOSTILE} chose which quotes belong together: read them.")
    expect(profile.locator("h4")).to_have_text(["Where they differ", "Open questions"])
    expect(profile.locator("li > *")).to_contain_text(
        ["quoted above", "but", f"“It is longer {HOSTILE}.”", f"“{UNKNOWN}”"]
    )
    profile.locator("li .chip").last.click()
    reader_shows(tab, 2)
    assert marks(tab, 2)  # what is open
    tab.page.keyboard.press("Escape")
    assert tab.page.evaluate("window.ran") is None
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])


def test_it_is_open_while_it_works_and_stop_ends_it(tab: Tab, model: Model) -> None:
    model.go_on.clear()
    model.rephrased, model.waiting = False, 0
    switch_on(tab)
    tab.question.fill(QUESTION)
    tab.page.keyboard.press("Enter")
    deep = tab.find(".turn .deep")
    expect(deep.locator("strong")).to_have_text(SEARCHED)
    expect(deep.locator(".read-passages > li:has(.good)")).to_be_visible()
    expect(deep.locator("summary").first).to_contain_text("round 3, 2 passages read, 1 relevant · ")
    expect(tab.find(".turn .working")).to_have_text("Scoring passages")
    expect(tab.find("#said")).to_have_text("Scoring passages.")
    until(lambda: model.waiting)
    calls = len(model.bodies("/api/chat"))
    tab.page.get_by_role("button", name="Stop").click()
    model.go_on.set()
    expect(tab.find(".turn .note")).to_contain_text("This answer was stopped.")
    expect(deep.locator(".read-passages > li:has(.good)")).to_be_visible()
    until(lambda: not any(thread.name.startswith("assess") for thread in threading.enumerate()))
    assert len(model.bodies("/api/chat")) < calls + 4  # what was being asked at once; the search did not go on
