"""Make the pictures of the web page in README.md, from the sample paper in a store of its own.

python scripts/make_screenshots.py           Chromium has to be installed
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs"
QUESTION = "What happens to the index when the computer loses power during an ingest?"
FOLLOW_UP = "How is the page of a passage found?"


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("Chromium is not installed: `apt install chromium`.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        places = {"PAPERS_DIR": str(ROOT / "papers"), "VECTORSTORE_DIR": folder, "INGESTED_JSON": f"{folder}/list.json"}
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
            address = serving.stdout.readline().split()[3]
            with sync_playwright() as playwright:
                sandbox = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
                chromium = playwright.chromium.launch(executable_path=browser, args=sandbox)
                wide = chromium.new_page(viewport={"width": 1440, "height": 860})
                _ask(wide, address, QUESTION, FOLLOW_UP)
                wide.screenshot(path=PICTURES / "page.png")
                phone = chromium.new_page(viewport={"width": 375, "height": 760}, color_scheme="dark")
                _ask(phone, address, QUESTION, opened=False)
                phone.screenshot(path=PICTURES / "page-phone.png")
                chromium.close()
        finally:
            serving.terminate()
            serving.wait()
    return 0


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
