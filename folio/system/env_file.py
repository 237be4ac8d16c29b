"""A file of settings, NAME=value a line: some of its lines are changed, and every other one stays as it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path

from filelock import FileLock

from folio.errors import UsageError
from folio.system.files import discard, no_space, replace, sync, sync_folder

_LOCK_S = 5.0  # that another writer may take


def change_file(path: Path, changes: Mapping[str, str | None]) -> None:
    """Set names in a file, made if it is missing; None removes a name. Whole or not at all, one writer at a time.

    A link stays a link, and the file keeps its mode; a new one can be read only by this user. Raises UsageError for a
    value that such a file cannot hold or a file that is no text, OSError, DiskFull.
    """
    path = Path(os.path.realpath(path))
    with no_space(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=_LOCK_S, mode=0o600):
            _write(path, changed_text(_read(path), changes))


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        remedy = "Save it as UTF-8 in a text editor, then try again."
        raise UsageError(f"The file of settings {path} is no text in UTF-8.", remedy) from error


def _write(path: Path, text: str) -> None:
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(13, "Permission denied", str(path))  # a rename would replace a read-only file
    new = path.with_name(f"{path.name}.new")
    discard(new)  # of a process that was killed
    try:
        with open(new, "xb", opener=_open_private) as file:
            file.write(text.encode())
        if path.exists():
            with suppress(OSError):
                shutil.copymode(path, new)
        sync(new)
        replace(new, path)
    finally:
        new.unlink(missing_ok=True)
    sync_folder(path.parent)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def changed_text(text: str, changes: Mapping[str, str | None]) -> str:
    """The text of a file with these names set, each where it stood, else at the end; None removes a name.

    >>> changed_text("# mine\\nTOP_K=4\\nOTHER=x\\n", {"TOP_K": "6", "LLM": "builtin"})
    "# mine\\nTOP_K='6'\\nOTHER=x\\nLLM='builtin'\\n"
    """
    from dotenv.parser import parse_stream

    lines = {name: None if value is None else _line(name, value) for name, value in changes.items()}
    end = "\r\n" if "\r\n" in text else "\n"
    parts: list[str] = []
    written: set[str] = set()
    for binding in parse_stream(StringIO(text, newline="")):
        name = (binding.key or "").upper()
        if name not in lines:
            parts.append(binding.original.string)
            continue
        # A line that is read begins with the blank lines before it.
        original = binding.original.string
        parts.append(original[: len(original) - len(original.lstrip("\r\n"))])
        line = lines[name]
        if line is not None and name not in written:
            parts.append(line + end)
        written.add(name)
    whole = "".join(parts)
    missing = [line for name, line in lines.items() if line is not None and name not in written]
    if missing and whole and not whole.endswith(("\n", "\r")):
        whole += end
    return whole + "".join(line + end for line in missing)


def _line(name: str, value: str) -> str:
    """A line that python-dotenv reads as this value. It fills in ${NAME} everywhere."""
    if "${" in value or not value.isprintable():
        what = "the characters ${" if "${" in value else "a character that cannot be shown"
        raise UsageError(f"{name} cannot have {what} in the file of settings.", "Choose another value.")
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{name}='{escaped}'"
