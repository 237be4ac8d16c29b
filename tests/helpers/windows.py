"""A double of Windows' file system over Linux': it refuses what Windows refuses, to Folio alone and not to the tests.

As a plugin of pytest (`-p tests.helpers.windows`) it is there in every test. What it knows:

- A file that is open or mapped in this process can be neither replaced, renamed, deleted nor opened anew and emptied.
- A rename never overwrites; os.replace does.
- Names that Windows does not take: `<>:"|?*`, control characters, a dot or a space at the end, CON, NUL and the like.
- os.chmod changes the write bit alone; a symbolic link needs a privilege.
- There is no os.fork, fcntl, resource or user id; and sys.platform says so.

Signals and processes are not in it. What happens inside SQLite, FAISS and tantivy it does not see, but which files they
have open and mapped.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from folio.system import files
from tests.helpers.paths import ROOT

_FOLIO, _TESTS = f"{ROOT / 'folio'}{os.sep}", (f"{ROOT / 'tests'}{os.sep}", f"{ROOT / 'campaign'}{os.sep}")
ACCESS_DENIED, SHARING_VIOLATION, INVALID_NAME, ALREADY_EXISTS, NO_PRIVILEGE, MAPPED = 5, 32, 123, 183, 1314, 1224
_RESERVED = re.compile(r"(con|prn|aux|nul|com[1-9¹²³]|lpt[1-9¹²³])(\..*)?", re.IGNORECASE)
_BAD_CHARACTER = re.compile(r'[<>:"|?*\x00-\x1f]')
_OS = ("fork", "geteuid", "getuid", "killpg", "setsid", "mkfifo")
_MODULES = ("fcntl", "resource")


def refusal(number: int, path: Any, kind: type[OSError] = PermissionError) -> OSError:
    """The error that Windows would give."""
    error = kind(errno.EACCES, "The process cannot access the file", os.fspath(path))
    error.winerror = number  # type: ignore[attr-defined,unused-ignore]
    return error


def is_bad_name(path: Any) -> bool:
    """Whether Windows has no such name."""
    name = os.path.basename(os.path.abspath(os.fsdecode(path)))
    return bool(_BAD_CHARACTER.search(name) or name != name.rstrip(". ") or _RESERVED.fullmatch(name))


def open_files() -> dict[str, int]:
    """The files that this process has open or mapped -> Windows' error for one who wants to remove it."""
    found: dict[str, int] = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[os.readlink(f"/proc/self/fd/{number}")] = SHARING_VIOLATION
        except OSError:
            continue
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        if len(parts := line.split(maxsplit=5)) == 6 and parts[5].startswith("/"):
            found.setdefault(parts[5], MAPPED)
    return found


def _is_of_folio() -> bool:
    """Whether the code of Folio called this, perhaps through the standard library, and not a test."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_FOLIO):
            return True
        if file.startswith(_TESTS) and file != __file__:
            return False
        frame = frame.f_back
    return False


def _require_free(path: Any, inside: bool = False) -> None:
    """Raise what Windows raises if the file, or with `inside` one in the folder, is open."""
    if not os.path.lexists(path):
        return
    place = os.path.realpath(os.fspath(path))
    for name, number in open_files().items():
        if name == place or (inside and name.startswith(f"{place}{os.sep}")):
            raise refusal(number, path)


def _replace(real: Callable[..., None], overwrites: bool) -> Callable[..., None]:
    def replace(old: Any, new: Any, **how: Any) -> None:
        if _is_of_folio():
            if is_bad_name(new):
                raise refusal(INVALID_NAME, new, OSError)
            if not overwrites and os.path.lexists(new):
                raise refusal(ALREADY_EXISTS, new, FileExistsError)
            _require_free(old, inside=True)
            _require_free(new)
        real(old, new, **how)

    return replace


def _remove(real: Callable[..., None]) -> Callable[..., None]:
    def remove(path: Any, **how: Any) -> None:
        if _is_of_folio() and "dir_fd" not in how:
            _require_free(path)
            if os.path.lexists(path) and not os.lstat(path).st_mode & stat.S_IWUSR:
                raise refusal(ACCESS_DENIED, path)  # it is marked as read-only
        real(path, **how)

    return remove


def _opener(real: Callable[..., Any]) -> Callable[..., Any]:
    def opened(path: Any, *how: Any, **named: Any) -> Any:
        if not isinstance(path, int) and _is_of_folio():
            mode = how[0] if how else named.get("mode", named.get("flags", "r"))
            makes = mode & (os.O_CREAT | os.O_TRUNC) if isinstance(mode, int) else set(mode) & set("wxa")
            empties = mode & os.O_TRUNC if isinstance(mode, int) else "w" in mode
            if makes and is_bad_name(path) and os.fspath(path) != os.devnull:
                raise refusal(INVALID_NAME, path, OSError)
            if empties and open_files().get(os.path.realpath(os.fspath(path))) == MAPPED:
                raise refusal(MAPPED, path)
        return real(path, *how, **named)

    return opened


def _mkdir(real: Callable[..., None]) -> Callable[..., None]:
    def mkdir(path: Any, *how: Any, **named: Any) -> None:
        if _is_of_folio() and is_bad_name(path):
            raise refusal(INVALID_NAME, path, OSError)
        real(path, *how, **named)

    return mkdir


def _chmod(real: Callable[..., None]) -> Callable[..., None]:
    def chmod(path: Any, mode: int, **how: Any) -> None:
        if _is_of_folio():
            before = stat.S_IMODE(os.stat(path).st_mode)
            mode = before | 0o200 if mode & 0o200 else before & ~0o222
        real(path, mode, **how)

    return chmod


def _symlink(real: Callable[..., None]) -> Callable[..., None]:
    def symlink(source: Any, target: Any, *how: Any, **named: Any) -> None:
        if _is_of_folio():
            raise refusal(NO_PRIVILEGE, target, OSError)
        real(source, target, *how, **named)

    return symlink


def install(patch: pytest.MonkeyPatch) -> None:
    """Put the double in place until the patch is undone."""
    if sys.platform != "linux":
        pytest.skip("the double of Windows stands on Linux")
    for name, double in {
        "replace": _replace(os.replace, overwrites=True),
        "rename": _replace(os.rename, overwrites=False),
        "unlink": _remove(os.unlink),
        "remove": _remove(os.remove),
        "open": _opener(os.open),
        "mkdir": _mkdir(os.mkdir),
        "chmod": _chmod(os.chmod),
        "symlink": _symlink(os.symlink),
    }.items():
        patch.setattr(os, name, double)
    patch.setattr(builtins, "open", _opener(builtins.open))
    patch.setattr(io, "open", _opener(io.open))
    patch.setattr(shutil, "_use_fd_functions", False)
    patch.setattr(files, "TRIES", 2, raising=False)  # it waits for other programs, of which there are none
    for name in _OS:
        patch.delattr(os, name, raising=False)
    for name in _MODULES:
        patch.setitem(sys.modules, name, None)
    patch.setattr(sys, "platform", "win32")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Around the test itself: what made its folders and stores before may do what it likes."""
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        return (yield)
