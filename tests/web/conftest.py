"""The browser for the tests of the page, started once for each file of tests; clients of the API over two papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fastapi.testclient import TestClient
    from playwright.sync_api import Browser

    from tests.helpers.browser import Tab
    from tests.helpers.fakes import HashingApp

# tests.helpers.browser is imported where it is used: other tests of this folder run without Playwright.


@pytest.fixture
def app(tmp_path: Path) -> HashingApp:
    """The tool over the two small papers, in a new store."""
    from tests.helpers.web_client import small_app

    return small_app(tmp_path)


@pytest.fixture
def client(app: HashingApp) -> Iterator[TestClient]:
    """A client of the API."""
    from tests.helpers.web_client import client_of

    with client_of(app) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from tests.helpers.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """A function that opens the page of a server, given a size and, to go there, a view's fragment."""
    from tests.helpers.browser import WIDE, tabs

    with tabs(browser) as open_tab:

        def open_page(server: Any, size: tuple[int, int] = WIDE, place: str | None = None) -> Tab:
            return open_tab(server.url.rstrip("/"), size, place)

        yield open_page
