"""The page's modules: their own unit tests, strict types, a linter, and types of the API that are up to date."""

from __future__ import annotations

import subprocess
from pathlib import Path

import playwright
import pytest

from scripts.make_page_types import TYPES, api_document, page_types
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

PAGE = ROOT / "tests" / "page"
NODE = Path(playwright.__file__).parent / "driver" / "node"
TOOLS = PAGE / "node_modules"


def run(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), cwd=PAGE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def tool(*path: str) -> Path:
    """A tool that npm has installed. Skips the test without it."""
    if not (TOOLS / ".installed").exists():
        pytest.skip("the tools of tests/page are not installed; `make test` installs them where npm is")
    return TOOLS.joinpath(*path)


def test_unit_tests_pass() -> None:
    run(NODE, "--test", *sorted(PAGE.glob("*.test.js")))


def test_types_are_strict() -> None:
    run(tool(".bin", "tsc"), "-p", ".")


def test_linter_and_formatter_find_nothing() -> None:
    run(tool(".bin", "biome"), "ci", "--config-path=.", ".", ROOT / "folio" / "web" / "static")


def test_types_of_the_api_are_up_to_date() -> None:
    assert TYPES.read_text(encoding="utf-8") == page_types(api_document()), "Run `make schema`."
