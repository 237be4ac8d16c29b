"""The installed Chromium on the page of a server: it reaches only this computer, and records errors."""

from __future__ import annotations

import base64
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pymupdf
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)
from playwright.sync_api import Error as PlaywrightError

from tests.helpers.exhaustive import EXHAUSTIVE

Pixels = npt.NDArray[np.uint8]  # (height, width, 3): red, green, blue
Yellow = npt.NDArray[np.bool_]

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
EVENTS = "/events"  # the path of the connection that every page keeps
REFUSED = "net::ERR_CONNECTION_REFUSED"
LIMIT_S = 120  # until something is given up
WIDE, PHONE = (1440, 900), (375, 812)

# Emptied profiles by the size of their windows: what they have cached of the page need not be loaded for each test.
_IDLE: WeakKeyDictionary[Browser, dict[tuple[int, int], list[BrowserContext]]] = WeakKeyDictionary()

CONTRAST = "color-contrast"
# Whether contrast was measured, and what axe-core finds. The whole of what it says is long: passing that on costs more.
_FINDINGS = """async (options) => {
  const { passes, violations } = await axe.run(options);
  const serious = violations.filter(({ id, impact }) => /serious|critical/.test(impact) || id === "landmark-unique");
  return [
    [...passes, ...violations].some(({ id }) => id === "color-contrast"),
    serious.flatMap(({ id, impact, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} (${impact}): ${target} ${failureSummary}`)),
  ];
}"""


def sizes(*each: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """The first of these sizes of a window, which fails first; with EXHAUSTIVE=1 all of them."""
    return each if EXHAUSTIVE else each[:1]


expect.set_options(timeout=LIMIT_S * 1000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser. Skips the test if none is installed or it does not start; Playwright downloads none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("Chromium is not installed")
    options = ["--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--no-sandbox")  # as root, Chromium does not start with its sandbox
    with ExitStack() as ended:
        try:
            playwright = ended.enter_context(sync_playwright())
            browser = playwright.chromium.launch(executable_path=found, args=options)
        except (PlaywrightError, OSError) as error:
            pytest.skip(f"Chromium does not start here: {str(error).strip().splitlines()[0]}")
        yield browser
        browser.close()


class Tab:
    """A page of the server in its own browser profile; `problems` collects errors, warnings and external requests."""

    def __init__(self, browser: Browser, url: str, size: tuple[int, int] = WIDE) -> None:
        self.url = url
        self.problems: list[str] = []
        self._expected: list[str] = []
        self.asked: list[str] = []  # every URL that the page requested
        width, height = size
        self._idle = _IDLE.setdefault(browser, {}).setdefault(size, [])
        # Without motion, screenshots are stable.
        window: ViewportSize = {"width": width, "height": height}
        self.context = self._idle.pop() if self._idle else browser.new_context(viewport=window, reduced_motion="reduce")
        self.context.set_default_timeout(LIMIT_S * 1000)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
        self.page = page = self.context.new_page()
        page.add_init_script("document.addEventListener('securitypolicyviolation', (e) => console.error(e.blockedURI))")
        page.on("console", self._logged)
        page.on("pageerror", lambda error: self._note(f"error: {error}"))
        page.on("dialog", self._dismiss)
        page.on("popup", lambda popup: self._note(f"window: {popup.url}"))
        page.on("request", self._requested)
        page.on("requestfailed", self._failed)
        self.open()

    def _note(self, problem: str, condition: bool = True) -> None:
        if condition:
            self.problems.append(problem)

    def _logged(self, message: ConsoleMessage) -> None:
        # The page connects again when the server has ended its events.
        is_left = str(message.location["url"]).endswith(EVENTS) or REFUSED in message.text
        text = f"console: {message.text} {message.location['url']}"
        self._note(text, message.type in ("error", "warning") and not is_left)

    def _dismiss(self, dialog: Dialog) -> None:
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        self.asked.append(request.url)
        origin = "/".join(self.url.split("/")[:3])
        here = (f"{self.url}/", f"blob:{origin}/", "data:")
        self._note(f"elsewhere: {request.url}", not request.url.startswith(here))

    def _failed(self, request: Request) -> None:
        # Requests that the page aborts, such as a stopped answer, are not failures. A refused one comes after the
        # server has ended: tests that are about this look at what the page says.
        is_left = request.failure in ("net::ERR_ABORTED", REFUSED) or request.url.endswith(EVENTS)
        self._note(f"failed: {request.url} {request.failure}", not is_left)

    def open(self, place: str = "") -> None:
        """Opens a view by its fragment, such as "#library"."""
        self.page.goto(f"{self.url}/{place}")

    def expected(self, *problems: str) -> None:
        """Waits until problems with these patterns have occurred, and ignores them from now on."""
        for problem in problems:
            until = time.monotonic() + LIMIT_S  # the console may say later what the page shows already
            while not any(re.search(problem, noted) for noted in self.problems):
                assert time.monotonic() < until, (problem, self.problems)
                self.page.wait_for_timeout(20)
        self._expected += problems

    def tolerated(self, *problems: str) -> None:
        """Ignores problems with these patterns from now on, which may occur or not."""
        self._expected += problems

    def close(self) -> None:
        self.page.evaluate("0")  # all earlier events are delivered before this returns
        self.page.unroute_all(behavior="ignoreErrors")  # a handler may be waiting for a request that ends with the tab
        self._empty()
        self._idle.append(self.context)
        unexpected = [noted for noted in self.problems if not any(re.search(each, noted) for each in self._expected)]
        assert unexpected == [], unexpected

    def _empty(self) -> None:
        """Removes from the profile what the page stored. The files of the page stay in its cache."""
        blank = self.context.new_page()
        for page in self.context.pages:
            if page is not blank:
                page.close()
        stored = {"origin": self.url, "storageTypes": "cookies,local_storage,indexeddb,cache_storage,service_workers"}
        self.context.new_cdp_session(blank).send("Storage.clearDataForOrigin", stored)
        blank.close()
        self.context.clear_permissions()

    def find(self, selector: str) -> Locator:
        return self.page.locator(selector)

    @property
    def question(self) -> Locator:
        return self.page.get_by_role("textbox", name="Your question")

    def ask(self, question: str) -> Locator:
        """Asks a question; returns its turn once the answer is complete."""
        before = self.find(".turn").count()
        self.question.fill(question)
        self.page.keyboard.press("Enter")
        turn = self.find(".turn").nth(before)
        expect(turn.locator(".actions")).to_be_visible()
        return turn

    def reload(self) -> None:
        """Reload once no panel is open or closing: a step back that is under way would abort it."""
        self.page.wait_for_function("!history.state?.panels")
        self.page.reload()

    def module(self, name: str) -> str:
        """The address of a module of the page, the same one that the page has loaded."""
        start = str(self.find("script[type=module]").evaluate("(script) => script.src"))
        return start.replace("app.js", name)

    def focused(self) -> Locator:
        return self.find("*:focus")

    def seen(self, **clip: float) -> Pixels:
        """A screenshot of the window or of a part of it: x, y, width, height."""
        return _pixels(self.page.screenshot(clip=clip or None))  # type: ignore[arg-type]

    def focus_shows(self) -> bool:
        """Whether the focused element looks different from when it is not focused."""
        clip: dict[str, float] = {}
        while clip != (now := self._box_of_focus()):  # until nothing has moved: the page may still be loading
            clip = now
            if clip["width"] <= 16 or clip["height"] <= 16:
                return False  # not visible
            focused = self.seen(**clip)
        self.page.evaluate("() => { window.focused = document.activeElement; window.focused.blur(); }")
        plain = self.seen(**clip)
        self.page.evaluate("window.focused.focus({ preventScroll: true })")
        changed = np.abs(focused.astype(int) - plain.astype(int)).max(axis=2) > 40
        return int(changed.sum()) > 40

    def _box_of_focus(self) -> dict[str, float]:
        """The focused element and what is around it: x, y, width, height."""
        box: dict[str, float] = self.page.evaluate(
            """() => {
              const focused = document.activeElement;
              const shown = focused.classList.contains("unseen") ? focused.closest("label") : focused;
              const { x, y, right, bottom } = shown.getBoundingClientRect();
              // The focus ring of a field is around its box.
              const [left, top] = [Math.max(0, x - 16), Math.max(0, y - 16)];
              const width = Math.min(innerWidth, right + 16) - left;
              return { x: left, y: top, width, height: Math.min(innerHeight, bottom + 16) - top };
            }"""
        )
        return box

    def scrolls_sideways(self) -> list[str]:
        """Elements that scroll sideways, and the page itself if it does.

        The pages in the reader are excepted: they fit the text to the width, so the margins overflow.
        """
        found: list[str] = self.page.evaluate(
            """() => [...document.querySelectorAll(":not(.reader-pages, .reader-tabs)")]
              .filter((node) => node.scrollWidth > node.clientWidth + 1)
              .filter((node) => node.matches("html, body") || /auto|scroll/.test(getComputedStyle(node).overflowX))
              .map((node) => `${node.tagName} ${node.id} ${node.className}: ${node.scrollWidth}`)"""
        )
        return found

    def inaccessible(self, *, colours: bool = True) -> list[str]:
        """Serious and critical findings of axe-core, and landmarks with one name.

        colours: whether contrast is measured, in light and dark mode.
        """
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_SCRIPT)
        said = []
        # In dark mode only the colours differ. Measuring them takes most of the time.
        schemes: dict[str, dict[str, Any]] = {"light": {}, "dark": {"runOnly": [CONTRAST]}}
        if not colours:
            schemes = {"light": {"rules": {CONTRAST: {"enabled": False}}}}
        for scheme, rules in schemes.items():
            self.page.emulate_media(color_scheme="light" if scheme == "light" else "dark")
            measured, found = self.page.evaluate(_FINDINGS, rules)
            assert measured == colours
            said += [f"{scheme}: {finding}" for finding in found]
        self.page.emulate_media(color_scheme="light")
        return said


@contextmanager
def tabs(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """A function that opens a tab of a server's page, given its address, a size and, to go there, a view's fragment.

    Unexpected problems in a tab fail the test at its end.
    """
    opened: list[Tab] = []

    def open_tab(url: str, size: tuple[int, int], place: str | None = None) -> Tab:
        opened.append(Tab(browser, url, size))
        if place is not None:
            opened[-1].open(place)
        return opened[-1]

    yield open_tab
    for tab in opened:
        tab.close()


def drop(tab: Tab, file: Path) -> None:
    """Drops a file on the page, as if dragged from another program."""
    content = base64.b64encode(file.read_bytes()).decode()
    tab.page.evaluate(
        """([name, content]) => {
          const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
          const carried = new DataTransfer();
          carried.items.add(new File([bytes], name, { type: "application/pdf" }));
          for (const type of ["dragenter", "dragover", "drop"])
            document.querySelector("main").dispatchEvent(
              new DragEvent(type, { dataTransfer: carried, bubbles: true, cancelable: true }));
        }""",
        [file.name, content],
    )


def yellow(pixels: Pixels) -> Yellow:
    """The pixels with the marker's yellow, (height, width)."""
    red, green, blue = (pixels[:, :, colour].astype(int) for colour in range(3))
    found: Yellow = (red > 200) & (green > 180) & (blue < 120)
    return found


def _pixels(png: bytes) -> Pixels:
    picture = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.Pixmap(png))
    if picture.alpha:
        picture = pymupdf.Pixmap(picture, 0)
    return np.frombuffer(picture.samples, np.uint8).reshape(picture.height, picture.width, 3)
