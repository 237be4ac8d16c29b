"""Addresses have what is shown: a reload, a copied address, Back and a server under a path show the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, expect

from folio.app import App
from tests.helpers.browser import WIDE, Tab, tabs
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import reader_shows
from tests.helpers.path_proxy import PathProxy

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-24-characters"
QUESTION = "How long is the Aletsch glacier?"
Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    folder = tmp_path_factory.mktemp("addresses")
    return builtin_app(folder, small_papers(folder / "papers"))


@pytest.fixture(scope="module")
def live(app: App) -> Iterator[Live]:
    with Live(app) as made:
        yield made


@pytest.fixture
def proxied(app: App) -> Iterator[PathProxy]:
    """A server with a token behind a proxy that has it under a path of its own."""
    proxy = PathProxy("/desk/folio")
    try:
        with Live(app, token=TOKEN, public_url=f"{proxy.url}/") as made:
            proxy.forward_to(made.url)
            yield proxy
    finally:
        proxy.close()


# A public address with a path


def test_everything_works_under_a_path(browser: Browser, proxied: PathProxy) -> None:
    with tabs(browser) as open_tab:
        tab = open_tab(proxied.url, WIDE, f"?token={TOKEN}")
        tab.expected("401")  # before the token was given
        assert tab.page.url == f"{proxied.url}/"
        (cookie,) = tab.context.cookies()
        assert (cookie["path"], cookie["httpOnly"]) == ("/desk/folio/", True)
        turn = tab.ask(QUESTION)
        turn.locator(".chip").first.click()
        reader_shows(tab, 1)
        tab.find(".views a[href^='#library']").click()
        with tab.page.expect_download() as download:
            tab.find("#export-bibtex").click()
        assert "Aletsch" in Path(download.value.path()).read_text()
        with tab.context.expect_page() as other:  # what one tab does is told to the others
            tab.page.evaluate("open(location.href)")
        expect(other.value.locator("#foot-line")).to_contain_text("2 papers")
        tab.expected("window: ")
        manifest = urljoin(tab.page.url, str(tab.find("link[rel=manifest]").get_attribute("href")))
        start = tab.context.request.get(manifest).json()["start_url"]
        assert urljoin(manifest, start) == f"{proxied.url}/"
        described = tab.context.request.get(f"{proxied.url}/openapi.json").json()
        assert described["servers"] == [{"url": "/desk/folio/"}]
