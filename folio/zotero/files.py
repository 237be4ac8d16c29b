"""Finds Zotero's data folder through the preferences of its profiles, and the files of its attachments."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from folio.errors import UsageError, command
from folio.system.files import open_regular
from folio.zotero.link import is_key

DATABASE = "zotero.sqlite"
_MAX_PREFERENCES = 2**22  # bytes; a real file has some hundred kilobytes
_PREFERENCE = re.compile(
    r"""^\s*user_pref\(\s*"extensions\.zotero\.(\w+)"\s*,\s*(?:"((?:[^"\\\r\n]|\\.)*)"|(true|false))\s*\)""", re.M
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))", re.S)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_REMEDY = (
    "Name the data folder, which Zotero shows in its settings under Advanced, Files and Folders:"
    f" {command('ingest --zotero FOLDER')}."
)
_STORED, RELATIVE = "storage:", "attachments:"  # how paths in the database begin
# linkMode: imported file, imported URL, linked file; 3 is a linked URL, which has no file
_IMPORTED, _LINKED = (0, 1), 2
_LONGEST = 4096  # characters of a path


@dataclass(frozen=True, slots=True)
class Computer:
    """Where programs keep their files on a computer."""

    home: Path
    system: str = sys.platform
    app_data: Path | None = None  # APPDATA on Windows

    @classmethod
    def this(cls) -> Computer:
        app_data = os.environ.get("APPDATA")
        try:
            home = Path.home()
        except RuntimeError:  # no HOME and no entry in passwd, as in a container
            home = Path(os.devnull)  # nothing is in there
        return cls(home, sys.platform, Path(app_data) if app_data else None)

    def profiles(self) -> Path:
        """The folder of Zotero's profiles."""
        if self.system == "win32":
            return (self.app_data or self.home / "AppData" / "Roaming") / "Zotero" / "Zotero"
        if self.system == "darwin":
            return self.home / "Library" / "Application Support" / "Zotero"
        return self.home / ".zotero" / "zotero"


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Zotero's data folder."""

    path: Path  # absolute
    attachments: Path | None = None  # the base folder of linked files, if the preferences name one


def find_data_folder(given: Path | None, computer: Computer) -> DataFolder:
    """The given folder, else the data folder of the profile used last, else ~/Zotero. Raises UsageError."""
    preferences = list(_preferences(computer.profiles()))
    default = computer.home / "Zotero"
    chosen = [Path(profile["dataDir"]) for profile in preferences if _uses_data_folder(profile)]
    candidates = [Path(os.path.abspath(os.path.expanduser(given)))] if given else [*chosen, default]
    for folder in candidates:
        if (folder / DATABASE).is_file():
            return DataFolder(folder, _base_folder(folder, default, preferences))
    if given:
        raise UsageError(f"There is no Zotero library in {candidates[0]}: it has no {DATABASE}.", _REMEDY)
    where = " or ".join(map(str, dict.fromkeys(candidates)))
    raise UsageError(f"No Zotero library was found in {where}.", _REMEDY)


def _base_folder(folder: Path, default: Path, preferences: list[dict[str, str]]) -> Path | None:
    """The base folder of the profile that uses this data folder, or else of the profile used last."""

    def uses_other(profile: Mapping[str, str]) -> bool:
        return (Path(profile["dataDir"]) if _uses_data_folder(profile) else default) != folder

    for profile in sorted(preferences, key=uses_other):
        base = profile.get("baseAttachmentPath", "")
        if base and "\0" not in base and os.path.isabs(base):
            return Path(base)
    return None


def _uses_data_folder(preferences: Mapping[str, str]) -> bool:
    folder = preferences.get("dataDir", "")
    return "\0" not in folder and os.path.isabs(folder) and preferences.get("useDataDir") != "false"


def _preferences(profiles: Path) -> Iterator[dict[str, str]]:
    """The preferences of each profile, the last used first."""
    used: list[tuple[float, Path]] = []
    try:
        for file in (*profiles.glob("*/prefs.js"), *profiles.glob("Profiles/*/prefs.js")):
            used.append((file.stat().st_mtime, file))
    except OSError:
        pass  # use the profiles listed so far
    for _, file in sorted(used, key=lambda each: (-each[0], each[1])):
        try:
            with open_regular(file) as opened:
                yield read_preferences(opened.read(_MAX_PREFERENCES).decode("utf-8", "replace"))
        except OSError:
            continue


def read_preferences(text: str) -> dict[str, str]:
    """Zotero's own preferences in the text of a prefs.js: name -> text, or "true" and "false"."""
    return {name: boolean or _unescaped(literal) for name, literal, boolean in _PREFERENCE.findall(text)}


def _unescaped(literal: str) -> str:
    """The value of a JavaScript string literal."""

    def char(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2]
        return chr(int(code, 16)) if code else _CONTROL.get(escape[3], escape[3])

    # JavaScript writes characters beyond the first 65,536 as two surrogates.
    return _ESCAPE.sub(char, literal).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def attachment_file(folder: Path, key: str, link_mode: int, path: str, base: Path | None) -> Path | None:
    """The absolute path of an attachment's file, which need not exist; None if the path is not valid.

    folder: Zotero's data folder. base: the base folder of linked files, if the preferences name one. A stored file must
    be in the folder of its key, and no path may contain "..".
    """
    if not path or "\0" in path or len(path) > _LONGEST or not is_key(key):
        return None
    if link_mode in _IMPORTED:
        name = path.removeprefix(_STORED)
        is_name = path != name and name not in ("", ".", "..") and not any(sign in name for sign in "/\\")
        return _existing(folder / "storage" / key / name) if is_name else None
    if link_mode != _LINKED:
        return None
    if path.startswith(RELATIVE):
        relative = PurePath(path.removeprefix(RELATIVE).replace("\\", "/"))
        if base is None or relative.is_absolute() or relative.drive or not relative.parts or ".." in relative.parts:
            return None
        return _existing(base / relative)
    # Folio opens nothing on other computers, which Windows addresses as \\computer\share.
    is_local = os.path.isabs(path) and not path.startswith(("\\\\", "//"))
    return _existing(Path(os.path.abspath(path))) if is_local and ".." not in PurePath(path).parts else None


def _existing(path: Path) -> Path:
    """The path with accents as on the disk: macOS stores "é" as two characters, Zotero as one."""
    for form in ("NFC", "NFD"):
        other = path.with_name(unicodedata.normalize(form, path.name))
        if other != path and not os.path.lexists(path) and os.path.lexists(other):
            return other
    return path
