"""A review in the page: asked for in the library, followed while it is made, opened on its pages, exported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import reader_shows

pytestmark = pytest.mark.slow

Open = Callable[..., Tab]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Live(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as made:
        yield made


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_review_of_the_library_is_shown_with_links_to_its_pages(
    live: Live, opened: Open, size: tuple[int, int]
) -> None:
    tab = opened(live, size, "#library")
    tab.page.get_by_role("button", name="Review of 2 papers").click()
    tab.page.get_by_label("Title", exact=True).fill("Otters <b>and</b> ice")
    tab.page.get_by_label("Questions to put to each paper").fill("How long is the Aletsch glacier?\n\n")
    tab.page.get_by_role("button", name="Write the review").click()
    expect(tab.find(".review h1")).to_have_text("Otters <b>and</b> ice", timeout=30_000)
    assert re.search(r"#review/[0-9a-f]{16}$", tab.page.url)
    expect(tab.find(".review h2").first).to_have_text("How long is the Aletsch glacier?")
    tab.find(".review a.cite").first.click()
    reader_shows(tab, 1)
    export = tab.page.get_by_role("link", name="Markdown")
    with tab.page.expect_download() as download:
        export.evaluate("link => link.click()")
    assert download.value.path().read_text(encoding="utf-8").startswith("# Otters \\<b\\>and\\</b\\> ice\n")


def test_a_review_that_is_gone_says_so(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#review/0123456789abcdef")
    expect(tab.find("#view-review")).to_contain_text("The review is not there any more.")
    tab.expected(r"404 .*/reviews/0123456789abcdef")
