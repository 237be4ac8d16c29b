"""Where the file of a Zotero attachment lies. Pure, but for the form of accented letters in a name."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path, PurePath

from folio.zotero_link import is_key

_STORED, _RELATIVE = "storage:", "attachments:"
# linkMode: imported file, imported URL, linked file; 3 is a linked URL, which has no file
IMPORTED, LINKED = (0, 1), 2
_LONGEST = 4096  # characters of a path


def attachment_file(folder: Path, key: str, link_mode: int, path: str, base: Path | None) -> Path | None:
    """The absolute path of an attachment's file, whether it exists or not; None if the path can be no attachment's.

    folder: Zotero's data folder. base: the base folder of linked files, if the preferences name one. A stored file lies
    in the folder of its key and nowhere else, and no path climbs with "..".
    """
    if not path or "\0" in path or len(path) > _LONGEST or not is_key(key):
        return None
    if link_mode in IMPORTED:
        name = path.removeprefix(_STORED)
        is_name = path != name and name not in (".", "..") and not any(sign in name for sign in "/\\")
        return _existing(folder / "storage" / key / name) if is_name and name else None
    if link_mode != LINKED:
        return None
    if path.startswith(_RELATIVE):
        relative = PurePath(path.removeprefix(_RELATIVE).replace("\\", "/"))
        if base is None or relative.is_absolute() or relative.drive or not relative.parts or ".." in relative.parts:
            return None
        return _existing(base / relative)
    # A file on another computer of the network is not opened, as nothing there is: Windows calls it \\computer\share.
    is_local = os.path.isabs(path) and not path.startswith(("\\\\", "//"))
    return _existing(Path(os.path.abspath(path))) if is_local and ".." not in PurePath(path).parts else None


def _existing(path: Path) -> Path:
    """The path in the form that the disk has it: macOS writes "é" as two characters, Zotero as one."""
    for form in ("NFC", "NFD"):
        other = path.with_name(unicodedata.normalize(form, path.name))
        if other != path and not os.path.lexists(path) and os.path.lexists(other):
            return other
    return path
