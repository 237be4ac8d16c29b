"""Run pytest; a test of the page that fails is run once more, alone, at the end: `make test`.

The tests of the page, marked `browser`, drive Chromium beside all other tests, and one may be late without a fault of
Folio's. The run passes if the second try does, and its last lines name each such test. It fails where more than
MOST_AGAIN of them failed, or any other test: those are mended, never run again.

pytest-rerunfailures runs a test again at once, in the worker where it failed, while the others still load the machine.

What took longest is listed at the end of the first run.

    python scripts/run_tests.py -n auto          # pytest's arguments
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

MARKER = "browser"
# Tests of the page that may pass on their second try
MOST_AGAIN = 2
# Set-ups, tests and tear-downs that are listed with their seconds
SLOWEST = 15
# Environment variable: a file that gets the last lines too, for a run of several commands
RECORD = "FOLIO_SECOND_TRIES"


class Failures:
    """A plugin: the tests that failed, in setup and teardown too, and the files that could not be collected."""

    def __init__(self) -> None:
        self.of_page: list[str] = []
        self.others: list[str] = []
        self.folder = Path()

    def pytest_configure(self, config: pytest.Config) -> None:
        self.folder = config.rootpath

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.others.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:  # in a run on several cores too, and for a worker that crashed, whose report has no keywords
            names = self.of_page if MARKER in report.keywords else self.others
            if report.nodeid not in names:
                names.append(report.nodeid)


def run(arguments: Sequence[str]) -> int:
    """Run pytest with these arguments, and the second tries; returns the exit code."""
    failures = Failures()
    code = int(pytest.main([f"--durations={SLOWEST}", *arguments], plugins=[failures]))
    if code != pytest.ExitCode.TESTS_FAILED or failures.others or not failures.of_page:
        return code
    if len(failures.of_page) > MOST_AGAIN:
        print(f"{len(failures.of_page)} tests of the page failed. None is tried again: that is no accident.")
        return code
    passed = [passes_alone(name, failures.folder) for name in failures.of_page]
    if not all(passed):
        return code
    report(failures.of_page)
    return 0


def passes_alone(name: str, folder: Path) -> bool:
    """Whether a test passes in a process of its own. folder: that its name is relative to."""
    print(f"\nOnce more, alone: {name}", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", "-n", "0", name], cwd=folder, check=False).returncode == 0


def report(names: Sequence[str]) -> None:
    """Print the names of tests that passed on their second try, and record them."""
    text = "".join(f"passed on the second try: {name}\n" for name in names)
    if record := os.environ.get(RECORD):
        with Path(record).open("a", encoding="utf-8") as file:
            file.write(text)
    print(f"\n{text}", end="", flush=True)


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as with `python -m pytest`
    sys.exit(run(sys.argv[1:]))
