"""Answers with every outcome on the page, and papers that were retracted, in the installed Chromium."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from folio.answer_types import SUMMARY, Checking, Evidence, RejectedSentence, Sentence, Thinking
from folio.papers.work import NoticeKind, Work
from folio.store import works
from folio.store.indexes import LIBRARY
from folio.store.library import Library
from folio.store.works import Notice
from tests.helpers.browser import PHONE, Tab, sizes
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import clipboard, row, rows
from tests.helpers.paths import ROOT
from tests.helpers.scripted_answerer import (
    FALSE,
    GAUGE,
    IS_LONG,
    IS_THICK,
    OTHER_REASON,
    REASON,
    RETREATS,
    STEPS,
    Part,
    Script,
    cited,
    every_outcome,
    script_answers,
)

ALETSCH = "“The Aletsch Glacier”"  # as citations name it
pytestmark = pytest.mark.slow

QUESTION = "How long is the Aletsch glacier?"
TALL = (1440, 1600)
WAIT_S = 60


@pytest.fixture(scope="module")
def live(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("outcomes")
    with Live(builtin_app(folder, small_papers(folder / "papers"))) as made:
        yield made


@pytest.fixture(params=sizes(PHONE, TALL), ids=str)
def tab(browser: Browser, live: Live, request: pytest.FixtureRequest) -> Iterator[Tab]:
    found = Tab(browser, live.url, request.param)
    show_quotes(found)
    yield found
    found.close()


def show_quotes(tab: Tab) -> None:
    """Choose that answers are shown statement by statement; a model's answer is a text otherwise."""
    tab.page.evaluate("localStorage.setItem('folio-answers', 'check')")
    tab.reload()


@pytest.fixture
def turn(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> Locator:
    """An answer with every outcome."""
    script_answers(monkeypatch, every_outcome)
    return tab.ask(QUESTION)


def test_reworded_statements_are_marked_above_their_quotes(tab: Tab, turn: Locator) -> None:
    reworded = turn.locator(".reworded")
    expect(turn.locator(".sentence")).to_have_count(4)
    expect(reworded.locator("blockquote")).to_have_text([f"“{RETREATS}”", f"“{GAUGE}”"])
    for quote in reworded.locator("blockquote").all():
        expect(quote).to_be_visible()
    expect(reworded.locator(".chip")).to_have_text([f"{ALETSCH}, p. {page}: open the page" for page in (2, 3)])
    # The sign is for the eye, a word for the ear, and neither is colour.
    expect(reworded.locator(".sign")).to_have_text(["≈", "≈"])
    expect(reworded.locator(".sign").first).to_have_attribute("aria-hidden", "true")
    heard = reworded.first.aria_snapshot()
    assert "Reworded: Its tongue gets shorter by about 40 metres a year." in heard.replace("\n", " ")
    assert "≈" not in heard
    expect(turn.locator(".legend")).to_have_text(
        "≈ Reworded: in the model's own words; the quote stands beneath. Checked by llama3.1:8b (Ollama)."
    )
    assert reworded.first.evaluate("(node) => getComputedStyle(node).borderInlineStartStyle") == "dotted"
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])


def test_a_replaced_statement_and_its_lines_are_shown(turn: Locator) -> None:
    expect(turn.locator(".sentence").nth(2).locator("p")).to_have_text(
        ["In place of a statement that the papers do not support:", f"{IS_THICK} {ALETSCH}, p. 2: open the page"]
    )
    lines = turn.locator(".sentence .lines")
    assert lines.inner_text() == STEPS
    measured = lines.evaluate("(node) => [node.getBoundingClientRect().height, getComputedStyle(node).lineHeight]")
    assert measured[0] / float(measured[1].removesuffix("px")) == pytest.approx(5, abs=0.2)
    assert "aligned" in (lines.get_attribute("class") or "")  # its table needs letters of one width


def test_what_was_left_out_is_behind_a_disclosure(tab: Tab, turn: Locator) -> None:
    left_out = turn.locator(".left-out")
    expect(left_out.locator("summary")).to_have_text("2 statements left out")
    expect(left_out.get_by_text(FALSE)).to_be_hidden()
    left_out.locator("summary").press("Enter")
    expect(left_out.get_by_text(FALSE)).to_be_visible()
    expect(left_out.locator(".reason")).to_have_text([f"Reason: {REASON}", f"Reason: {OTHER_REASON}"])
    assert left_out.locator(".lines").inner_text() == "Then:\n1. Stop.\n2. Rest."
    expect(turn.locator(".note")).to_have_count(0)
    assert tab.inaccessible() == []


def test_an_answer_is_copied_and_saved_with_its_marks(tab: Tab, turn: Locator) -> None:
    turn.get_by_role("button", name="Copy", exact=True).click()
    expect(tab.find("#toast")).to_have_text("Answer copied.")
    copied = clipboard(tab)
    golden = (ROOT / "tests" / "data" / "golden" / "copied-answer.txt").read_text(encoding="utf-8")
    assert copied.startswith(golden)
    streamed = turn.locator(".sentences").inner_html(), turn.locator(".legend").inner_html()
    tab.reload()
    expect(turn.locator(".actions")).to_be_visible()
    assert (turn.locator(".sentences").inner_html(), turn.locator(".legend").inner_html()) == streamed
    expect(turn.locator(".left-out summary")).to_have_text("2 statements left out")


def test_the_page_says_that_the_model_thinks(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Semaphore(0)

    def script(evidence: Sequence[Evidence]) -> Iterator[Part]:
        yield Thinking()
        assert go_on.acquire(timeout=WAIT_S)
        yield Sentence(IS_LONG, (cited(evidence, IS_LONG),))

    script_answers(monkeypatch, script)
    tab.question.fill(QUESTION)
    tab.page.keyboard.press("Enter")
    expect(tab.find(".turn .working")).to_have_text("scripted is thinking")
    expect(tab.find("#said")).to_have_text("The model is thinking.")
    go_on.release()
    expect(tab.find(".turn .sentence")).to_have_count(1)
    expect(tab.find(".turn .working")).to_be_hidden()


def test_the_page_says_how_many_statements_wait(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    script, go_on = stepwise()
    script_answers(monkeypatch, script)
    tab.question.fill(QUESTION)
    tab.page.keyboard.press("Enter")
    turn = tab.find(".turn")
    status, said = turn.locator(".working"), tab.find("#said")
    expect(status).to_have_text("Checking 2 more statements")
    expect(said).to_have_text("Checking 2 more statements.")
    expect(turn.locator(".sentence")).to_have_count(1)  # what is through is shown meanwhile
    go_on.release()
    expect(status).to_have_text("Checking 1 more statement")
    go_on.release()
    expect(status).to_contain_text("Reading ")
    go_on.release()
    expect(turn.locator(".actions")).to_be_visible()
    expect(status).to_be_hidden()
    expect(turn.locator(".legend")).to_contain_text("Not checked by a verifier.")


def stepwise() -> tuple[Script, threading.Semaphore]:
    """A script that waits for its semaphore each time that it has said how many statements wait."""
    go_on = threading.Semaphore(0)

    def script(evidence: Sequence[Evidence]) -> Iterator[Part]:
        yield Sentence(IS_LONG, (cited(evidence, IS_LONG),))
        for count in (2, 1, 0):
            yield Checking(count)
            assert go_on.acquire(timeout=WAIT_S)
        yield Sentence("It gets shorter.", (cited(evidence, RETREATS, 0.5),), outcome="reworded")

    return script, go_on


def test_in_a_summary_the_quote_is_in_its_item(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(evidence: Sequence[Evidence]) -> Iterator[Part]:
        for part in every_outcome(evidence):
            yield replace(part, section=SUMMARY) if isinstance(part, Sentence) else part

    script_answers(monkeypatch, script)
    turn = tab.ask(QUESTION)
    expect(turn.locator(".sentences ul > li")).to_have_count(4)
    expect(turn.locator(".sentences ul > li.reworded blockquote")).to_have_count(2)
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])


RUN = "window.ran=true"
EVIL = f"So:\n<img src=x onerror={RUN}>\n\tSources\n1. [other\n    p.   1] \u202e<script>{RUN}</script>\n" + "x" * 400


def test_lines_of_a_model_cite_nothing_and_never_run(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(evidence: Sequence[Evidence]) -> Iterator[Part]:
        quote = cited(evidence, GAUGE, 0.5)
        yield Sentence(EVIL, (quote,), outcome="reworded", verified_by=f"<img src=x onerror={RUN}>")
        yield RejectedSentence(EVIL, EVIL)

    script_answers(monkeypatch, script)
    turn = tab.ask(QUESTION)
    turn.locator(".left-out summary").click()
    expect(turn.locator(".sentence .lines")).to_contain_text(f"<img src=x onerror={RUN}>")
    for shown in turn.locator(".lines").all():
        assert "(other\n    p.   1) \ufffd<script>" in shown.inner_text()
    expect(turn.locator(".sentence .chip")).to_have_count(1)
    assert tab.scrolls_sideways() == []
    assert tab.find("main script, main img").count() == 0
    assert tab.page.evaluate("window.ran") is None


# A retracted paper is marked in words wherever it is shown

HAIRS = "How many hairs does the fur of a sea otter have?"
RETRACTED = "RETRACTED 2021-03-04 (doi:10.1234/notice)"
WARNING = f"Warning: this answer cites otters.pdf: {RETRACTED}."


@pytest.fixture(scope="module")
def noted(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("notices")
    app = builtin_app(folder, small_papers(folder / "papers"))
    with Live(app) as made:
        note(folder / "store" / LIBRARY, "otters.pdf", "retraction")
        note(folder / "store" / LIBRARY, "alps/glaciers.pdf", "correction")
        yield made


def note(library: Path, file: str, kind: NoticeKind) -> None:
    """Store a notice of a paper, as `fetch --updates` does in another process."""
    with closing(Library(library)) as opened:
        (paper,) = (paper for paper in opened.papers() if paper.file == file)
        with opened.database.transaction():
            (id,) = works.put(opened.database, [Work("crossref", title=paper.title, doi=f"10.1234/{kind}")])
            works.link_paper(opened.database, paper.id, id, "doi", 1.0)
            said = Notice(id, kind, "2021-03-04", "10.1234/notice", "crossref", works.now())
            works.add_notice(opened.database, said)


def test_an_answer_from_a_retracted_paper_says_so(opened: Callable[..., Tab], noted: Live) -> None:
    tab = opened(noted, PHONE)
    turn = tab.ask(HAIRS)
    expect(turn.locator(".warnings p")).to_have_text([WARNING])
    above = "(turn) => turn.querySelector('.warnings').getBoundingClientRect().bottom"
    assert turn.evaluate(f"{above} <= turn.querySelector('.sentences').getBoundingClientRect().top")
    chip = turn.locator(".sentences .chip").first
    expect(chip.locator("strong")).to_have_text("RETRACTED")
    assert "otters.pdf, RETRACTED p.1" in (chip.text_content() or "")
    expect(turn.locator(".sources .flag").first).to_have_text(RETRACTED)
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    turn.get_by_role("button", name="Copy", exact=True).click()
    expect(tab.find("#toast")).to_have_text("Answer copied.")
    copied = clipboard(tab).splitlines()
    assert copied[0] == WARNING
    assert f"   {RETRACTED}" in copied
    tab.reload()  # the saved answer
    expect(tab.find(".turn .warnings p")).to_have_text([WARNING])
    expect(tab.find(".turn .sentences .chip strong").first).to_have_text("RETRACTED")


def test_the_library_and_passages_say_so(opened: Callable[..., Tab], noted: Live) -> None:
    tab = opened(noted, PHONE)
    tab.open("#library")
    corrected = "Corrected 2021-03-04 (doi:10.1234/notice)"
    expect(rows(tab).locator(".flag")).to_have_text(["RETRACTED", corrected])
    assert tab.inaccessible() == []
    row(tab, "On Sea Otters").get_by_role("link").click()
    expect(tab.find("#view-paper .flag")).to_have_text(RETRACTED)
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    tab.open("#search")
    tab.find("#query").fill("sea otter fur")
    tab.find("#query").press("Enter")
    expect(tab.find("#hits li .flag").first).to_have_text(RETRACTED)
