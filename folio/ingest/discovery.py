"""Which PDFs there are, and their SHA-256."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from folio.errors import UsageError
from folio.files import sha256_file
from folio.ingest.progress import IngestProgress, Outcome
from folio.types import SourceFile


def find_pdfs(targets: Iterable[Path]) -> dict[Path, str]:
    """PDFs by absolute path, with the name that people see; folders are searched, files taken as they are.

    Links to folders are followed, hidden files and folders are left out. Raises UsageError for a target that does not
    exist or a folder that cannot be searched.
    """
    found: dict[Path, str] = {}
    for target in targets:
        place = Path(os.path.abspath(target))  # without "..", so that a file has one path
        if place.is_dir():
            for path in _pdfs_below(place):
                found.setdefault(path, path.relative_to(place).as_posix())
        elif place.exists():
            found.setdefault(place, place.name)
        else:
            raise UsageError(f"There is no file or folder {target}.", "Check the path, or put PDFs into papers/.")
    return found


def _pdfs_below(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise UsageError(f"The folder {error.filename} cannot be searched: {error.strerror}.", "Check its permissions.")

    found: list[Path] = []
    visited: set[str] = set()
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        visited.add(os.path.realpath(place))
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and os.path.realpath(os.path.join(place, name)) not in visited
        ]
        paths = (Path(place, name) for name in names if name.lower().endswith(".pdf") and not name.startswith("."))
        found += (path for path in paths if path.is_file())
    return sorted(found)


def hash_files(files: dict[Path, str], watch: IngestProgress) -> tuple[list[SourceFile], list[Outcome]]:
    """Every file with its SHA-256, and those that could not be read."""
    hashed: list[SourceFile] = []
    failed: list[Outcome] = []
    # Neither the disk nor the hashing holds Python up: threads share the files out among the cores.
    pool = ThreadPoolExecutor(min(8, os.cpu_count() or 1))
    try:
        for path, file in zip(files, pool.map(_hash_file, files, files.values()), strict=True):
            if isinstance(file, SourceFile):
                hashed.append(file)
            else:
                failed.append(file)
            watch.hashed(path)
    finally:
        pool.shutdown(cancel_futures=True)
    return hashed, failed


def _hash_file(path: Path, name: str) -> SourceFile | Outcome:
    try:
        str(path).encode()
        return SourceFile(str(path), name, sha256_file(path))
    except UnicodeEncodeError:
        name = os.fsencode(name).decode(errors="replace")
        notes = ("Its name is not valid UTF-8.", "Rename it.")
    except OSError as error:
        notes = (f"It cannot be opened: {error.strerror}.", "Check its permissions.")
    shown = os.fsencode(path).decode(errors="replace")
    return Outcome(SourceFile(shown, name, ""), "failed", notes=notes)


def is_gone(path: Path) -> bool:
    """Whether a file is known to be gone: its folder is there, and it is not."""
    try:
        path.stat()
    except FileNotFoundError:
        return path.parent.is_dir()
    except OSError:
        return False
    return False
