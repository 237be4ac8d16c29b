"""The package: what its wheel holds, and that it answers where there is no checkout."""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from folio import __version__
from folio.models.minilm import SHA256
from tests.helpers.ollama_server import closed_url
from tests.helpers.paths import ROOT, SAMPLE

pytestmark = pytest.mark.slow

LIMIT_S = 300
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout with what is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, *PIP, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run(build, cwd=ROOT, timeout=LIMIT_S, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_is_named_and_needs_nothing_heavy(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        about = message_from_bytes(opened.read(name))
    assert (about["Name"], about["Version"]) == ("folio-papers", __version__)
    assert about["License-Expression"] == "AGPL-3.0-or-later AND Apache-2.0"
    needed = [line for line in about.get_all("Requires-Dist") or [] if "extra ==" not in line]
    heavy = re.compile(r"torch|sentence-transformers|transformers|onnx\b|scipy|gt-all")
    assert needed
    assert [line for line in needed if heavy.match(line)] == []


def test_the_wheel_holds_exactly_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        assert opened.read("folio/_config.py") == (ROOT / "config.py").read_bytes()
    files = (path for path in (ROOT / "folio").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert names == {*(path.relative_to(ROOT).as_posix() for path in files), "folio/_config.py"}
    model = {f"folio/models/all-MiniLM-L6-v2/{name}" for name in (*SHA256, "LICENSE")}
    assert {"folio/web/static/index.html", "folio/web/static/style.css", *model} <= names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a fresh environment: Folio from its wheel, what it needs from this environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [sys.executable, *PIP, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, timeout=LIMIT_S, check=True, capture_output=True)
    where = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    packages = Path(subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip())
    (packages / "needed.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    return python.parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that is no checkout, with a config.py of its own, and an empty home in it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "config.py").write_text("raise AssertionError('not the settings of Folio')\n", encoding="utf-8")
    return tmp_path


def run(installed: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A program of the fresh environment, as a new user whose Ollama is not there."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR")}
    home = str(folder / "home")
    environment = {**kept, "HOME": home, "LOCALAPPDATA": home, "OLLAMA_HOST": closed_url()}
    return subprocess.run(
        [str(installed / command[0]), *command[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


QUESTION = "What happens to the index when the computer loses power during an ingest?"


def test_an_installed_folio_reads_and_answers_anywhere(installed: Path, folder: Path) -> None:
    for program in (("folio",), ("python", "-m", "folio")):
        assert run(installed, folder, *program, "--version").stdout == f"folio {__version__}\n"
    ingested = run(installed, folder, "folio", "ingest", str(SAMPLE.parent))
    assert ingested.returncode == 0, ingested.stderr
    answered = run(installed, folder, "folio", "ask", QUESTION)
    assert answered.returncode == 0, answered.stderr
    assert "folio-sample.pdf" in answered.stdout
    notices = ingested.stderr + answered.stderr
    assert notices.count("Using built-in models.") == 1  # it comes once a day
    assert "(`folio doctor` shows how)" in notices
    assert ".py`" not in notices
    doctor = run(installed, folder, "folio", "doctor")
    assert doctor.returncode == 0, doctor.stderr
    assert "Ready to answer." in doctor.stdout
    assert "`hf download cross-encoder/ms-marco-MiniLM-L-6-v2`" in doctor.stdout
    assert "make models" not in doctor.stdout + notices
    # Everything that it keeps is in the user's data folder.
    (kept,) = {path.parent.parent for path in (folder / "home").rglob("library.sqlite")}
    assert kept.name == "folio"
    assert {path.name for path in kept.iterdir()} >= {"vectorstore", "ingested.json"}
    assert {path.name for path in folder.iterdir()} == {"home", "config.py"}
