"""Write requirements/*.txt, with hashes, and requirements.txt, to be read, from pyproject.toml: `make requirements`.

uv resolves for every system and Python at once, and takes the hash of every file from the package index. Versions that
the files have are kept, except with --upgrade. PyPI's torch for Linux is a CUDA build: it and what it brings are in
requirements/cuda.txt. everything.txt has the CPU build for Linux, which pip must be able to find on this computer.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "pyproject.toml"
PAGE = ROOT / "requirements.txt"
# The parts that pyproject.toml and the Makefile name, and PyPI's torch
WHOLE, BASE, CROSS_ENCODERS, EVALUATE, POSTGRES, RAY, DEVELOPMENT, CUDA = (
    ROOT / "requirements" / f"{part}.txt"
    for part in ("everything", "base", "cross-encoders", "evaluate", "postgres", "ray", "development", "cuda")
)
EVERYTHING = ("--extra=cross-encoders", "--extra=torch", "--extra=evaluate")
CUDA_PACKAGES = re.compile(r"(nvidia|cuda|triton)\b")
HEAD = """\
# Everything that Folio can use, each package at the version that it is tested with. Made by `make requirements` from
# pyproject.toml. requirements/ has the same part by part, with the hash of every file:
#
#     pip install -r requirements/base.txt    what reading, questions and the page need: 700 MB
#     pip install -r requirements.txt         all of this page: 1.1 GB, and 4 GB more with PyPI's torch for Linux"""
# For no system that Folio runs on
UNUSED = "sys_platform == 'emscripten'"

Locked = dict[str, str]  # package -> its requirement with all hashes, one on each line


def compile_requirements(sources: Sequence[str], kept: Sequence[Path], upgrade: bool = False) -> Locked:
    """Every package that these need, for every system. kept: files whose versions are preferred.

    sources: files, and options that name extras or groups of pyproject.toml.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "requirements.txt")
        out.write_text("\n".join(file.read_text(encoding="utf-8") for file in kept if file.exists()), encoding="utf-8")
        options = "--universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet".split()
        options += ["--upgrade"] * upgrade
        uv = [sys.executable, "-m", "uv", "pip", "compile", *options, "--output-file", str(out), str(PROJECT), *sources]
        subprocess.run(uv, check=True, cwd=ROOT)
        return parse(out.read_text(encoding="utf-8"))


def parse(text: str) -> Locked:
    """The requirements of a file with hashes, by package."""
    entries = re.findall(r"^[A-Za-z0-9].*(?:\n[ \t].*)*", text, re.MULTILINE)
    return {entry.partition("==")[0].lower(): entry for entry in entries if UNUSED not in entry}


def hashes_by_system(torch: str, folder: Path) -> tuple[str, str]:
    """torch with the hashes of the CPU builds, and with those of the CUDA builds for Linux. folder: for the wheels."""
    pin = torch.partition(" ")[0]
    pip = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--dest", str(folder), pin], check=True)
    (wheel,) = folder.glob("torch-*.whl")
    if "+cpu" not in wheel.name:
        raise SystemExit(f"pip found {wheel.name} here. Configure it to find torch's CPU build, then try again.")
    with wheel.open("rb") as file:
        cpu = hashlib.file_digest(file, "sha256").hexdigest()
    linux = set(cuda_hashes(pin, folder))
    found = re.findall(r"sha256:([0-9a-f]{64})", torch)
    return with_hashes(pin, [cpu, *(one for one in found if one not in linux | {cpu})]), with_hashes(pin, sorted(linux))


def cuda_hashes(pin: str, folder: Path) -> list[str]:
    """The hashes of PyPI's wheels for Linux, from a lock file, which names each wheel that it has a hash of."""
    project, lock = folder / "requirements.in", folder / "pylock.toml"
    project.write_text(pin, encoding="utf-8")
    options = "--universal --python-version 3.11 --no-deps --format pylock.toml --generate-hashes --quiet".split()
    subprocess.run([sys.executable, "-m", "uv", "pip", "compile", *options, "-o", str(lock), str(project)], check=True)
    (package,) = tomllib.loads(lock.read_text(encoding="utf-8"))["packages"]
    return [wheel["hashes"]["sha256"] for wheel in package["wheels"] if "linux" in wheel["url"].rpartition("/")[2]]


def with_hashes(pin: str, hashes: Sequence[str]) -> str:
    return " \\\n".join([pin, *(f"    --hash=sha256:{one}" for one in hashes)])


def write(path: Path, locked: Locked) -> None:
    """Replace everything in a requirements file but its comments at the top."""
    head = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    path.write_text("\n".join([*head, *(locked[name] for name in sorted(locked))]) + "\n", encoding="utf-8")


def page(project: str, locked: Locked) -> str:
    """The packages that a project names, in its groups and with its reasons, then what these bring, without hashes.

    project: the text of pyproject.toml. locked: what the page lists.
    """
    pins = {package: entry.partition(" \\\n")[0] for package, entry in locked.items()}
    lines, title, named = [HEAD], "", set[str]()
    for comment, package, reason in re.findall(r'^ *# (.+)|^ *"([\w.-]+)[^"]*",(?: +# (.+))?', project, re.MULTILINE):
        key = package.lower().replace("_", "-")
        title = comment or title
        if key not in pins or key in named:
            continue
        lines += [f"\n# {title}"] * bool(title) + [f"{pins[key]:<34} # {reason}" if reason else pins[key]]
        title, named = "", named | {key}
    rest = [pin for package, pin in sorted(pins.items()) if package not in named]
    return "\n".join([*lines, "\n# What these bring", *rest]) + "\n"


def without(locked: Locked, *others: Locked) -> Locked:
    return {package: entry for package, entry in locked.items() if not any(package in other for other in others)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the requirements files from pyproject.toml.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    upgrade = parser.parse_args().upgrade
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
        tests = folder / "tests.in"  # the one package of the tests that requirements.txt lists, too
        development = project["dependency-groups"]["development"]
        tests.write_text(next(one for one in development if one.startswith("pytest>")), encoding="utf-8")
        build = folder / "build.in"  # a test builds the package
        build.write_text("\n".join(project["build-system"]["requires"]), encoding="utf-8")
        whole = compile_requirements([*EVERYTHING, str(tests)], [WHOLE, CUDA], upgrade)
        whole["torch"], cuda_torch = hashes_by_system(whole["torch"], folder)
        cuda = {package: entry for package, entry in whole.items() if CUDA_PACKAGES.match(package)}
        whole = without(whole, cuda)
        write(WHOLE, whole)
        PAGE.write_text(page(PROJECT.read_text(encoding="utf-8"), whole), encoding="utf-8")
        write(CUDA, {**cuda, "torch": cuda_torch})
        needed = [*EVERYTHING, "--extra=postgres", "--group=development", str(build)]
        packages = compile_requirements(needed, [WHOLE, CUDA, POSTGRES, DEVELOPMENT], upgrade)
    base = compile_requirements([], [WHOLE])
    write(BASE, base)
    for file in (CROSS_ENCODERS, EVALUATE):
        write(file, without(compile_requirements([f"--extra={file.stem}"], [WHOLE]), base))
    postgres = without(compile_requirements(["--extra=postgres"], [WHOLE, POSTGRES], upgrade), base)
    write(POSTGRES, postgres)
    write(DEVELOPMENT, without(packages, whole, cuda, postgres))
    write(RAY, without(compile_requirements(["--extra=ray"], [WHOLE, RAY], upgrade), base))


if __name__ == "__main__":
    main()
