"""Commands that were started without what most have: a home folder, an open standard output."""

from __future__ import annotations

import sys

import pytest

from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shells and passwd are of other systems")

LENGTH = "How long is the Aletsch glacier?"
# What a process sees whose user has no entry in passwd, as with `docker run --user`
NOBODY = """
import pwd, runpy, sys
def getpwuid(uid): raise KeyError(uid)
pwd.getpwuid = getpwuid
sys.argv = sys.argv[1:]
sys.path.insert(0, {root!r})
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def without_home(desk: CliRunner, script: str, *arguments: str, **settings: str) -> CliResult:
    """A script as a user without HOME and without an entry in passwd starts it."""
    kept = {name: value for name, value in desk.environment().items() if name not in ("HOME", "XDG_CONFIG_HOME")}
    code = NOBODY.format(root=str(ROOT))
    return desk.run([sys.executable, "-c", code, str(ROOT / script), *arguments], {**kept, **settings}, None)


def test_a_user_without_a_home_needs_none(ready: CliRunner) -> None:
    for arguments in (["query.py", "--sources", LENGTH], ["query.py", LENGTH], ["query.py", "--doctor"], ["ingest.py"]):
        ran = without_home(ready, *arguments)
        assert (ran.code, "Traceback" in ran.err) == (0, False), ran.err
    ran = without_home(ready, "ingest.py", "--zotero")
    assert (ran.code, "No Zotero library was found" in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("folder", ["~/papers", "~nosuchuser/papers"])
def test_a_folder_in_an_unknown_home_is_refused(ready: CliRunner, folder: str) -> None:
    ran = without_home(ready, "query.py", LENGTH, PAPERS_DIR=folder)
    assert (ran.code, ran.err) == (
        2,
        f"A setting is invalid: PAPERS_DIR: {folder} is in a home folder that is not known; give the whole path of a"
        " folder.\nCorrect it in the environment; docs/settings.md explains it.\n",
    )


def closed(desk: CliRunner, streams: str, *command: str) -> CliResult:
    """A command in a shell that closes some of its streams."""
    shell = ["sh", "-c", f'"$@" {streams}', "sh", sys.executable, *command]
    return desk.run(shell, desk.environment() | {"PYTHONPATH": str(ROOT)}, None)


@pytest.mark.parametrize(
    "command",
    [
        [str(ROOT / "query.py"), LENGTH], [str(ROOT / "query.py"), "--sources", LENGTH],
        [str(ROOT / "query.py"), "--json", LENGTH], [str(ROOT / "query.py"), "--doctor"], [str(ROOT / "ingest.py")],
        ["-m", "folio", "papers", "export"], [str(ROOT / "query.py")],
    ],
    ids=lambda command: " ".join(command).rpartition("/")[2],
)  # fmt: skip
def test_a_closed_stream_stops_no_command(ready: CliRunner, command: list[str]) -> None:
    whole = closed(ready, "<&-", *command)
    assert whole.code == 0
    no_errors = closed(ready, "<&- 2>&-", *command)
    assert (no_errors.code, no_errors.err) == (0, "")
    if not {"--json", str(ROOT / "ingest.py")}.intersection(command):  # which print how long they took
        assert no_errors.out == whole.out
    no_output = closed(ready, ">&-", *command)
    assert (no_output.code, no_output.out, "Traceback" in no_output.err) == (0, "", False)
    assert closed(ready, "<&- >&- 2>&-", *command) == CliResult(0, "", "")
    assert ready.query("--doctor").code == 0  # nothing was printed into a file of the index


def test_an_error_without_a_stream_has_its_exit_code(ready: CliRunner) -> None:
    assert closed(ready, "2>&-", str(ROOT / "query.py"), "--sources") == CliResult(2, "", "")
