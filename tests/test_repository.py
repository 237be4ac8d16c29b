"""The repository itself: its modules, its make targets, its requirements and the sample paper."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from email.message import Message
from functools import cache
from pathlib import Path

import pymupdf
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from folio.search.names import SAMPLE_ID
from folio.system.files import sha256_file
from scripts import list_licences, lock_requirements
from scripts.list_licences import is_allowed, licence
from scripts.make_sample import OUTPUT, make_sample
from tests.helpers.paths import ROOT

pytestmark = [pytest.mark.fast, pytest.mark.environment]

MODULES = sorted((ROOT / "folio").rglob("*.py"))

PICKLES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> set[str]:
    """The top-level package of everything that a file imports, anywhere in it, by name too."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Call) and called(node).endswith(("import_module", "__import__")):
            found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}
    return {name.partition(".")[0] for name in found}


def called(call: ast.Call) -> str:
    """The last name of what is called: "import_module" of `importlib.import_module(...)`; "" without one."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


# `make test` hands down its flags, "keep going" or "dry run" among them, and that it is the outer one.
MAKES_OWN = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}


def make(*arguments: str) -> str:
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    environment = {name: value for name, value in os.environ.items() if name not in MAKES_OWN}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_only_the_app_and_the_model_choice_see_the_settings() -> None:
    see = {"app", "model_choice"}
    assert {path.stem for path in MODULES if "config" in imported(path)} == see
    reads = re.compile(r"\bsettings\.[A-Z]|\b_?app\.settings\b")
    assert {path.stem for path in MODULES if reads.search(path.read_text(encoding="utf-8"))} == see
    # Carried in the package under this name, where app.py looks first; imported by nothing else.
    assert [path.stem for path in MODULES if "folio._config" in path.read_text(encoding="utf-8")] == ["app"]
    assert not {"folio", "scripts", "ingest", "query", "evaluate", "serve"} & imported(ROOT / "config.py")


def unpickles(tree: ast.Module) -> bool:
    """Whether a module names a way to read or write pickles."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword):
            is_off = isinstance(node.value, ast.Constant) and node.value.value is False
            if node.arg == "allow_dangerous_deserialization" or (node.arg == "allow_pickle" and not is_off):
                return True
        elif isinstance(node, ast.Constant) and node.value in {"allow_dangerous_deserialization", *PICKLES}:
            return True
    return False


def test_no_module_reads_or_writes_pickles() -> None:
    assert [path for path in MODULES if PICKLES & imported(path) or unpickles(parsed(path))] == []


def test_make_clean_keeps_papers_and_the_index() -> None:
    removed = make("--dry-run", "clean")
    assert not re.search(r"\b(papers|vectorstore|models|ingested)\b", removed)


def test_make_says_when_python_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError) as raised:
        make("ask", f"PYTHON={old}")
    assert raised.value.stdout == ""
    assert raised.value.stderr.splitlines()[0].startswith("Folio needs Python 3.11 or newer")


def requirements(name: str) -> list[str]:
    """The requirements of a file, each on one line, without comments."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def pins(name: str) -> dict[str, str]:
    """Package, as the package index spells it, to version. Every requirement must pin one."""
    form = r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)( +;[^\"]+?)?( +--hash=sha256:[0-9a-f]{64})*"
    found = [re.fullmatch(form, line) for line in requirements(name)]
    assert all(found), f"{name} has a line that pins nothing"
    return {re.sub(r"[-_.]+", "-", match[1]).lower(): match[2] for match in found if match}


WHOLE = "requirements/everything.txt"
FILES = sorted(f"requirements/{path.name}" for path in (ROOT / "requirements").iterdir())
# What a question needs none of, and what takes gigabytes with PyPI's torch
HEAVY = {"torch", "sentence-transformers", "transformers", "scikit-learn", "scipy", "matplotlib", "onnx", "pandas"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def unmet(ranges: Sequence[str], pinned: Mapping[str, str]) -> list[str]:
    """The requirements of pyproject.toml that these pins do not meet."""
    wanted = [Requirement(one) for one in ranges]
    return [str(one) for one in wanted if not one.specifier.contains(pinned.get(canonicalize_name(one.name), "0"))]


@pytest.mark.parametrize("name", FILES)
def test_every_file_that_is_installed_has_a_hash(name: str) -> None:
    assert pins(name)
    assert [line for line in requirements(name) if "--hash=sha256:" not in line] == []
    assert "://" not in (ROOT / name).read_text(encoding="utf-8")  # from whichever index pip uses


def test_the_page_of_requirements_lists_the_whole_closure_for_people() -> None:
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    locked = lock_requirements.parse((ROOT / WHOLE).read_text(encoding="utf-8"))
    assert text == lock_requirements.page((ROOT / "pyproject.toml").read_text(encoding="utf-8"), locked)
    assert pins("requirements.txt") == pins(WHOLE)
    assert "--hash" not in text
    named = re.findall(r"^([\w.-]+)==\S+ +# .", text, re.MULTILINE)
    assert {canonicalize_name(Requirement(one).name) for one in PROJECT["project"]["dependencies"]} <= set(named)
    assert len(text.splitlines()) < 200


def test_torch_for_cuda_has_hashes_of_its_own() -> None:
    files = (WHOLE, "requirements/cuda.txt")
    assert len({pins(name)["torch"] for name in files}) == 1
    cpu, cuda = (
        {one for line in requirements(name) if line.startswith("torch==") for one in re.findall("[0-9a-f]{64}", line)}
        for name in files
    )
    assert (bool(cpu), bool(cuda), cpu & cuda) == (True, True, set())
    assert not set(pins("requirements/cuda.txt")) & set(pins(WHOLE)) - {"torch"}
    assert not [name for name in pins(WHOLE) if name.startswith(("nvidia-", "cuda-", "triton"))]


def test_requirements_are_pinned_and_hold_what_is_asked_for() -> None:
    base, closure = pins("requirements/base.txt"), pins(WHOLE)
    assert unmet(PROJECT["project"]["dependencies"], base) == []
    assert base.items() <= closure.items()
    assert not HEAVY & set(base)


@pytest.mark.parametrize("extra", ["cross-encoders", "evaluate", "postgres", "ray"])
def test_files_of_extras_hold_what_they_add(extra: str) -> None:
    base, closure = pins("requirements/base.txt"), pins(WHOLE)
    more = pins(f"requirements/{extra}.txt")
    assert unmet(PROJECT["project"]["optional-dependencies"][extra], {**base, **more}) == []
    assert not set(base) & set(more)
    assert extra in ("postgres", "ray") or more.items() <= closure.items()
    assert all(closure.get(name, version) == version for name, version in more.items())  # both can be installed


def test_the_development_requirements_add_to_the_others_and_repeat_none() -> None:
    closure, more = pins(WHOLE), pins("requirements/development.txt")
    assert not set(closure) & set(more)
    assert unmet(PROJECT["dependency-groups"]["development"], {**closure, **more}) == []
    assert unmet(PROJECT["build-system"]["requires"], more) == []


def test_only_the_tests_need_the_development_requirements() -> None:
    assert [task for task in ("ask", "serve", "models") if "requirements/development" in make("--dry-run", task)] == []
    assert "requirements/cross-encoders" not in make("--dry-run", "ask")
    assert WHOLE not in make("--dry-run", "models")


def about(**fields: str) -> Message:
    found = Message()
    for name, value in fields.items():
        found[name.replace("_", "-")] = value
    return found


@pytest.mark.parametrize(
    ("metadata", "text", "name", "allowed"),
    [
        (about(License_Expression="MIT OR LicenseRef-Mine"), "", "MIT OR LicenseRef-Mine", True),
        (about(License_Expression="MIT AND LicenseRef-Mine"), "", "MIT AND LicenseRef-Mine", False),
        (about(License_Expression="MPL-2.0 AND (MIT OR X)"), "", "MPL-2.0 AND (MIT OR X)", False),
        (about(License_Expression="Apache-2.0 WITH LLVM-exception"), "", "Apache-2.0 WITH LLVM-exception", True),
        (about(Classifier="License :: OSI Approved :: MIT License", License="mine"), "", "MIT", True),
        (about(License="Proprietary"), "MIT License\n", "Proprietary", False),
        (about(License_File="LICENSE"), "MIT License\n\nPermission", "MIT", True),
        (about(), "", "unknown", False),
    ],
)
def test_licence_of_a_package(metadata: Message, text: str, name: str, allowed: bool) -> None:
    found = licence(metadata, text)
    assert (found, is_allowed(found)) == (name, allowed)


def test_torch_for_cuda_may_bring_what_nvidia_licenses(tmp_path: Path) -> None:
    """As pip would install them: a package is allowed by its name, and another with the same licence is not."""
    for name in ("nvidia_cublas", "something"):
        (tmp_path / f"{name}-1.dist-info").mkdir()
        about = f"Metadata-Version: 2.4\nName: {name.replace('_', '-')}\nVersion: 1\n"
        metadata = f"{about}License-Expression: LicenseRef-NVIDIA-Proprietary\n"
        (tmp_path / f"{name}-1.dist-info" / "METADATA").write_text(metadata)
    listed = [sys.executable, str(ROOT / "scripts" / "list_licences.py")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    both = subprocess.run(listed, env=environment, capture_output=True, text=True, check=False)
    refused = "Not allowed: LicenseRef-NVIDIA-Proprietary (something 1)."
    assert (both.returncode, both.stderr.splitlines()[0]) == (1, refused)
    shutil.rmtree(tmp_path / "something-1.dist-info")
    assert subprocess.run(listed, env=environment, capture_output=True, check=False).returncode == 0


def test_every_installed_package_has_a_licence_that_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_licences.main([]) == 0
    assert "AGPL-3.0-only: pymupdf" in capsys.readouterr().out


def test_the_sample_paper_is_the_one_that_its_script_makes() -> None:
    assert sha256_file(OUTPUT) == SAMPLE_ID  # if this fails after `make sample`, put the new one there
    content = make_sample()
    assert make_sample() == content
    with pymupdf.open(OUTPUT) as shipped, pymupdf.open("pdf", content) as made:
        assert [page.get_text() for page in shipped] == [page.get_text() for page in made]
        assert shipped.metadata == made.metadata
        assert [page.get_label() for page in shipped] == ["1", "2", "3", "4", "5"]
