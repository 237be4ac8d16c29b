"""The process of a tab is killed at random moments while a person types: what had reached the page is there again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from random import Random
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.crashing_tab import crashing_tab
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

TIMES = 30 if EXHAUSTIVE else 1
TYPED = "".join(islice(cycle(ascii_lowercase), 150))  # a title has room for them
QUESTION = "How long is the Aletsch glacier?"
# Runs in the page: waits for an element, presses a button by its name
PAGE = """
const find = async (selector, name = "") => {
  for (;;) {
    const found = [...document.querySelectorAll(selector)].find((node) => node.textContent.includes(name));
    if (found && !found.closest("[hidden]")) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
const press = async (selector, name) => (await find(selector, name)).click();
const key = (node, key, ctrlKey = false) =>
  node.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, bubbles: true, cancelable: true }));
"""
RENAME = 'await press("#conversations li button"); await press("#conversations [popover] button", "Rename");'
SELECT = """const pages = await find(".reader-pages"); await find("#reader .page.ready"); pages.focus();
  let isSelected = false; find(".selection-bar button", "Note").then(() => { isSelected = true; });
  while (!isSelected) { key(pages, "s"); await new Promise((resolve) => setTimeout(resolve, 200)); }
  await press(".selection-bar button", "Note");"""
TAGS = """(await find(".table-row", "On Sea Otters")).focus(); key(document.activeElement, "a", true);
  key(document.activeElement, "t"); await find("dialog[open]");"""
# Kind -> its address, what opens its field, the field, and whether it is opened again by hand
KINDS = {
    "question": ("#ask", "", "#question:enabled", False),
    "follow-up": ("#c/{conversation}", 'await find(".turn .actions");', "#question:enabled", False),
    "new note": ("#search?read={paper}&p=1", SELECT, ".note-card textarea", False),
    "note": ("#notes", 'await press(".note-item button", "Edit");', ".note-form textarea", False),
    "paper": ("#paper/{paper}", 'await press(".paper-actions button", "Edit");', ".edit-form [name=venue]", False),
    "check": ("#library?check=all", "", ".checking form [name=venue]", False),
    "tags": ("#library", TAGS, "#bulk-tags", True),
    "name": ("#ask", RENAME, "#conversations form input", True),
    "edited question": ("#c/{conversation}", 'await press(".turn .edit-question");', ".question-form textarea", True),
}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("crashes")
    with Live(builtin_app(folder, small_papers(folder / "papers"))) as made:
        yield made


@pytest.fixture(scope="module")
def made(live: Live) -> dict[str, str]:
    """A paper, a conversation and a note."""
    with live.client() as client:
        papers = client.get("/papers").json()["papers"]
        paper = next(each["id"] for each in papers if each["title"] == "The Aletsch Glacier")
        client.post("/notes", json={"quotes": [{"paper": paper, "quote": "23 kilometres"}], "text": "Mine. "})
        asked: Any = client.post("/chat", json={"message": QUESTION, "listed": True}).json()
    return {"paper": paper, "conversation": asked["conversation"]}


@pytest.mark.parametrize("kind", list(KINDS) if EXHAUSTIVE else ["follow-up", "new note"])
def test_nothing_typed_is_lost_with_the_process_of_the_tab(
    live: Live, made: dict[str, str], browser: Browser, kind: str
) -> None:
    address, opening, field, is_opened_again = KINDS[kind]
    focus = f"const field = await find('{field}'); field.focus(); field.setSelectionRange(1e6, 1e6);"

    def run(*steps: str) -> str:
        return f"(async () => {{ {PAGE} {' '.join(steps)} {focus} return `:${{field.value}}`; }})()"

    random = Random(kind)
    for _ in range(TIMES):
        with crashing_tab(browser, live.url.rstrip("/") + "/" + address.format(**made)) as tab:
            before = tab.wait(run(opening))
            arrived = tab.type_until_killed(TYPED, random.uniform(0, 0.8))
            tab.reload()
            after = tab.wait(run(opening if is_opened_again else ""))
            assert after.startswith(before), (kind, before, after)
            kept = after.removeprefix(before)
            assert TYPED.startswith(kept), (kind, kept)
            assert arrived <= len(kept) <= arrived + 1, (kind, arrived, len(kept))
