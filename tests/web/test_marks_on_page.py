"""What is marked, as it is painted: its size, place and contrast, in every theme, on a page and in its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from tests.helpers.browser import WIDE, Pixels, Tab
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import reader_shows
from tests.helpers.pdfs import save

pytestmark = pytest.mark.slow

# The kind of a mark -> the word that has it
WORDS = {
    "current": "findable",
    "hit": "findable",
    "quote": "quotations",
    "noted": "annotated",
    "yellow": "highlight",
    "pink": "coloured",
    "selected": "selection",
}
THEMES: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "forced_colors": "none"},
    "dark": {"color_scheme": "dark", "forced_colors": "none"},
    "forced": {"color_scheme": "dark", "forced_colors": "active"},
}
NEAR = 40  # pixels around a word that are looked at
MOST = 5  # pixels between a word and the edge of its mark
LEAST = 4.5  # contrast, https://www.w3.org/TR/WCAG22/#contrast-minimum
Box = tuple[float, float, float, float]

# The boxes of a word that are in view: on the page its elements, in a text its letters
BOXES = """([within, word]) => [...document.querySelectorAll(within)].flatMap((node) => {
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walk.nextNode()) {
    const at = walk.currentNode.data.toLowerCase().indexOf(word);
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(walk.currentNode, at);
    range.setEnd(walk.currentNode, at + word.length);
    const { left, top, right, bottom } = range.getBoundingClientRect();
    if (right > left) found.push([left, top, right, bottom]);
  }
  return found;
})"""
SELECT = """([within, word]) => {
  for (const node of document.querySelectorAll(within))
    if (node.textContent.trim() === word) return getSelection().selectAllChildren(node);
  const walk = document.createTreeWalker(document.querySelector(within), NodeFilter.SHOW_TEXT);
  while (!walk.nextNode().data.includes(word));
  const at = walk.currentNode.data.indexOf(word);
  getSelection().setBaseAndExtent(walk.currentNode, at, walk.currentNode, at + word.length);
}"""


@pytest.fixture(scope="module")
def live(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A paper with a line for each kind of mark."""
    folder = tmp_path_factory.mktemp("marks")
    (folder / "papers").mkdir()
    lines = [
        (72.0, 100 + 36.0 * n, f"The {word} of this long line number {n} has other words beside and below it.")
        for n, word in enumerate(WORDS.values())
    ]
    save(folder / "papers" / "marks.pdf", [lines], metadata={"title": "Marks"})
    with Live(builtin_app(folder, folder / "papers")) as made:
        yield made


def luminance(colours: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Relative luminance of colours, (..., 3) -> (...)."""
    parts = colours / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array([0.2126, 0.7152, 0.0722]))


def faults(pixels: Pixels, box: Box) -> list[str]:
    """What is wrong with the mark that is painted behind the word in this box."""
    left, top, right, bottom = (round(edge) for edge in box)
    inside = pixels[top:bottom, left:right].reshape(-1, 3)
    colours, counts = np.unique(inside, axis=0, return_counts=True)
    ground = colours[counts.argmax()]
    light, all_light = luminance(ground.astype(float)), luminance(inside.astype(float))
    contrast = ((np.maximum(all_light, light) + 0.05) / (np.minimum(all_light, light) + 0.05)).max()
    x, y = max(0, left - NEAR), max(0, top - NEAR)
    painted = np.abs(pixels[y : bottom + NEAR, x : right + NEAR].astype(int) - ground).max(axis=2) <= 8
    first, last = run(painted[top - y : bottom - y].mean(axis=0), left - x, right - x)
    upper, lower = run(painted[:, left - x : right - x].mean(axis=1), top - y, bottom - y)
    found = [f"contrast {contrast:.2f}"] if contrast < LEAST else []
    extent = (first + x, upper + y, last + x, lower + y)
    if max(abs(one - other) for one, other in zip(box, extent, strict=True)) > MOST:
        found.append(f"painted at {extent} for a word at {(left, top, right, bottom)}")
    return found


def run(shares: np.ndarray[Any, Any], start: int, end: int) -> tuple[int, int]:
    """The lines that are painted without a gap around those from start to end, by the share of each that is."""
    painted = np.flatnonzero(shares > 0.12)
    groups = np.split(painted, np.flatnonzero(np.diff(painted) > 4) + 1)
    here = [group for group in groups if group.size and group[0] <= (start + end) / 2 <= group[-1]]
    return (int(here[0][0]), int(here[0][-1]) + 1) if here else (0, 0)


def boxes(tab: Tab, within: str, word: str) -> list[Box]:
    found: list[Box] = tab.page.evaluate(BOXES, [within, word])
    return found


def marked(tab: Tab, within: str) -> dict[str, list[str]]:
    """Kind of a mark -> what is wrong with it, in the page or the text that the reader shows."""
    expect(tab.find(".reader-find .status")).to_have_text("1 of 2")
    tab.page.evaluate("() => getSelection().removeAllRanges()")
    tab.page.wait_for_timeout(250)  # the tools of a selection leave
    found, pixels = {}, tab.seen()
    for kind, word in WORDS.items():
        if kind == "selected":
            tab.page.evaluate(SELECT, [within, word])
            tab.page.wait_for_timeout(100)
            pixels = tab.seen()
        found[kind] = faults(pixels, boxes(tab, within, word)[1 if kind == "hit" else 0])
    return {kind: wrong for kind, wrong in found.items() if wrong}


def read_marked(tab: Tab) -> None:
    """Opens the paper with a quote, notes in colours, and words that are found."""
    paper = tab.context.request.get(f"{tab.url}/papers").json()["papers"][0]["id"]
    text = tab.context.request.get(f"{tab.url}/papers/{paper}/pages/1/text").json()

    def span(word: str) -> dict[str, Any]:
        start = text["start"] + text["text"].index(word)
        return {"start": start, "end": start + len(word)}

    if not tab.context.request.get(f"{tab.url}/notes").json()["notes"]:
        for kind in ("noted", "yellow", "pink"):
            quote = {"paper": paper, "quote": WORDS[kind], **span(WORDS[kind])}
            colour = {} if kind == "noted" else {"colour": kind}
            assert tab.context.request.post(f"{tab.url}/notes", data={"quotes": [quote], **colour}).ok
    cited = span(WORDS["quote"])
    tab.open(f"#search?read={paper}&p=1&from={cited['start']}&to={cited['end']}")
    reader_shows(tab, 1)
    tab.page.get_by_role("button", name="Find in this paper").click()
    tab.page.keyboard.type(WORDS["hit"])


@pytest.mark.parametrize("theme", THEMES)
def test_each_mark_is_as_large_as_its_words_which_stay_legible(
    opened: Callable[..., Tab], live: Live, theme: str
) -> None:
    tab = opened(live, WIDE)
    tab.page.emulate_media(**THEMES[theme])
    read_marked(tab)
    found = {"page": marked(tab, ".page-words .word")}
    tab.page.get_by_role("button", name="Dark pages").click()
    found["dark page"] = marked(tab, ".page-words .word")
    tab.page.get_by_role("button", name="Dark pages").click()
    tab.page.get_by_role("button", name="Show as text").click()
    found["text"] = marked(tab, ".page-text")
    tab.page.keyboard.press("Escape")
    tab.find("#query").fill(WORDS["quote"])
    tab.page.keyboard.press("Enter")
    expect(tab.find("#hits mark").first).to_be_visible()
    wrong = faults(tab.seen(), boxes(tab, "#hits mark", WORDS["quote"])[0])
    found["search"] = {"hit": wrong} if wrong else {}
    tab.page.emulate_media(color_scheme="light", forced_colors="none")
    assert {place: kinds for place, kinds in found.items() if kinds} == {}
