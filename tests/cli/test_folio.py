"""The command `folio`: it runs the same programs as the scripts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

import evaluate
import ingest
import query
import serve
from folio import __version__
from folio.cli import main as folio
from folio.errors import command, fetch_command
from tests.helpers.cli_runner import CliRunner
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

QUESTION = "How long is the Aletsch glacier?"


def shown(main: Callable[[list[str]], int], option: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a program prints for --help or --version."""
    with pytest.raises(SystemExit) as ended:
        main([option])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(folio.main, "--version", capsys) == f"folio {__version__}\n"
    commands = shown(folio.main, "--help", capsys).partition("COMMAND\n")[2]
    names = re.findall(r"^ {4}(\S+)", commands, re.MULTILINE)
    papers = "ingest fetch ask papers projects table notes instructions check cite review export"
    assert names == f"{papers} log move serve mcp evaluate doctor".split()
    assert folio.main([]) == 2
    assert capsys.readouterr().err.startswith("usage: folio ")


SCRIPTS: dict[str, Callable[[list[str]], int]] = {
    "ingest.py": ingest.main,
    "query.py": query.main,
    "serve.py": serve.main,
    "evaluate.py": evaluate.main,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_names_the_script(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(SCRIPTS[name], "--help", capsys).startswith(f"usage: {name} [")


@pytest.mark.parametrize("name", folio.COMMANDS)
def test_help_names_the_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(lambda options: folio.main([name, *options]), "--help", capsys).startswith(f"usage: folio {name} [")


def test_folio_runs_the_same_commands_as_the_scripts(ready: CliRunner) -> None:
    answered = ready._here(folio, ("ask", "--json", "--no-log", QUESTION))
    assert (answered.code, "23 kilometres" in answered.object["answer"]) == (0, True)
    assert ready._here(folio, ("doctor",)) == ready.query("--doctor")


def test_help_imports_no_package() -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "folio", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in ran.stderr.splitlines()}
    assert not imported & {"rich", "pydantic", "numpy", "platformdirs", "prompt_toolkit", "langchain_core", "config"}


@pytest.mark.parametrize(
    ("line", "script", "installed"),
    [
        ("ingest --repair", "python ingest.py --repair", "folio ingest --repair"),
        ('ask "What is ...?"', 'python query.py "What is ...?"', 'folio ask "What is ...?"'),
        ("doctor", "python query.py --doctor", "folio doctor"),
        ("papers list", "python -m folio papers list", "folio papers list"),
    ],
)
def test_remedies_name_the_commands_that_are_there(line: str, script: str, installed: str) -> None:
    assert command(line, by_scripts=False) == installed
    assert command(line, by_scripts=True) == command(line) == script


def test_models_are_fetched_with_make_or_with_hf() -> None:
    name = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    assert fetch_command(name, in_checkout=True) == fetch_command(name) == "make models"
    assert fetch_command(name, in_checkout=False) == f"hf download {name}"
