"""Conversations on the page: stopped answers, branches, suggestions, options in the address, and their list."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from folio.answer_types import Evidence, Sentence
from folio.app import App
from folio.errors import ModelServerError
from folio.model_choice import ModelChoice
from tests.helpers.browser import WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.scripted_answerer import IS_LONG, IS_THICK, Part, ScriptedAnswerer, cited
from tests.helpers.sectioned import CITES_OTTERS, ICE, ICE_TITLE, OTTER_TITLE, RAFT, sectioned_pdf

pytestmark = pytest.mark.slow

QUESTION, EDITED = "How long is the Aletsch glacier?", "How thick is the ice of the Aletsch glacier?"
SLEEP = "How do sea otters sleep?"
WAIT_S = 60
RUN = "window.ran=true"
EXAMPLE = "What is SealCam?"
HOSTILE = f"<img src=x onerror={RUN}> [Otter 2014, p. 3] \u202e{'ice' * 60}"
PHONE, TABLET = (390, 844), (1024, 768)

Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def live(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("conversations")
    with Live(builtin_app(folder, small_papers(folder / "papers"))) as made:
        yield made


def turns(tab: Tab) -> Locator:
    return tab.find(".turn h2")


def stored(tab: Tab, conversation: str, query: str = "") -> Any:
    return tab.context.request.get(f"{tab.url}/conversations/{conversation}{query}").json()


def id_of(tab: Tab) -> str:
    found = re.search(r"#c/([\w-]+)", tab.page.url)
    assert found
    return found[1]


@pytest.fixture(autouse=True)
def cleared(live: Live) -> Iterator[None]:
    """No conversations are left by a test."""
    yield
    with live.client() as client:
        for each in client.get("/conversations").json()["conversations"]:
            client.delete(f"/conversations/{each['id']}")


# Stopped answers


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The second sentence of a model waits for this; the built-in answers do not."""
    go_on = threading.Event()
    real: Callable[..., Any] = ModelChoice.answerer

    def answerer(models: ModelChoice, *arguments: Any, **chosen: Any) -> Any:
        if chosen.get("model") == "builtin":
            return real(models, *arguments, **chosen)
        check = chosen.get("check_cancelled") or (lambda: None)

        def script(evidence: Sequence[Evidence]) -> Iterator[Part]:
            yield Sentence(IS_LONG, (cited(evidence, IS_LONG),))
            while not go_on.wait(0.05):
                check()
            yield Sentence(IS_THICK, (cited(evidence, IS_THICK),))

        return ScriptedAnswerer(script)

    monkeypatch.setattr(ModelChoice, "answerer", answerer)
    yield go_on
    go_on.set()


def begin(tab: Tab, question: str = QUESTION) -> Locator:
    """Asks, and returns the turn once its first sentence is there."""
    before = tab.find(".turn").count()
    tab.question.fill(question)
    tab.page.keyboard.press("Enter")
    turn = tab.find(".turn").nth(before)
    expect(turn.locator(".sentence")).to_have_count(1)
    return turn


def test_a_reload_and_another_tab_see_an_answer_from_its_beginning(
    opened: Open, live: Live, gate: threading.Event
) -> None:
    tab = opened(live)
    begin(tab)
    expect(tab.find("#conversations a")).to_contain_text(QUESTION)  # at once, with its address
    tab.reload()
    other = opened(live, WIDE, f"#c/{id_of(tab)}")
    for each in (tab, other):
        expect(each.find(".turn .sentence")).to_have_count(1)
        expect(each.find("#stop")).to_be_visible()
    gate.set()
    for each in (tab, other):
        expect(each.find(".turn .sentence")).to_have_count(2)
        expect(each.find(".turn .actions")).to_be_visible()


def test_a_stop_in_one_tab_is_a_stop_in_all(opened: Open, live: Live, gate: threading.Event) -> None:
    tab, other = opened(live), opened(live)
    begin(tab)
    gate.set()
    expect(tab.find(".turn .actions")).to_be_visible()
    other.open(f"#c/{id_of(tab)}")
    expect(other.find(".turn .actions")).to_be_visible()
    gate.clear()
    begin(tab, "And how thick is its ice?")
    expect(other.find(".turn").nth(1).locator(".sentence")).to_have_count(1)  # asked in the other tab
    other.page.get_by_role("button", name="Stop").click()
    for each in (tab, other):
        expect(each.find(".turn").nth(1).locator(".note")).to_contain_text("What it had shown is kept.")
        expect(each.find("#send")).to_be_visible()


def test_an_answer_goes_on_while_another_conversation_is_shown(opened: Open, live: Live, gate: threading.Event) -> None:
    tab = opened(live)
    begin(tab)
    tab.find("#new").click()
    expect(tab.find("#send")).to_be_visible()
    tab.find("#conversations a").first.click()
    expect(tab.find("#stop")).to_be_visible()
    gate.set()
    expect(tab.find(".turn .sentence")).to_have_count(2)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set, the server of the models is away."""
    is_away = threading.Event()
    real: Callable[..., Any] = ModelChoice.answerer

    def answerer(models: ModelChoice, *arguments: Any, **chosen: Any) -> Any:
        if is_away.is_set() and chosen.get("model") != "builtin":
            raise ModelServerError("Ollama is away.", "Start it.")
        return real(models, *arguments, **{**chosen, "model": "builtin"})

    monkeypatch.setattr(ModelChoice, "answerer", answerer)
    monkeypatch.setattr(ModelChoice, "answer_model", lambda _, model=None: model or "llama3.1:8b")
    return is_away


def test_asking_again_leaves_the_other_questions_where_they_are(
    opened: Open, live: Live, away: threading.Event
) -> None:
    tab = opened(live)
    away.set()
    asked = [QUESTION, SLEEP, EDITED]
    for at, question in enumerate(asked):
        tab.question.fill(question)
        tab.page.keyboard.press("Enter")
        expect(tab.find(".turn").nth(at).get_by_role("alert")).to_contain_text("Ollama is away.")
    tab.reload()
    expect(tab.find(".turn").get_by_role("alert")).to_have_count(3)
    first, second, third = (tab.find(".turn").nth(at) for at in range(3))
    first.get_by_role("button", name="Answer with quotes").click()
    expect(first.locator(".made")).to_contain_text("built in")
    away.clear()
    third.get_by_role("button", name="Ask again").click()
    expect(third.locator(".actions")).to_be_visible()
    expect(second.get_by_role("alert")).to_be_visible()
    expect(turns(tab)).to_have_text(asked)
    tab.reload()
    expect(turns(tab)).to_have_text(asked)
    expect(tab.find(".turn").nth(1).get_by_role("alert")).to_be_visible()
    assert [turn["turn"] for turn in stored(tab, id_of(tab))["turns"]] == [1, 3]


def test_questions_to_a_server_that_is_off_stay_until_they_are_asked(opened: Open, app: App) -> None:
    asked = [QUESTION, SLEEP, EDITED]
    with Live(app) as first:
        tab = opened(first)
        expect(tab.find(".welcome h1")).to_be_visible()
    for at, question in enumerate(asked):
        tab.question.fill(question)
        tab.page.keyboard.press("Enter")
        expect(tab.find(".turn").nth(at).get_by_role("alert")).to_contain_text("not responding")
    with Live(app, port=first.port):
        tab.reload()
        expect(turns(tab)).to_have_text(asked)
        turn = tab.find(".turn").first
        turn.get_by_role("button", name="Ask again").click()
        expect(turn.locator(".actions")).to_be_visible()
        expect(turns(tab)).to_have_text(asked)
        tab.find(".turn").nth(1).get_by_role("button", name="Remove the question").click()
        expect(turns(tab)).to_have_text([QUESTION, EDITED])
        tab.find(".turn").nth(1).get_by_role("button", name="Ask again").click()
        expect(tab.find(".turn").nth(1).locator(".actions")).to_be_visible()
        tab.reload()
        expect(turns(tab)).to_have_text([QUESTION, EDITED])
        expect(tab.find(".turn .actions")).to_have_count(2)
        tab.page.goto("about:blank")  # what it loads ahead is not cut off with the server


def test_a_stopped_answer_keeps_what_was_written(opened: Open, live: Live, gate: threading.Event) -> None:
    tab = opened(live)
    tab.question.fill(QUESTION)
    tab.page.keyboard.press("Enter")
    turn = tab.find(".turn").first
    expect(turn.locator(".sentence")).to_have_count(1)
    tab.page.get_by_role("button", name="Stop").click()
    expect(turn.locator(".note")).to_have_text("You stopped this answer. What it had shown is kept.")
    expect(turn.locator(".sentence")).to_have_text(re.compile(re.escape(IS_LONG)))
    expect(turn.locator(".sources")).to_contain_text("1 page in 1 paper")
    expect(tab.find("#send")).to_be_visible()
    gate.set()
    follow_up = tab.ask("And how thick is its ice?")
    expect(follow_up.locator(".sentence")).to_have_count(2)
    (first, second) = stored(tab, id_of(tab))["turns"]
    assert (first["stopped"], len(first["sentences"]), second["parent"]) == (True, 1, 1)
    tab.reload()
    expect(turn.locator(".note")).to_have_text("You stopped this answer. What it had shown is kept.")
    expect(tab.find(".turn")).to_have_count(2)
    # Asked again, it is whole, and another branch.
    turn.get_by_role("button", name="Ask again").click()
    turn.locator(".menu button").first.click()
    expect(turn.locator(".branches")).to_contain_text("2 of 2")
    expect(turn.locator(".sentence")).to_have_count(2)


def test_a_double_click_on_ask_stops_nothing_and_a_second_question_is_told_to_wait(
    opened: Open, live: Live, gate: threading.Event
) -> None:
    tab = opened(live)
    tab.question.fill(QUESTION)
    tab.find("#send").dblclick(delay=20)
    expect(tab.find(".turn .sentence").first).to_be_visible()
    tab.question.fill(SLEEP)
    tab.page.keyboard.press("Enter")
    expect(tab.find("#toast")).to_contain_text("Wait for the answer, or stop it.")
    expect(tab.question).to_have_value(SLEEP)
    gate.set()
    expect(tab.find(".turn .actions")).to_have_count(1)
    expect(tab.find(".turn .note")).to_have_count(0)


def test_the_pages_of_an_answer_are_drawn_while_it_is_made(opened: Open, live: Live, gate: threading.Event) -> None:
    tab = opened(live)
    tab.question.fill(QUESTION)
    with tab.page.expect_request("**/pages/*.png?*"):
        tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("button", name="Stop")).to_be_visible()
    gate.set()
    expect(tab.find("#send")).to_be_visible()


# Branches


def test_a_question_is_edited_and_the_earlier_branch_stays(opened: Open, live: Live) -> None:
    tab = opened(live)
    tab.ask(QUESTION)
    tab.ask(SLEEP)
    conversation = id_of(tab)
    tab.page.get_by_role("button", name="Edit this question").first.click()
    box = tab.page.get_by_role("textbox", name="Edited question")
    expect(box).to_be_focused()
    expect(box).to_have_value(QUESTION)
    tab.page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    edit = tab.page.get_by_role("button", name="Edit this question").first
    expect(edit).to_be_focused()
    tab.page.keyboard.press("Enter")
    box.fill(EDITED)
    tab.page.keyboard.press("Enter")
    expect(turns(tab)).to_have_text([EDITED])
    branches = tab.find(".branches").first
    expect(branches).to_contain_text("2 of 2")
    tab.page.get_by_role("button", name="Previous branch").click()
    expect(turns(tab)).to_have_text([QUESTION, SLEEP])
    expect(branches).to_contain_text("1 of 2")
    expect(tab.page.get_by_role("button", name="Next branch")).to_be_focused()
    expect(tab.find("#said")).to_have_text("1 of 2")
    tab.reload()
    expect(turns(tab)).to_have_text([QUESTION, SLEEP])
    tab.page.go_back()
    expect(turns(tab)).to_have_text([EDITED])
    tab.page.go_forward()
    expect(turns(tab)).to_have_text([QUESTION, SLEEP])
    tab.ask("And what do they eat?")
    expect(turns(tab)).to_have_count(3)
    assert [turn["turn"] for turn in stored(tab, conversation)["turns"]] == [1, 2, 4]
    assert [turn["turn"] for turn in stored(tab, conversation, "?turn=3")["turns"]] == [3]
    expect(tab.find("#export")).to_have_attribute("href", f"conversations/{conversation}/markdown")
    tab.page.get_by_role("button", name="Next branch").click()
    expect(turns(tab)).to_have_text([EDITED])
    expect(tab.find("#export")).to_have_attribute("href", f"conversations/{conversation}/markdown?turn=3")


def test_an_edited_question_without_an_answer_leads_back(opened: Open, live: Live) -> None:
    tab = opened(live)
    tab.ask(QUESTION)
    tab.page.route(
        "**/chat/stream", lambda route: route.fulfill(status=500, body='{"error": "No.", "remedy": "Wait."}')
    )
    tab.page.get_by_role("button", name="Edit this question").click()
    tab.page.get_by_role("textbox", name="Edited question").fill(EDITED)
    tab.page.keyboard.press("Enter")
    expect(tab.find(".turn").get_by_role("alert")).to_contain_text("No.")
    expect(turns(tab)).to_have_text([EDITED])
    tab.page.get_by_role("button", name="Back to the earlier answer").click()
    expect(turns(tab)).to_have_text([QUESTION])
    tab.page.unroute_all()
    tab.expected("500")


def test_a_question_asked_while_its_conversation_loads_follows_it(opened: Open, live: Live) -> None:
    tab = opened(live)
    tab.ask(QUESTION)
    held: list[Route] = []
    conversation = re.compile(f"/conversations/{id_of(tab)}$")
    tab.page.route(conversation, lambda route: held.append(route))
    with tab.page.expect_request(conversation):
        tab.reload()
    expect(tab.find("#turns .working")).to_be_visible()
    tab.question.fill(EDITED)
    for _ in range(2):
        tab.page.keyboard.press("Enter")
    expect(tab.question).to_have_value(EDITED)
    held.pop().continue_()
    expect(turns(tab)).to_have_text([QUESTION, EDITED])
    expect(tab.question).to_have_value("")
    expect(tab.find(".turn").last.locator(".actions")).to_be_visible()
    expect(turns(tab)).to_have_count(2)


def test_two_tabs_that_ask_at_once_make_two_branches(opened: Open, live: Live) -> None:
    one = opened(live)
    one.ask(QUESTION)
    other = opened(live, WIDE, f"#c/{id_of(one)}")
    expect(other.find(".turn .actions")).to_have_count(1)
    one.page.route("**/events", lambda route: route.abort())  # so that it does not learn of the other's question
    one.reload()
    expect(turns(one)).to_have_text([QUESTION])
    other.ask(SLEEP)
    one.ask(EDITED)
    expect(turns(one)).to_have_text([QUESTION, EDITED])
    expect(one.find(".turn").nth(1).locator(".branches")).to_contain_text("2 of 2")
    expect(other.find(".turn").nth(1).locator(".branches")).to_contain_text("1 of 2")


# The model


def test_the_picker_has_the_models_real_name(opened: Open, live: Live) -> None:
    tab = opened(live)
    picker = tab.page.get_by_label("Model", exact=True)
    expect(picker).to_be_visible()
    expect(picker.locator("option")).to_have_text(["Quotes (built in)"])

    def with_models(route: Any) -> None:
        health = route.fetch().json()
        route.fulfill(json={**health, "model": "llama3.1:8b", "chat_models": ["llama3.1:8b", "<b>qwen</b>"]})

    tab.page.route("**/health", with_models)
    tab.reload()
    expect(picker.locator("option")).to_have_text(["llama3.1:8b", "Quotes (built in)", "<b>qwen</b>"])
    picker.select_option("Quotes (built in)")
    assert "model=builtin" in tab.page.url
    tab.open("#ask")
    tab.page.reload()
    expect(picker).to_have_value("builtin")  # remembered
    turn = tab.ask(SLEEP)
    turn.get_by_role("button", name="Ask again").click()
    expect(turn.locator(".menu button")).to_have_text(["llama3.1:8b", "Quotes (built in)", "<b>qwen</b>"])


# Options in the address


def test_a_link_and_a_reload_ask_in_the_same_way(opened: Open, live: Live) -> None:
    tab = opened(live)
    tab.tolerated(r"404 .*/scope")  # no paper has these years or this tag, which the line above the question says
    tab.open("#ask?year=2014-&style=report&k=7&deep=on")
    expect(tab.find("#chosen .tag-name")).to_have_text(["Years: 2014-", "report", "7 passages"])
    expect(tab.page.get_by_role("switch", name="Deep search")).to_be_checked()
    tab.page.get_by_role("button", name="Remove: report").click()
    assert "style" not in tab.page.url
    tab.reload()
    expect(tab.find("#chosen .tag-name")).to_have_text(["Years: 2014-", "7 passages"])
    tab.page.evaluate("location.hash = '#ask?tag=to+read'")
    expect(tab.find("#chosen .tag-name")).to_have_text(["Tag: to read"])
    tab.page.go_back()
    expect(tab.find("#chosen .tag-name")).to_have_text(["Years: 2014-", "7 passages"])
    tab.find(".views a[href='#library']").click()
    tab.find("#to-ask").click()
    expect(tab.find("#chosen .tag-name")).to_have_text(["Years: 2014-", "7 passages"])
    tab.page.get_by_role("button", name="New conversation").click()
    expect(tab.find("#chosen .tag-name")).to_have_text(["7 passages"])  # what is searched belongs to a conversation


# Suggestions


@pytest.fixture(scope="module")
def rafts(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("suggestions")
    sectioned_pdf(folder / "papers" / "otters.pdf", OTTER_TITLE, RAFT)
    sectioned_pdf(folder / "papers" / "ice.pdf", ICE_TITLE, ICE, CITES_OTTERS)
    for name, animals in (("SealCam", "seals"), ("WhaleEar", "whales")):
        sections = {
            heading: text.replace("OtterNet", name).replace("sea otters", animals).replace("otter", animals[:-1])
            for heading, text in RAFT.items()
        }
        title = f"{name}: Counting {animals.title()} by Sound"
        sectioned_pdf(folder / "papers" / f"{animals}.pdf", title, sections)
    with Live(builtin_app(folder, folder / "papers")) as made:
        yield made


def test_questions_that_the_papers_answer_are_suggested(opened: Open, rafts: Live) -> None:
    examples: list[str] = []
    with rafts.client() as client:  # each request looks on for a limited time

        def find() -> list[str]:
            examples[:] = client.get("/examples").json()["questions"]
            return examples

        until(find)
    tab = opened(rafts)
    shown = tab.find("#welcome .suggestion")
    expect(shown).to_have_text(examples)
    expect(tab.page.get_by_role("heading", name="Questions that your papers answer")).to_be_visible()
    shown.filter(has_text=EXAMPLE).focus()
    tab.page.keyboard.press("Enter")
    turn = tab.find(".turn").first
    expect(turn.locator(".asked")).to_have_text(EXAMPLE)
    expect(turn.locator(".actions")).to_be_visible()
    with rafts.client() as client:
        follow_ups = client.get(f"/conversations/{id_of(tab)}/turns/1/followups").json()["questions"]
    assert follow_ups
    expect(turn.locator(".suggestion")).to_have_text(follow_ups)
    tab.reload()
    expect(turn.locator(".suggestion")).to_have_text(follow_ups)
    turn.locator(".suggestion").first.click()
    expect(turns(tab)).to_have_text([EXAMPLE, follow_ups[0]])
    expect(tab.find(".turn").first.locator(".suggestion")).to_have_count(0)  # only below the last answer
    expect(tab.find(".turn").nth(1).locator(".actions")).to_be_visible()


def test_without_suggestions_nothing_is_shown(opened: Open, live: Live) -> None:
    tab = opened(live)
    with live.client() as client:
        assert client.get("/examples").json()["questions"] == []
    expect(tab.page.get_by_role("heading", name="What do you want to know?")).to_be_visible()
    expect(tab.find(".suggestions")).to_be_hidden()


# The list


def entry(tab: Tab, title: str) -> Locator:
    return tab.find("#conversations li").filter(has_text=title)


def choose(tab: Tab, title: str, action: str) -> None:
    entry(tab, title).get_by_role("button", name="Change").click()
    tab.find(".menu:popover-open").get_by_role("button", name=action, exact=True).click()


def test_a_conversation_is_renamed_pinned_and_found_in_two_tabs(opened: Open, live: Live) -> None:
    tab = opened(live)
    tab.ask(QUESTION)
    tab.page.get_by_role("button", name="New conversation").click()
    tab.ask(SLEEP)
    other = opened(live)
    expect(other.find("#conversations .title")).to_have_text([SLEEP, QUESTION])
    choose(tab, QUESTION, "Rename")
    field = tab.page.get_by_role("textbox", name="Title of the conversation")
    expect(field).to_be_focused()
    expect(field).to_have_value(QUESTION)
    field.fill("Never mind")
    tab.page.keyboard.press("Escape")
    expect(tab.find("#conversations .title")).to_have_text([SLEEP, QUESTION])
    choose(tab, QUESTION, "Rename")
    field.fill(HOSTILE)
    tab.page.keyboard.press("Enter")
    shown = "<img src=x onerror=window.ran=true> (Otter 2014, p. 3)"
    expect(entry(tab, shown)).to_have_count(1)
    expect(entry(tab, shown).get_by_role("button", name="Change")).to_be_focused()
    expect(entry(other, shown)).to_have_count(1)  # told by the server
    choose(tab, shown, "Pin")
    expect(tab.find("#conversations h2")).to_have_text(["Pinned", "Today"])
    expect(other.find("#conversations .title").first).to_contain_text("<img")
    choose(tab, shown, "Unpin")
    expect(tab.find("#conversations h2")).to_have_text(["Today"])
    tab.page.get_by_role("searchbox", name="Find a conversation").fill("otters kelp")
    expect(tab.find("#conversations .title")).to_have_text([SLEEP])
    expect(tab.find("#side [role=status]")).to_have_text("1 conversation")
    tab.page.get_by_role("searchbox", name="Find a conversation").fill("xqzzyv")
    expect(tab.find("#conversations .none")).to_have_text("No conversation has these words.")
    assert (tab.scrolls_sideways(), other.scrolls_sideways()) == ([], [])
    assert tab.page.evaluate("window.ran") is None


def test_a_conversation_that_is_deleted_in_another_tab_is_left(opened: Open, live: Live) -> None:
    tab = opened(live)
    tab.ask(QUESTION)
    other = opened(live, WIDE, f"#c/{id_of(tab)}")
    expect(other.find(".turn .actions")).to_be_visible()
    tab.ask(SLEEP)
    expect(turns(other)).to_have_text([QUESTION, SLEEP])  # what is asked in one tab appears in the other
    choose(tab, QUESTION, "Delete")
    expect(other.find("#toast")).to_have_text("This conversation was deleted.")
    expect(other.find("#welcome")).to_be_visible()
    assert other.page.evaluate("location.hash") == "#ask"


@pytest.fixture
def many(browser: Browser, tmp_path: Path) -> Iterator[Live]:
    app: App = builtin_app(tmp_path, small_papers(tmp_path / "papers"))
    with Live(app) as made:
        yield made


def test_a_long_list_is_grouped_and_renders_what_is_in_view(many: Live, opened: Open) -> None:
    now = datetime.now(UTC)
    ages = [timedelta(0), timedelta(days=2), *[timedelta(days=20 + number) for number in range(400)]]
    listed = [
        {
            "id": f"{number:016d}",
            "title": f"Question {number}",
            "updated": (now - age).isoformat(timespec="seconds"),
            "turns": 1,
            "pinned": False,
        }
        for number, age in enumerate(ages)
    ]
    tab = opened(many)
    tab.page.route("**/conversations", lambda route: route.fulfill(json={"conversations": listed}))
    tab.reload()
    expect(tab.find("#conversations h2")).to_have_text(["Today", "This week", "Earlier"])
    expect(tab.find("#conversations .group").nth(1).locator(".title")).to_have_text(["Question 1"])
    expect(tab.find("#conversations li").first).to_be_visible()
    assert tab.find("#conversations li").count() < 100
    side = tab.find("#side")
    side.evaluate("(node) => (node.scrollTop = node.scrollHeight)")
    expect(entry(tab, "Question 401")).to_be_visible()
    assert tab.find("#conversations li").count() < 100


# Each state


@pytest.mark.parametrize("size", [PHONE, TABLET, WIDE], ids=["phone", "tablet", "wide"])
def test_every_state_of_a_conversation_is_accessible_and_fits(opened: Open, rafts: Live, size: tuple[int, int]) -> None:
    tab = opened(rafts, size)
    found: dict[str, list[str]] = {}

    def check(name: str) -> None:
        found[name] = [*tab.scrolls_sideways(), *tab.inaccessible()]

    expect(tab.find("#welcome .suggestion").first).to_be_visible()
    check("examples")
    turn = tab.ask(EXAMPLE)
    expect(turn.locator(".suggestion").first).to_be_visible()
    check("follow-ups")
    turn.get_by_role("button", name="Edit this question").click()
    check("edit")
    tab.page.get_by_role("textbox", name="Edited question").fill(HOSTILE)
    tab.page.keyboard.press("Enter")
    expect(tab.find(".branches")).to_contain_text("2 of 2")
    check("branches")
    if size[0] < WIDE[0]:
        tab.page.get_by_role("button", name="Conversations").click()
    tab.find("#conversations li").first.get_by_role("button", name="Change").click()
    expect(tab.find(".menu:popover-open")).to_be_visible()
    check("menu")
    tab.find(".menu:popover-open").get_by_role("button", name="Rename").click()
    check("rename")
    assert {name: problems for name, problems in found.items() if problems} == {}
    assert tab.page.evaluate("window.ran") is None
