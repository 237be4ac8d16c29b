"""Finding Zotero's data folder, and what the preferences of its profiles say about it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from folio.errors import UsageError, command
from folio.files import open_regular

DATABASE = "zotero.sqlite"
_MAX_PREFERENCES = 2**22  # bytes; a profile has some hundred kilobytes at most
_PREFERENCE = re.compile(
    r"""^\s*user_pref\(\s*"extensions\.zotero\.(\w+)"\s*,\s*(?:"((?:[^"\\\r\n]|\\.)*)"|(true|false))\s*\)""", re.M
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))", re.S)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_REMEDY = (
    "Name the data folder, which Zotero shows in its settings under Advanced, Files and Folders:"
    f" {command('ingest --zotero FOLDER')}."
)


@dataclass(frozen=True, slots=True)
class Computer:
    """Where programs keep their files here."""

    home: Path
    system: str = sys.platform  # as sys.platform has it
    app_data: Path | None = None  # Windows' APPDATA

    @classmethod
    def this(cls) -> Computer:
        app_data = os.environ.get("APPDATA")
        return cls(Path.home(), sys.platform, Path(app_data) if app_data else None)

    def profiles(self) -> Path:
        """The folder of Zotero's profiles."""
        if self.system == "win32":
            return (self.app_data or self.home / "AppData" / "Roaming") / "Zotero" / "Zotero"
        if self.system == "darwin":
            return self.home / "Library" / "Application Support" / "Zotero"
        return self.home / ".zotero" / "zotero"


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Zotero's data folder, and the base folder of linked files if the preferences name one."""

    path: Path  # absolute
    attachments: Path | None = None


def find_data_folder(given: Path | None, computer: Computer) -> DataFolder:
    """The folder given, or else that of the profile used last, or else ~/Zotero. Raises UsageError."""
    preferences = list(_preferences(computer.profiles()))
    default = computer.home / "Zotero"
    chosen = [Path(found["dataDir"]) for found in preferences if _uses_data_folder(found)]
    candidates = [Path(os.path.abspath(given.expanduser()))] if given else [*chosen, default]
    for folder in candidates:
        if (folder / DATABASE).is_file():
            return DataFolder(folder, _base_folder(folder, default, preferences))
    if given:
        raise UsageError(f"There is no Zotero library in {candidates[0]}: it has no {DATABASE}.", _REMEDY)
    where = " or ".join(map(str, dict.fromkeys(candidates)))
    raise UsageError(f"No Zotero library was found in {where}.", _REMEDY)


def _base_folder(folder: Path, default: Path, preferences: list[dict[str, str]]) -> Path | None:
    """The base folder of the profile that uses this data folder, or else of the one used last."""

    def is_other(found: Mapping[str, str]) -> bool:
        return (Path(found["dataDir"]) if _uses_data_folder(found) else default) != folder

    for found in sorted(preferences, key=is_other):
        base = found.get("baseAttachmentPath", "")
        if base and "\0" not in base and os.path.isabs(base):
            return Path(base)
    return None


def _uses_data_folder(preferences: Mapping[str, str]) -> bool:
    folder = preferences.get("dataDir", "")
    return "\0" not in folder and os.path.isabs(folder) and preferences.get("useDataDir") != "false"


def _preferences(profiles: Path) -> Iterator[dict[str, str]]:
    """The preferences of each profile, those used last first."""
    used: list[tuple[float, Path]] = []
    try:
        for file in (*profiles.glob("*/prefs.js"), *profiles.glob("Profiles/*/prefs.js")):
            used.append((file.stat().st_mtime, file))
    except OSError:
        pass  # those found so far
    for _, file in sorted(used, key=lambda each: (-each[0], each[1])):
        try:
            with open_regular(file) as opened:
                yield read_preferences(opened.read(_MAX_PREFERENCES).decode("utf-8", "replace"))
        except OSError:
            continue


def read_preferences(text: str) -> dict[str, str]:
    """Zotero's own preferences in the text of a prefs.js: name -> text, or "true" and "false"."""
    return {name: boolean or _unescaped(written) for name, written, boolean in _PREFERENCE.findall(text)}


def _unescaped(written: str) -> str:
    """The value of a JavaScript string literal."""

    def char(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        return chr(int(code, 16)) if code else _CONTROL.get(found[3], found[3])

    # Characters beyond the first 65,536 are written as two.
    return _ESCAPE.sub(char, written).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
