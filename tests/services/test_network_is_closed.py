"""Nothing but `folio fetch`, and `folio ask` and `folio serve` with --online, opens the network, whatever is set."""

from __future__ import annotations

import subprocess
import sys

import pytest

from folio.cli.main import COMMANDS
from tests.helpers import offline_guard
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import GLACIERS, write_pdf
from tests.helpers.paths import ROOT

NETWORK = {"folio.services.http", "folio.services.lookup"}


def test_no_command_loads_what_opens_the_network() -> None:
    """All in one process: each import adds to what the ones before it have loaded."""
    code = (
        "import importlib, sys; import folio.app, folio.cli.main\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(f'folio.cli.{name}')\n"
        f"    print(name, *sorted({NETWORK!r} & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code, *sorted(COMMANDS)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == sorted(COMMANDS)


@pytest.mark.slow
@pytest.mark.skipif(not offline_guard.can_close(), reason="the kernel's filter needs Linux")
def test_no_other_command_opens_a_socket(desk: CliRunner) -> None:
    write_pdf(desk.papers / "glaciers.pdf", GLACIERS)
    guard = desk.folder / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_bytes((ROOT / "tests" / "helpers" / "offline_guard.py").read_bytes())
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PYTHONPATH": str(guard), "OFFLINE_GUARD": "none"}
    desk.settings |= {"CONTACT_EMAIL": "me@example.org", "OPENALEX_API_KEY": "secret", "S2_API_KEY": "secret"}
    for command in (
        ("ingest.py", "--jobs", "1"),
        ("query.py", "--json", "How long is the Aletsch glacier?"),
        ("query.py", "--online", "How dense is the fur of a sea otter?"),  # searches are shown, and nothing is sent
    ):
        ran = desk.spawn(*command)
        assert (ran.code, "BROKE OUT" in ran.err) == (0, False)
    assert not (desk.folder / "cache").exists()
    assert desk.spawn("fetch.py", "--dry-run", "10.1234/x").code == offline_guard.BROKE_OUT
