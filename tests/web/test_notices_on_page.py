"""A retracted paper on the page, in the installed Chromium: marked in words wherever it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from folio.store import notices, works
from folio.store.indexes import LIBRARY
from folio.store.library import Library
from folio.store.work_rows import Notice
from folio.work import Work
from folio.work_notices import NoticeKind
from tests.helpers.browser import PHONE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app

pytestmark = pytest.mark.slow

QUESTION = "How many hairs does the fur of a sea otter have?"
SAID = "RETRACTED 2021-03-04 (doi:10.1234/notice)"
WARNING = f"Warning: this answer cites otters.pdf: {SAID}."


@pytest.fixture(scope="module")
def live(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
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
            notices.add(opened.database, said)


@pytest.fixture
def tab(opened: Callable[..., Tab], live: Live) -> Tab:
    return opened(live, PHONE)


def test_an_answer_from_a_retracted_paper_says_so(tab: Tab) -> None:
    turn = tab.ask(QUESTION)
    expect(turn.locator(".warnings p")).to_have_text([WARNING])
    above = "(turn) => turn.querySelector('.warnings').getBoundingClientRect().bottom"
    assert turn.evaluate(f"{above} <= turn.querySelector('.sentences').getBoundingClientRect().top")
    chip = turn.locator(".sentences .chip").first
    expect(chip.locator("strong")).to_have_text("RETRACTED")
    assert "otters.pdf, RETRACTED p.1" in (chip.text_content() or "")
    expect(turn.locator(".sources .flag").first).to_have_text(SAID)
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    turn.get_by_role("button", name="Copy", exact=True).click()
    expect(tab.find("#toast")).to_have_text("Answer copied.")
    copied = tab.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[0] == WARNING
    assert f"   {SAID}" in copied
    tab.reload()  # the saved answer
    expect(tab.find(".turn .warnings p")).to_have_text([WARNING])
    expect(tab.find(".turn .sentences .chip strong").first).to_have_text("RETRACTED")


def test_the_library_and_passages_say_so(tab: Tab) -> None:
    tab.open("#library")
    expect(tab.find("#papers > li .flag")).to_have_text([SAID, "Corrected 2021-03-04 (doi:10.1234/notice)"])
    assert tab.inaccessible() == []
    tab.open("#search")
    tab.find("#query").fill("sea otter fur")
    tab.find("#query").press("Enter")
    expect(tab.find("#hits li .flag").first).to_have_text(SAID)
