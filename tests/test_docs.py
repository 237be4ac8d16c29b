"""README, CONTRIBUTING and the pages in docs/ say what the code says, and their links lead somewhere."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.grounding.report import NAMES
from config import Settings
from folio.app import App
from folio.cli.main import COMMANDS as FOLIO_COMMANDS
from folio.cli.session import COMMANDS
from folio.evaluate.metrics import ANSWERING
from folio.web.api import STATUSES, make_web
from folio.web.guard import AccessRules
from scripts.make_docs import PARSERS, anchor, pages
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
# `folio COMMAND` -> the script with the same options
SCRIPT_OF = {"ask": "query"} | {name: name for name in ("ingest", "papers", "log", "mcp", "serve", "evaluate")}
MAKE_VARIABLES = {"PYTHON", "PYTHON3", "PAPERS", "ARTICLES", "UPGRADE"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def code(path: Path) -> Iterator[str]:
    """Every line of code of a page, and every piece of code in its prose."""
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield from block.splitlines()
    yield from re.findall(r"`([^`]+)`", prose(path).replace("\n", " "))


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {anchor(heading) for heading in headings}


def section(path: Path, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found, f'{name(path)} has no section "{title}"'
    return found[1]


def first_cells(table: str) -> list[str]:
    """What the first cells of a table's rows have as code."""
    return re.findall(r"`([^`]+)`", "\n".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE)))


def test_generated_parts_are_up_to_date() -> None:
    stale = [path.name for path, text in pages().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make docs`"


def test_readme_is_short_and_links_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.split()) < 1300
    linked = set(re.findall(r"\]\((docs/[\w-]+\.md)\)", readme))
    assert {name(path) for path in DOCS} - linked == {"docs/evaluation-set.md"}  # measuring.md links to that one


def test_docs_stay_short() -> None:
    words = {path.name: len(path.read_text(encoding="utf-8").split()) for path in DOCS}
    assert sum(words.values()) <= 25_400
    assert words["architecture.md"] <= 2_500


@pytest.mark.parametrize("page", [*PAGES, ROOT / "LOG.md", ROOT / "CHANGELOG.md"], ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"(?:\]\(|src=\")([^)\"]+)", prose(page))
    assert [link for link in links if not link.startswith("https://") and not _leads_somewhere(page, link)] == []


def _leads_somewhere(page: Path, link: str) -> bool:
    file, _, anchor = link.partition("#")
    target = Path(os.path.normpath(page.parent / file)) if file else page
    return target.exists() and (not anchor or anchor in anchors(target))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name)
def test_files_that_are_named_exist(page: Path) -> None:
    place = re.compile(r"(?:folio|tests|scripts|docs|benchmarks|papers|\.ci)/[\w./-]*")
    named = [word for word in code(page) if place.fullmatch(word) and word not in {"papers/", "papers/.removed"}]
    assert [word for word in named if not (ROOT / word).exists()] == []


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command of Folio's that a page shows: its script, and its arguments."""
    for page in PAGES:
        for line in code(page):
            if found := re.search(r"(?:^|\s)(?:python (\w+)\.py|folio (\w+))(?=\s|$)(.*)", line):
                script = found[1] or SCRIPT_OF.get(found[2], "")
                if script in PARSERS:
                    yield script, shlex.split(found[3], comments=True)
                else:
                    assert found[2] in FOLIO_COMMANDS, line


SHOWN = sorted({(script, *arguments) for script, arguments in commands()})


@pytest.mark.parametrize("shown", SHOWN, ids=" ".join)
def test_commands_that_are_shown_parse(shown: tuple[str, ...]) -> None:
    script, *arguments = shown
    PARSERS[script]().parse_args([argument for argument in arguments if argument != "..."])


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_and_settings_that_are_named_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {found for line in code(page) for found in re.findall(r"^make ([a-z]+)", line)}
    assert targets <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    setting = re.compile(r"^[A-Z]+_[A-Z_]+$|\b[A-Z_]{3,}(?==)")
    settings = {found for line in code(page) for found in setting.findall(line)}
    assert settings <= {*Settings.model_fields, *MAKE_VARIABLES, "FIELD"}  # FIELD=VALUE of `folio papers edit`


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_that_is_shown_compiles_and_its_imports_exist(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        tree = ast.parse(block)
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        exec(compile(ast.Module([*imports], []), str(page), "exec"), {})


def test_every_route_and_status_of_the_api_is_listed(tmp_path: Path) -> None:
    page = ROOT / "docs" / "web-api.md"
    settings = Settings(_env_file=None, PAPERS_DIR=tmp_path, VECTORSTORE_DIR=tmp_path / "store")  # type: ignore[call-arg]
    web = make_web(App(settings, print), AccessRules("127.0.0.1", 8420))
    described = {f"{method.upper()} {path}" for path, methods in web.openapi()["paths"].items() for method in methods}
    assert set(first_cells(section(page, "Routes"))) == described
    listed = set(re.findall(r"^\| (\d{3}) \|", section(page, "Errors"), re.MULTILINE))
    assert {str(status) for _, status in STATUSES} <= listed


def test_chat_commands_and_figures_are_listed() -> None:
    page = section(ROOT / "docs" / "commands.md", "query.py")
    chat = page[page.index("### In a chat") : page.index("### JSON")]
    assert set(first_cells(chat)) == {*COMMANDS, "/deep", "/resume", "/verify 2", "/note 2 words", "/new", "/quit"}
    assert {*ANSWERING, *NAMES} <= set(first_cells((ROOT / "docs" / "measuring.md").read_text(encoding="utf-8")))


def test_log_entries_have_a_date_a_decision_and_four_parts() -> None:
    entries = re.split(r"^## ", (ROOT / "LOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    dates = [re.match(r"\d{4}-\d\d-\d\d(?=: .)", entry) for entry in entries]
    assert all(dates)
    assert [date[0] for date in dates if date] == sorted((date[0] for date in dates if date), reverse=True)
    for entry in entries:
        assert re.match(r".+\n\n\*\*Decision:\*\* [^\n]+\.\n\n", entry), entry.splitlines()[0]
        parts = [entry.find(f"**{part}") for part in ("Question.", "Tried.", "Result", "Decision.")]
        assert min(parts) > 0, entry.splitlines()[0]
        assert parts == sorted(parts), entry.splitlines()[0]
