"""An answer to read: sentences that flow, the card of a citation, and words that are selected, in Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from folio.answer_types import Evidence, Sentence
from folio.model_choice import ModelChoice
from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.page import clipboard, reader_shows
from tests.helpers.scripted_answerer import (
    GAUGE,
    IS_LONG,
    IS_THICK,
    RETREATS,
    Part,
    ScriptedAnswerer,
    cited,
    every_outcome,
    script_answers,
)

pytestmark = pytest.mark.slow

QUESTION = "How long is the Aletsch glacier?"
SHORTER = "Its tongue gets shorter by about 40 metres a year."
RUN = "window.ran=true"
EVIL = f"The gauge <img src=x onerror={RUN}> is [other, p. 3] \u202e<script>{RUN}</script> from 1922."
TABLET = (1024, 768)

Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def live(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("prose")
    with Live(builtin_app(folder, small_papers(folder / "papers"))) as made:
        yield made


def text(evidence: Sequence[Evidence]) -> Iterator[Part]:
    """An answer in four sentences, two of them in the model's own words."""
    yield Sentence(IS_LONG, (cited(evidence, IS_LONG),))
    yield Sentence(SHORTER, (cited(evidence, RETREATS, 0.5),), outcome="reworded", verified_by="a reader")
    yield Sentence(IS_THICK, (cited(evidence, IS_THICK),))
    yield Sentence(EVIL, (cited(evidence, GAUGE, 0.5),), outcome="reworded", verified_by="a reader")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default model writes `text`; the built-in answers are as they are."""
    real: Callable[..., Any] = ModelChoice.answerer

    def answerer(models: ModelChoice, *arguments: Any, **chosen: Any) -> Any:
        builtin = chosen.get("model") == "builtin"
        return real(models, *arguments, **chosen) if builtin else ScriptedAnswerer(text)

    monkeypatch.setattr(ModelChoice, "answerer", answerer)


def notes(tab: Tab) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tab.context.request.get(f"{tab.url}/notes").json()["notes"]
    return found


def quotes_of(note: dict[str, Any]) -> list[str]:
    return [" ".join(quote["quote"].split()) for quote in note["quotes"]]


def select(tab: Tab, words: Locator) -> Locator:
    """Selects the text of an element; returns the bar that is shown for it."""
    words.scroll_into_view_if_needed()
    words.select_text()
    bar = tab.find(".selecting")
    expect(bar).to_be_visible()
    return bar


@pytest.mark.usefixtures("written")
def test_a_model_answers_in_a_text_whose_citations_show_their_quotes(opened: Open, live: Live) -> None:
    tab = opened(live)
    turn = tab.ask(QUESTION)
    expect(turn.locator("p.prose")).to_have_count(1)
    expect(turn.locator("p.prose .sentence")).to_have_count(4)
    expect(turn.locator(".sentences blockquote")).to_have_count(0)
    expect(turn.locator(".prose .sign")).to_have_text(["≈", "≈"])  # marks stay
    expect(turn.locator(".legend")).to_contain_text("each citation shows its quote. Checked by a reader.")
    assert "Reworded: " + SHORTER in turn.locator(".prose").aria_snapshot().replace("\n", " ")
    assert "(other, p. 3) \u202e<script>" in turn.locator(".prose").inner_text()  # hostile words cite nothing
    chip, card = turn.locator(".prose .chip").nth(1), tab.find(".card")
    chip.hover()
    expect(card).to_be_visible()
    expect(card.locator("blockquote")).to_have_text(f"“{RETREATS}”")
    expect(card).to_contain_text("The Aletsch Glacier")
    expect(card).to_contain_text("p. 2")
    card.hover()  # it stays while the pointer is in it
    card.get_by_role("button", name="Note").click()
    expect(tab.find("#toast")).to_have_text("The statement and its quotes are in your notes.")
    (note,) = notes(tab)
    assert (note["statement"], quotes_of(note)) == (SHORTER, [RETREATS])
    assert (note["conversation"], note["turn"]) == (tab.page.url.partition("#c/")[2], 1)
    tab.find("#models-button").hover()
    expect(card).to_have_count(0)
    chip.click()  # a pointer need not take the way over the card
    reader_shows(tab, 2)
    expect(card).to_have_count(0)
    assert tab.page.evaluate("window.ran") is None
    tab.context.request.delete(f"{tab.url}/notes/{note['id']}")


@pytest.mark.usefixtures("written")
def test_the_card_is_reached_and_closed_by_keyboard(opened: Open, live: Live) -> None:
    tab = opened(live)
    turn = tab.ask(QUESTION)
    press = tab.page.keyboard.press
    chip, card = turn.locator(".prose .chip").first, tab.find(".card")
    tab.find("#ask-scroll").focus()
    for _ in range(12):
        press("Tab")
        if chip.evaluate("(node) => node === document.activeElement"):
            break
    expect(card).to_be_visible()
    expect(chip).to_have_attribute("aria-expanded", "true")
    press("Tab")
    expect(card.locator("blockquote")).to_be_focused()
    press("Tab")
    expect(card.get_by_role("button", name="Open")).to_be_focused()
    press("Escape")
    expect(card).to_have_count(0)
    expect(chip).to_be_focused()
    press("Shift+Tab")
    press("Tab")
    expect(card).to_be_visible()
    for _ in range(4):
        press("Tab")  # quote, Open, Note, and on to the next citation, which shows its own
    expect(turn.locator(".prose .chip").nth(1)).to_be_focused()
    expect(card.locator("blockquote")).to_have_text(f"“{RETREATS}”")
    press("Tab")
    press("Tab")
    press("Enter")
    reader_shows(tab, 2)
    press("Escape")
    expect(turn.locator(".prose .chip").nth(1)).to_be_focused()


@pytest.mark.usefixtures("written")
def test_a_tap_shows_the_card(browser: Browser, live: Live) -> None:
    context = browser.new_context(viewport={"width": PHONE[0], "height": PHONE[1]}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(live.url)
    page.get_by_role("textbox", name="Your question").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator(".actions")).to_be_visible()
    page.locator(".prose .chip").nth(1).tap()
    card = page.locator(".card")
    expect(card.locator("blockquote")).to_have_text(f"“{RETREATS}”")
    box = card.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE[0]
    page.locator(".asked").tap()
    expect(card).to_have_count(0)
    page.locator(".prose .chip").first.tap()
    card.get_by_role("button", name="Open").tap()
    expect(page.locator("#reader .page-field")).to_have_value("1")
    context.close()


@pytest.mark.usefixtures("written")
def test_the_way_of_showing_answers_is_switched_and_remembered(opened: Open, live: Live) -> None:
    tab = opened(live)
    turn = tab.ask(QUESTION)
    switch = turn.get_by_role("switch", name="Show quotes")
    expect(switch).not_to_be_checked()
    switch.focus()
    tab.page.keyboard.press("Space")
    expect(turn.locator(".sentences .reworded blockquote").first).to_have_text(f"“{RETREATS}”")
    expect(turn.locator(".prose")).to_have_count(0)
    expect(switch).to_be_focused()
    tab.reload()
    expect(turn.locator(".sentences .reworded blockquote").first).to_be_visible()
    switch.click()
    expect(turn.locator(".prose .sentence")).to_have_count(4)


def test_quotes_of_the_built_in_answers_stand_by_themselves(opened: Open, live: Live) -> None:
    tab = opened(live)
    turn = tab.ask(QUESTION)
    expect(turn.locator(".sentence").first).to_be_visible()
    expect(turn.locator(".prose")).to_have_count(0)


def test_what_is_no_sentence_stays_a_block_in_a_text(opened: Open, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    script_answers(monkeypatch, every_outcome)
    tab = opened(live)
    turn = tab.ask(QUESTION)
    expect(turn.locator("p.prose")).to_have_count(1)
    expect(turn.locator("p.prose .sentence")).to_have_count(2)
    expect(turn.locator(".in-place")).to_be_visible()
    expect(turn.locator(".lines.aligned")).to_be_visible()
    expect(turn.locator(".left-out summary")).to_have_text("2 statements left out")


# Words that are selected


@pytest.mark.usefixtures("written")
def test_selected_words_are_asked_about(opened: Open, live: Live) -> None:
    tab = opened(live)
    turn = tab.ask(QUESTION)
    bar = select(tab, turn.locator(".prose .sentence > bdi").first)
    bar.get_by_role("button", name="Ask about this").click()
    expect(bar).to_have_count(0)
    tag = tab.find(".chosen-words")
    expect(tag).to_contain_text(f"“{IS_LONG}” The Aletsch Glacier, p. 1")
    expect(tab.question).to_be_focused()
    tag.get_by_role("button", name="Remove the selected words").click()
    expect(tag).to_be_hidden()
    select(tab, turn.locator(".prose .sentence > bdi").first).get_by_role("button", name="Ask about this").click()
    tag.get_by_role("button", name="What does this mean?").click()
    other = tab.find(".turn").nth(1)
    expect(other.locator(".about-words")).to_have_text(f"“{IS_LONG}” The Aletsch Glacier, p. 1")
    expect(other.locator(".actions")).to_be_visible()
    expect(tag).to_be_hidden()
    expect(tab.find("#chosen")).to_be_hidden()  # the paper of the words is not the scope of the next question
    tab.reload()
    expect(other.locator(".about-words")).to_have_text(f"“{IS_LONG}” The Aletsch Glacier, p. 1")
    expect(tab.find("#chosen")).to_be_hidden()
    stored = tab.context.request.get(f"{tab.url}/conversations/{tab.page.url.partition('#c/')[2].partition('?')[0]}")
    selected = stored.json()["turns"][1]["selection"]
    assert (" ".join(selected["text"].split()), selected["page"]) == (IS_LONG, 1)


@pytest.mark.usefixtures("written")
def test_selected_words_are_kept_and_copied_with_their_citation(opened: Open, live: Live) -> None:
    tab = opened(live)
    turn = tab.ask(QUESTION)
    bar = select(tab, turn.locator(".prose .sentence > bdi").nth(1))
    forms = bar.get_by_role("button", name="Copy with citation")
    forms.click()
    expect(bar.get_by_role("button", name="Plain text")).to_be_focused()
    tab.page.keyboard.press("Enter")
    expect(tab.find("#toast")).to_have_text("Words and citation copied.")
    assert clipboard(tab) == f"“{SHORTER}” [“The Aletsch Glacier”, p. 2]"
    bar.get_by_role("button", name="Markdown").click()
    until(lambda: clipboard(tab).startswith(f"> {SHORTER}\n>\n> — "))
    assert "The Aletsch Glacier" in clipboard(tab).partition("— ")[2]
    bar.get_by_role("button", name="LaTeX and BibTeX").click()
    until(lambda: clipboard(tab).startswith(f"``{SHORTER}''~\\cite[p.~2]{{"))
    assert "title = {{The Aletsch Glacier}}" in clipboard(tab)
    forms.click()
    expect(bar.get_by_role("button", name="Plain text")).to_be_hidden()
    bar.get_by_role("button", name="Note").click()
    expect(tab.find("#toast")).to_contain_text("in your notes")
    tab.page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    quote = turn.locator(".sources blockquote").first
    select(tab, quote.locator("bdi")).get_by_role("button", name="Note").click()
    expect(tab.find("#toast")).to_have_text("The quote is in your notes.")
    kept = notes(tab)
    assert [note["statement"] for note in kept].count("") == 1
    for note in kept:
        assert quotes_of(note) == [RETREATS]
        tab.context.request.delete(f"{tab.url}/notes/{note['id']}")


# Each state


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("size", [(390, 844), TABLET, WIDE], ids=["phone", "tablet", "wide"])
def test_every_state_of_an_answer_is_accessible_and_fits(opened: Open, live: Live, size: tuple[int, int]) -> None:
    tab = opened(live, size)
    turn = tab.ask(QUESTION)
    found: dict[str, list[str]] = {}

    def check(name: str) -> None:
        found[name] = [*tab.scrolls_sideways(), *tab.inaccessible()]

    check("text")
    turn.locator(".prose .chip").nth(1).hover()
    expect(tab.find(".card")).to_be_visible()
    check("card")
    tab.page.keyboard.press("Escape")
    select(tab, turn.locator(".prose .sentence > bdi").first)
    check("selected")
    tab.find(".selecting").get_by_role("button", name="Ask about this").click()
    check("words")
    turn.get_by_role("switch", name="Show quotes").click()
    check("quotes")
    turn.get_by_role("button", name="Ask again").click()
    expect(turn.locator(".menu")).to_be_visible()
    check("models")
    assert {name: problems for name, problems in found.items() if problems} == {}
