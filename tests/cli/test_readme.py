"""The README's lines, typed by a person into a shell: `make ask`, then the rest in the environment that it made."""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from folio import __version__
from tests.helpers.factories import write_pdf
from tests.helpers.ollama_server import closed_url
from tests.helpers.paths import ROOT, models_folder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None or shutil.which("bash") is None, reason="needs make and bash"),
]

RAFT = ("In Raft, a leader is elected by a majority. Raft is meant to be understood. " * 6,)
DRAFT = "# Consensus\n\nIn Raft, a leader is elected by a majority [@raft].\n"
CHECKOUT = ("config.py", "ingest.py", "query.py", "serve.py", "fetch.py", "evaluate.py", "Makefile", "README.md")
# What installs packages, uses the internet, serves until it is stopped or needs Zotero; commands without arguments
NOT_TYPED = re.compile(r"make test|pip |python (?:fetch|serve)|.*--zotero|.*folio( \w+)?$|python evaluate.py$")


def typed_lines() -> list[str]:
    """The commands of the README in their order."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^((?:make|pip|python) .*)$|`((?:make ask|source|python|folio|pip) [^`]*)`", text, re.MULTILINE)
    return [re.sub(r"\s+#.*", "", block or inline).replace("\n", " ") for block, inline in found]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which `make` finds its packages installed already, with a paper of a person's own."""
    folder = tmp_path_factory.mktemp("a checkout")
    (folder / "folio").symlink_to(ROOT / "folio", target_is_directory=True)
    for name in ("papers", "scripts", "requirements"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.jsonl", "__pycache__"))
    for name in CHECKOUT:
        shutil.copy(ROOT / name, folder)
    write_pdf(folder / "papers" / "raft.pdf", RAFT, "In Search of an Understandable Consensus Algorithm")
    (folder / "draft.md").write_text(DRAFT, encoding="utf-8")
    venv.create(folder / ".venv", symlinks=True)
    (packages,) = (folder / ".venv" / "lib").glob("python*/site-packages")
    (packages / "needed.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    (folder / ".venv" / ".installed").touch()
    return folder


def type_lines(checkout: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """What a new shell of a new user says to these lines, until one fails."""
    home = checkout.parent / "home"
    (home / "papers").mkdir(parents=True, exist_ok=True)
    shutil.copy(checkout / "papers" / "raft.pdf", home / "papers")
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "TMPDIR", "PYENV_VERSION")}
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    settings = {"OLLAMA_HOST": closed_url(), "MODELS_DIR": str(models_folder())}
    return subprocess.run(
        ["bash", "-e", "-c", "\n".join(lines)],
        cwd=checkout,
        env={**kept, "HOME": str(home), "PATH": path, **settings},
        input="",
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_lines_of_the_readme_are_typed_one_after_another(checkout: Path) -> None:
    lines = [line for line in typed_lines() if not NOT_TYPED.match(line)]
    assert lines[0] == "make ask"
    assert "source .venv/bin/activate" in lines
    assert "folio papers edit raft year=2014" in lines
    ran = type_lines(checkout, *(f"echo '>>' {number}\n{line}" for number, line in enumerate(lines)))
    last = int(re.findall(r"^>> (\d+)$", ran.stdout, re.MULTILINE)[-1])
    assert (ran.returncode, last) == (0, len(lines) - 1), f"{lines[last]}\n{ran.stderr}"


def test_the_command_of_a_checkout_is_run_anywhere(checkout: Path, tmp_path: Path) -> None:
    lines = ["make .venv/bin/folio", "source .venv/bin/activate", f"ln -s \"$PWD/.venv/bin/folio\" '{tmp_path}/linked'"]
    ran = type_lines(checkout, *lines, f"cd '{tmp_path}'", "folio --version", "./linked --version")
    assert (ran.returncode, ran.stdout) == (0, f"folio {__version__}\n" * 2), ran.stderr
