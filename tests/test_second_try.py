"""The second try of a test of the page (scripts/run_tests.py), on small suites whose tests fail so many times."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.run_tests import RECORD
from tests.helpers.paths import ROOT

INI = """
[pytest]
addopts = --disable-plugin-autoload -p xdist -p no:cacheprovider
markers =
    browser: of the page
"""
CONFTEST = """
from pathlib import Path

import pytest


@pytest.fixture
def times_run(request):
    counted = Path(__file__).with_name(f"{request.node.name}.count")
    with counted.open("a") as file:
        file.write("x")
    return counted.stat().st_size
"""
TEST = """
from pathlib import Path

import pytest

from tests.conftest import pytest_collection_modifyitems


@pytest.fixture
def browser():
    return None


@pytest.fixture
def times_run(request):
    counted = Path(__file__).with_name(f"{request.node.name}.count")
    with counted.open("a") as file:
        file.write("x")
    return counted.stat().st_size
"""
TEST = "{mark}def test_{name}(times_run):\n    assert times_run > {failures}\n"
OF_PAGE = "@pytest.mark.browser\n"


class Suite:
    """A suite in a folder, and what a run of it printed."""

    def __init__(self, folder: Path, of_page: Mapping[str, int], others: Mapping[str, int]) -> None:
        """Names of tests, with how many times each fails."""
        self.folder, self.record = folder, folder / "record.txt"
        (folder / "pytest.ini").write_text(INI)
        (folder / "conftest.py").write_text(CONFTEST)
        tests = [TEST.format(name=name, mark=OF_PAGE, failures=times) for name, times in of_page.items()]
        tests += [TEST.format(name=name, mark="", failures=times) for name, times in others.items()]
        (folder / "test_suite.py").write_text("\n\n".join(["import pytest", *tests]))

    def run(self, processes: int = 0) -> int:
        """Returns the exit code."""
        done = subprocess.run(
            [sys.executable, ROOT / "scripts" / "run_tests.py", "-q", "-n", str(processes)],
            cwd=self.folder,
            env={**os.environ, RECORD: str(self.record)},
            capture_output=True,
            text=True,
            check=False,
        )
        self.printed = done.stdout
        return done.returncode

    def times_run(self, name: str) -> int:
        return (self.folder / f"test_{name}.count").stat().st_size


@pytest.mark.parametrize("processes", [0, 2])
def test_a_test_of_the_page_that_fails_once_passes_and_is_named_last(tmp_path: Path, processes: int) -> None:
    suite = Suite(tmp_path, {"late": 1, "sound": 0}, {"other": 0})
    assert suite.run(processes) == 0
    last = "passed on the second try: test_suite.py::test_late"
    assert suite.printed.splitlines()[-1] == last
    assert suite.record.read_text() == f"{last}\n"
    assert [suite.times_run(name) for name in ("late", "sound", "other")] == [2, 1, 1]


def test_what_took_longest_is_listed(tmp_path: Path) -> None:
    suite = Suite(tmp_path, {"sound": 0}, {})
    (tmp_path / "test_slow.py").write_text("import time\n\n\ndef test_it():\n    time.sleep(0.02)\n")
    assert suite.run(2) == 0
    assert re.search(r"slowest 15 durations .*\n\d+\.\d+s call +test_slow.py::test_it\n", suite.printed)


def test_two_are_named(tmp_path: Path) -> None:
    suite = Suite(tmp_path, {"late": 1, "later": 1}, {})
    assert suite.run() == 0
    assert sorted(suite.printed.splitlines()[-2:]) == [
        "passed on the second try: test_suite.py::test_late",
        "passed on the second try: test_suite.py::test_later",
    ]


@pytest.mark.parametrize(
    ("of_page", "others", "runs"),
    [
        ({"wrong": 2}, {}, {"wrong": 2}),
        ({"wrong": 2, "late": 1}, {}, {"wrong": 2, "late": 2}),
        ({"late": 1, "later": 1, "latest": 1}, {}, {"late": 1, "later": 1, "latest": 1}),
        ({}, {"other": 1}, {"other": 1}),
        ({"late": 1}, {"other": 1}, {"late": 1, "other": 1}),
    ],
    ids=["it fails twice", "one of two fails twice", "three fail", "not of the page", "another fails too"],
)
def test_other_failures_fail_the_run(
    tmp_path: Path, of_page: Mapping[str, int], others: Mapping[str, int], runs: Mapping[str, int]
) -> None:
    suite = Suite(tmp_path, of_page, others)
    assert suite.run() == 1
    assert "passed on the second try" not in suite.printed
    assert not suite.record.exists()
    assert {name: suite.times_run(name) for name in runs} == runs


@pytest.mark.parametrize("processes", [0, 2])
def test_a_file_that_cannot_be_imported_fails_the_run(tmp_path: Path, processes: int) -> None:
    suite = Suite(tmp_path, {"late": 1}, {})
    (tmp_path / "test_broken.py").write_text("import nothing_of_that_name\n")
    assert suite.run(processes) not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "passed on the second try" not in suite.printed


def test_a_worker_that_dies_fails_the_run(tmp_path: Path) -> None:
    suite = Suite(tmp_path, {"sound": 0}, {})
    (tmp_path / "test_dies.py").write_text(f"import os\nimport pytest\n\n\n{OF_PAGE}def test_it():\n    os._exit(1)\n")
    assert suite.run(2) == 1
    assert "passed on the second try" not in suite.printed


def test_what_uses_the_browser_is_marked() -> None:
    """The fixture alone makes a test one of the page."""
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-m", "browser"]
    files = ["tests/web/test_faces_on_page.py", "tests/web/test_static.py"]
    done = subprocess.run([*collect, *files], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"tests/web/\w+", done.stdout) == ["tests/web/test_faces_on_page"]
