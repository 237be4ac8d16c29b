"""Make the pictures of the web page in README.md and docs, each in a store of its own. Chromium has to be installed.

python scripts/make_screenshots.py                 of the sample paper: page.png, page-phone.png
python scripts/make_screenshots.py --tables DIR    of a folder with about ten papers: tables.png
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs"
QUESTION = "What happens to the index when the computer loses power during an ingest?"
FOLLOW_UP = "How is the page of a passage found?"
TABLE = "Reproductions"
COLUMNS = ("Main result", "Code", "Limits")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, metavar="DIR", help="the papers of a table")
    papers: Path | None = parser.parse_args().tables
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-headless-shell")
    if browser is None:
        print("Chromium is not installed: `apt install chromium`.", file=sys.stderr)
        return 1
    with _served(papers or ROOT / "papers") as address, sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=browser, args=sandbox)
        if papers:
            _draw_table(chromium.new_page(viewport={"width": 1440, "height": 720}), address)
        else:
            _draw_answers(chromium, address)
        chromium.close()
    return 0


@contextmanager
def _served(papers: Path) -> Iterator[str]:
    """The address of a server of these papers, in a store that is removed."""
    with tempfile.TemporaryDirectory() as folder:
        places = {"PAPERS_DIR": str(papers), "VECTORSTORE_DIR": folder, "INGESTED_JSON": f"{folder}/list.json"}
        environment = {**os.environ, **places, "EMBEDDER": "builtin", "LLM": "builtin", "RERANKER": "builtin"}
        run = [sys.executable, str(ROOT / "ingest.py")]
        subprocess.run(run, env=environment, check=True, capture_output=True)
        serving = subprocess.Popen(
            [sys.executable, str(ROOT / "serve.py"), "--port", "0"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert serving.stdout
            yield serving.stdout.readline().split()[3]
        finally:
            serving.terminate()
            serving.wait()


def _draw_answers(chromium: Browser, address: str) -> None:
    wide = chromium.new_page(viewport={"width": 1440, "height": 860})
    _ask(wide, address, QUESTION, FOLLOW_UP)
    wide.screenshot(path=PICTURES / "page.png")
    phone = chromium.new_page(viewport={"width": 375, "height": 760}, color_scheme="dark")
    _ask(phone, address, QUESTION, opened=False)
    phone.screenshot(path=PICTURES / "page-phone.png")


def _draw_table(page: Page, address: str) -> None:
    """A filled table with the card of a cell."""
    page.goto(address)
    request = page.request
    papers = [each["id"] for each in request.get(f"{address}papers").json()["papers"]]
    columns = [{"name": name} for name in COLUMNS]
    made = {"name": TABLE, "columns": columns, "filter": {"papers": papers}}
    table = request.post(f"{address}tables", data=made).json()["id"]
    page.goto(f"{address}#tables/{table}")
    page.locator(".tables-bar .button.primary").click()
    while request.get(f"{address}tables/{table}").json()["waiting"]:
        page.wait_for_timeout(1000)
    page.reload()  # without the message that it is filled
    page.locator(".tables-scroll .tables-quote").nth(1).click()
    page.locator(".tables-detail blockquote").first.wait_for()
    page.wait_for_timeout(1000)
    page.screenshot(path=PICTURES / "tables.png")


def _ask(page: Page, address: str, *questions: str, opened: bool = True) -> None:
    """Ask these questions of the page, and open the first citation of the last answer beside it."""
    page.goto(address)
    for number, question in enumerate(questions, 1):
        page.get_by_role("textbox").first.fill(question)
        page.keyboard.press("Enter")
        page.locator(".sources").nth(number - 1).wait_for()
        page.wait_for_timeout(1000)  # sentences fade in
    if opened:
        page.locator(".turn").last.locator(".chip").first.click()
        page.locator("#reader .page-picture img").first.wait_for()
        page.wait_for_timeout(1000)


if __name__ == "__main__":
    sys.exit(main())
