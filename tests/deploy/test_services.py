"""The services that keep an index in step: systemd's and launchd's."""

from __future__ import annotations

import configparser
import plistlib
import shlex
from pathlib import Path

import pytest

from folio.cli.ingest import parser
from tests.helpers.paths import ROOT

DEPLOY = ROOT / "deploy"


def _commands() -> dict[str, list[str]]:
    unit = configparser.ConfigParser(interpolation=None, comment_prefixes="#")
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((DEPLOY / "folio-watch.service").read_text(encoding="utf-8"))
    agent = plistlib.loads((DEPLOY / "folio-watch.plist").read_bytes())
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert unit["Service"]["Restart"] == "on-failure"
    return {"systemd": shlex.split(unit["Service"]["ExecStart"]), "launchd": agent["ProgramArguments"]}


@pytest.mark.parametrize("system", ["systemd", "launchd"])
def test_a_service_watches_a_folder(system: str) -> None:
    program, script, *arguments = _commands()[system]
    assert (Path(program).name, (ROOT / Path(script).name).is_file()) == ("python", True)
    given = parser("ingest.py").parse_args(arguments)
    assert (given.watch, [path.name for path in given.paths]) == (True, ["papers"])
    assert all(word.startswith(("%h/", "/Users/", "--")) for word in (program, script, *arguments))
