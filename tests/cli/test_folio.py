"""The command `folio`: it runs the same programs as the scripts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

import evaluate
import ingest
import query
import serve
from folio import __version__
from folio.commands import main as folio
from folio.errors import command, fetch_command
from tests.helpers.cli_runner import CliRunner
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

QUESTION = "How long is the Aletsch glacier?"


def run(*arguments: str, folder: CliRunner | None = None) -> subprocess.CompletedProcess[str]:
    """`python -m folio` in a process of its own."""
    environment = {**(folder.environment() if folder else {}), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "folio", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_version_is_the_one_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        folio.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"folio {__version__}\n"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        folio.main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.partition("COMMAND\n")[2].splitlines() if line.startswith("    ")] == [
        "ingest",
        "fetch",
        "ask",
        "papers",
        "log",
        "move",
        "serve",
        "evaluate",
        "doctor",
    ]


def test_without_a_command_help_is_shown_as_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert folio.main([]) == 2
    assert capsys.readouterr().err.startswith("usage: folio ")


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        folio.main(["ingst"])
    assert ended.value.code == 2
    assert "invalid choice: 'ingst'" in capsys.readouterr().err


@pytest.mark.parametrize("command", folio.COMMANDS)
def test_help_of_a_command_names_it_as_it_is_called(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        folio.main([command, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: folio {command} [")


@pytest.mark.parametrize(
    ("script", "main"),
    [("ingest", ingest.main), ("query", query.main), ("serve", serve.main), ("evaluate", evaluate.main)],
)
def test_help_of_a_script_names_its_file(
    script: str, main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {script}.py [")


def test_an_option_without_its_value_is_an_error_of_that_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        folio.main(["ask", "--top-k", "0", QUESTION])
    assert ended.value.code == 2
    assert "folio ask: error: argument --top-k" in capsys.readouterr().err


def test_python_m_folio_answers_as_query_does(ready: CliRunner) -> None:
    ran = run("ask", "--json", "--no-log", QUESTION, folder=ready)
    assert ran.returncode == 0, ran.stderr
    assert '"answer":' in ran.stdout
    assert "23 kilometres" in ran.stdout


def test_doctor_is_the_one_of_query(ready: CliRunner) -> None:
    ran, here = run("doctor", folder=ready), ready.query("--doctor")
    assert (ran.returncode, ran.stdout.split()) == (here.code, here.out.split())


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


def test_a_checkout_fetches_models_with_make_and_an_installed_folio_with_hf() -> None:
    name = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    assert fetch_command(name, in_checkout=True) == fetch_command(name) == "make models"
    assert fetch_command(name, in_checkout=False) == f"hf download {name}"
