"""Finds PDF files, hashes them (SHA-256), and defines what an ingest reports about them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from folio.errors import UsageError
from folio.papers.model import SourceFile
from folio.system.files import NotAFile, sha256_file

Status = Literal["added", "replaced", "unchanged", "duplicate", "failed", "pruned"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one file."""

    file: SourceFile
    status: Status
    pages: int = 0
    chunks: int = 0
    notes: tuple[str, ...] = ()  # its problems, or why it failed and what to do


class IngestProgress(Protocol):
    """Receives the progress of an ingest."""

    def hashed(self, file: Path) -> None: ...

    def planned(self, files: Sequence[SourceFile]) -> None: ...

    def scanned(self, file: SourceFile, pages: int, of: int) -> None:
        """`pages` of a file's `of` pages are read, by OCR if they are scans, in this run or before."""
        ...

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None: ...

    def done(self, outcome: Outcome) -> None: ...


def find_pdfs(targets: Iterable[Path]) -> dict[Path, str]:
    """Absolute path -> display name. Folders are searched for PDFs; a target that is a file is always included.

    Links to folders are followed; hidden files and folders are skipped. Raises UsageError for a target that does not
    exist or a folder that cannot be searched.
    """
    names: dict[Path, str] = {}
    for target in targets:
        absolute = Path(os.path.abspath(target))  # without "..", so that each file has one path
        if absolute.is_dir():
            for path in _pdfs_in(absolute):
                names.setdefault(path, path.relative_to(absolute).as_posix())
        elif absolute.exists():
            names.setdefault(absolute, absolute.name)
        else:
            raise UsageError(f"There is no file or folder {target}.", "Check the path, or put PDFs into papers/.")
    return names


def _pdfs_in(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise UsageError(f"The folder {error.filename} cannot be searched: {error.strerror}.", "Check its permissions.")

    return sorted(Path(path) for _, paths in walk(folder, refuse) for path in paths)


def walk(folder: Path, on_error: Callable[[OSError], None]) -> Iterator[tuple[str, list[str]]]:
    """Each folder below `folder` and itself, with the PDFs in it. on_error: called for one that cannot be searched."""
    visited: set[str] = set()
    for parent, folders, names in os.walk(folder, onerror=on_error, followlinks=True):
        visited.add(os.path.realpath(parent))
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and os.path.realpath(os.path.join(parent, name)) not in visited
        ]
        # Pipes, devices and broken links stay in: hashing reports them.
        yield parent, list(filter(_is_wanted, (os.path.join(parent, name) for name in names if name[0] != ".")))


def _is_wanted(path: str) -> bool:
    """Whether a path in a folder is a PDF or a broken link, whose target may have been a folder of PDFs."""
    if path[-4:].lower() == ".pdf":
        return os.path.lexists(path)
    return os.path.islink(path) and not os.path.exists(path)


def hash_files(files: dict[Path, str], progress: IngestProgress) -> tuple[list[SourceFile], list[Outcome]]:
    """The files with their SHA-256, and outcomes for those that could not be read."""
    hashed: list[SourceFile] = []
    failed: list[Outcome] = []
    # Reading and hashing release Python's global lock, so threads can use all cores.
    pool = ThreadPoolExecutor(min(8, os.cpu_count() or 1))
    try:
        for path, file in zip(files, pool.map(_hash_file, files, files.values()), strict=True):
            if isinstance(file, SourceFile):
                hashed.append(file)
            else:
                failed.append(file)
            progress.hashed(path)
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
    except NotAFile as error:
        notes = (f"It cannot be read: {error.strerror}.", "Name a PDF instead, or take it out of the folder.")
    except OSError as error:
        notes = (f"It cannot be opened: {error.strerror}.", "Check its permissions.")
        if path.is_symlink() and not path.exists():
            target = os.fsencode(os.readlink(path)).decode(errors="replace")
            notes = (f"It is a link to {target}, which is not there.", "Put it back, or delete the link.")
    printable = os.fsencode(path).decode(errors="replace")
    return Outcome(SourceFile(printable, name, ""), "failed", notes=notes)


def is_gone(path: Path) -> bool:
    """Whether a file is missing although its folder exists."""
    try:
        path.stat()
    except FileNotFoundError:
        return path.parent.is_dir()
    except OSError:
        return False
    return False
