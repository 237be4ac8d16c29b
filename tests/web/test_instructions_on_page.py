"""Instructions for the wording in the page: written, chosen, kept with an answer; and what one click asks a paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from folio.answer.instructions import READY
from folio.answer_types import Evidence, Sentence
from folio.model_choice import ModelChoice
from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.page import open_reader
from tests.helpers.scripted_answerer import IS_LONG, Part, ScriptedAnswerer, cited

pytestmark = pytest.mark.slow

QUESTION = "How long is the Aletsch glacier?"
HOSTILE = "<img src=x onerror=window.ran=true> \u202eevil"
Open = Callable[..., Tab]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Live(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as made:
        yield made


def text(evidence: Sequence[Evidence]) -> Iterator[Part]:
    if any(IS_LONG in " ".join(piece.text.split()) for piece in evidence):
        yield Sentence("It measures 23 kilometres.", (cited(evidence, IS_LONG, 0.5),), outcome="reworded")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A model writes the answers; returns what it was told about the wording, one text for each question."""
    wordings: list[str] = []

    def answerer(models: ModelChoice, *arguments: Any, instruction: str = "", **chosen: Any) -> Any:
        wordings.append(instruction)
        return ScriptedAnswerer(text)

    monkeypatch.setattr(ModelChoice, "answerer", answerer)
    monkeypatch.setattr(ModelChoice, "answering_name", lambda models: "scripted")
    return wordings


NO_HEALTH = """async (path) => {
  const { health } = await import(path);
  const now = health.get();
  health.set(null);
  if (document.querySelectorAll(".paper-questions button").length !== 4) throw new Error("it is still asked");
  health.set(now);
}"""
OTHER_MODEL = """(module) => import(module).then(({ health }) => health.set({ ...health.get(), model: "other" }))"""


def write(tab: Tab, name: str, words: str) -> None:
    """Writes an instruction in the panel, which is open."""
    panel = tab.find("#instructions")
    panel.get_by_label("Name").fill(name)
    panel.get_by_label("What you ask of the wording").fill(words)
    panel.get_by_role("button", name="Add instruction").click()


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_an_instruction_is_written_chosen_and_kept_with_its_answer(
    live: Live, told: list[str], opened: Open, size: tuple[int, int]
) -> None:
    tab = opened(live, size)
    if size == PHONE:
        tab.page.get_by_role("button", name="Options", exact=True).click()
    tab.find("#instruction").select_option(label="Instructions for answers…")
    panel = tab.find("#instructions")
    expect(panel).to_be_visible()
    assert tab.inaccessible() == []
    assert tab.scrolls_sideways() == []
    write(tab, "Brief", HOSTILE)
    expect(panel.locator("li", has_text="Brief")).to_contain_text("<img src=x")
    write(tab, "brief", "x")
    expect(panel.get_by_role("alert")).to_contain_text("There is an instruction “brief” already.")
    tab.expected("409")
    panel.get_by_role("button", name="Edit: Brief").click()
    panel.get_by_role("form", name="Change the instruction").get_by_label("What you ask").fill("In one sentence.")
    panel.get_by_role("button", name="Save").click()
    expect(panel.locator("li", has_text="Brief")).to_contain_text("In one sentence.")
    tab.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    tab.find("#instruction").select_option(label="Brief")
    expect(tab.find("#instruction-note")).to_be_hidden()  # a model writes
    tab.ask(QUESTION)
    shown = tab.find(".turn .asked-only").filter(has_text="Asked with the instruction “Brief”")
    expect(shown).to_be_visible()
    assert "In one sentence." in told
    assert tab.page.evaluate("window.ran") is None
    tab.reload()
    expect(shown).to_be_visible()
    assert tab.page.evaluate("location.hash").count("wording=") == 1
    assert tab.find("#instruction").evaluate("node => node.selectedOptions[0].text") == "Brief"


def test_an_instruction_is_deleted_and_brought_back(live: Live, told: list[str], opened: Open) -> None:
    with live.client() as client:
        assert client.post("/instructions", json={"name": "Brief", "text": "In one."}).status_code == 201
    tab = opened(live, WIDE)
    tab.find("#instruction").select_option(label="Brief")
    tab.find("#instruction").select_option(label="Instructions for answers…")
    tab.find("#instructions").get_by_role("button", name="Delete: Brief").click()
    expect(tab.find("#instructions li").filter(has_text="Brief")).to_have_count(0)
    tab.page.keyboard.press("Escape")
    expect(tab.find("#instruction option").filter(has_text="Brief")).to_have_count(0)
    assert tab.find("#instruction").input_value() == ""
    tab.page.keyboard.press("Control+z")
    expect(tab.find("#toast")).to_contain_text("Undone")
    expect(tab.find("#instruction option").filter(has_text="Brief")).to_have_count(1)


def test_without_a_model_the_page_says_that_an_instruction_needs_one(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE)
    tab.find("#instruction").select_option(label="For a newcomer")
    expect(tab.find("#instruction-note")).to_have_text(
        "“For a newcomer” needs a chat model: quotes stay in the papers’ own words."
    )
    answer = tab.ask(QUESTION)
    expect(tab.find(".turn .note")).to_contain_text("needs a chat model")
    assert answer is not None
    tab.find("#instruction").select_option(label="No instruction")
    expect(tab.find("#instruction-note")).to_be_hidden()


def test_a_project_is_asked_with_its_instruction(live: Live, told: list[str], opened: Open) -> None:
    papers = [each["id"] for each in live.send("GET", "/papers")["papers"]]
    sea = live.send("POST", "/projects", {"name": "Sea", "papers": papers})["id"]
    live.send("POST", "/projects", {"name": "Ice", "papers": papers})
    tab = opened(live, WIDE, f"#projects?project={sea}")
    of_sea = tab.find("#view-projects").get_by_label("Instruction")
    of_sea.select_option(label="For a newcomer")
    until(lambda: live.send("GET", "/instructions")["projects"] == {sea: READY[1].id})
    expect(of_sea).to_have_value(READY[1].id)
    tab.find("#view-projects").get_by_role("button", name="Ask this project").click()
    chosen, switcher = tab.find("#instruction"), tab.page.get_by_label("Project", exact=True)
    expect(chosen).to_have_value(READY[1].id)
    turn = tab.ask(QUESTION)
    expect(turn.locator(".asked-only", has_text="For a newcomer")).to_be_visible()
    assert READY[1].text in told
    switcher.select_option("Ice")
    expect(chosen).to_have_value("")
    chosen.select_option(READY[0].id)  # a person's choice stays
    switcher.select_option("Sea")
    expect(tab.find("#scope-line .scope-text")).to_contain_text("in Sea")
    expect(chosen).to_have_value(READY[0].id)
    chosen.select_option("")
    tab.reload()
    expect(switcher).to_have_value(sea)
    expect(chosen).to_have_value("")
    tab.page.goto(f"{live.url}#projects?project={sea}")
    expect(of_sea).to_have_value(READY[1].id)


def test_one_click_asks_a_paper(live: Live, told: list[str], opened: Open) -> None:
    with live.client() as client:
        papers = {each["title"]: each["id"] for each in client.get("/papers").json()["papers"]}
    tab = opened(live, WIDE, f"#paper/{papers['The Aletsch Glacier']}")
    asked = tab.find(".paper-questions button")
    expect(asked).to_have_text(
        ["Contributions", "Method", "Results", "Limits", "Explain: In two sentences", "Explain: For a newcomer"]
    )
    assert tab.inaccessible() == []
    asked.nth(5).focus()
    tab.page.evaluate(OTHER_MODEL, tab.module("base/state.js"))
    expect(asked.nth(5)).to_be_focused()  # also when the health of the server changes
    tab.page.evaluate(NO_HEALTH, tab.module("base/state.js"))
    expect(asked).to_have_count(6)
    expect(asked.nth(5)).to_be_focused()  # and when it is not known for a moment
    tab.page.keyboard.press("Enter")
    turn = tab.find(".turn")
    expect(turn.locator("h2")).to_have_text("What is this paper about?")
    expect(turn.locator(".asked-only", has_text="For a newcomer")).to_be_visible()
    expect(turn.locator(".asked-only", has_text="Aletsch Glacier")).to_be_visible()
    assert READY[1].text in told
    assert tab.find("#instruction").input_value() == ""  # it is for this question alone
    open_reader(tab, papers["On Sea Otters"])
    tab.find("#reader").get_by_role("button", name="Notes, turning and questions", exact=True).click()
    tab.find("#reader .menu").get_by_role("button", name="Ask: Limits").click()
    expect(tab.find(".turn h2").last).to_have_text("What are the limitations of this paper?")
    expect(tab.find(".turn").last).to_contain_text("On Sea Otters")


def test_without_a_model_a_paper_is_asked_for_its_own_words(live: Live, opened: Open) -> None:
    with live.client() as client:
        papers = {each["title"]: each["id"] for each in client.get("/papers").json()["papers"]}
    tab = opened(live, PHONE, f"#paper/{papers['The Aletsch Glacier']}")
    expect(tab.find(".paper-questions button")).to_have_text(["Contributions", "Method", "Results", "Limits"])
    expect(tab.find(".paper-questions .about")).to_have_text("Explanations in other words need a chat model.")
    assert tab.scrolls_sideways() == []
