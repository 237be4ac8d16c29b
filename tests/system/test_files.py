"""Files on disk: removal and replacement while somebody still writes or reads."""

from __future__ import annotations

import os
import signal
import stat
import sys
from pathlib import Path
from threading import Event, Thread, Timer

import pytest

from folio.errors import DiskFull
from folio.system import files
from folio.system.files import (
    discard,
    is_in_use,
    no_device,
    remove,
    replace,
    unusable,
    write_output,
    write_text,
)
from folio.text import without_ending
from tests.helpers.windows import install, is_bad_name

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the double of Windows stands on Linux")


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("otters.pdf", "otters"), ("seas/otters.pdf", "seas/otters"),
        ("seas.old/otters v1.2.PDF", "seas.old/otters v1.2"), ("otters", "otters"), (".pdf", ".pdf"),
        ("..pdf", "..pdf"), ("seas/...pdf", "seas/...pdf"),
    ],
)  # fmt: skip
def test_a_name_without_its_ending(name: str, left: str) -> None:
    assert without_ending(name) == left


def test_whatever_is_at_a_path_is_removed(tmp_path: Path) -> None:
    file, folder, link = tmp_path / "file", tmp_path / "folder", tmp_path / "link"
    file.touch()
    (folder / "inner").mkdir(parents=True)
    link.symlink_to(folder, target_is_directory=True)
    remove(link)
    assert folder.is_dir()
    for path in (file, folder, tmp_path / "missing"):
        remove(path)
    assert list(tmp_path.iterdir()) == []


NEW, OLD = b"new " * 30_000, b"old words"  # more than a pipe holds


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_output_goes_where_a_person_said(tmp_path: Path) -> None:
    file, link, hard, dangling = (tmp_path / name for name in ("refs.bib", "link", "hard", "dangling"))
    file.write_bytes(OLD)
    file.chmod(0o664)
    link.symlink_to(file)
    hard.hardlink_to(file)
    write_output(link, NEW)
    assert (link.is_symlink(), file.read_bytes(), hard.read_bytes(), mode(file)) == (True, NEW, NEW, 0o664)
    dangling.symlink_to(tmp_path / "elsewhere" / "made.bib")
    write_output(dangling, NEW)
    assert (dangling.is_symlink(), (tmp_path / "elsewhere" / "made.bib").read_bytes()) == (True, NEW)
    write_output(tmp_path / "new" / "made.bib", NEW)
    assert (tmp_path / "new" / "made.bib").read_bytes() == NEW
    with pytest.raises(IsADirectoryError):
        write_output(tmp_path / "new", NEW)


@needs_linux
@pytest.mark.parametrize("content", [NEW, b""])
def test_an_output_goes_into_a_pipe(tmp_path: Path, content: bytes) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_output(pipe, content)
    reader.join(20)
    assert (read, pipe.is_fifo()) == ([content], True)


@needs_linux
def test_a_device_is_written_and_never_replaced() -> None:
    null, full = Path("/dev/null"), Path("/dev/full")
    write_output(null, NEW)
    write_text(null, "text")
    with pytest.raises(DiskFull, match="no space left on the disk that holds /dev"):
        write_output(full, NEW)
    with pytest.raises(DiskFull):
        write_text(full, "text")
    assert null.is_char_device()
    assert full.is_char_device()


@needs_linux
def test_an_output_that_cannot_be_written_whole_leaves_the_old_one(tmp_path: Path) -> None:
    import resource

    file = tmp_path / "refs.bib"
    file.write_bytes(OLD)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
        with pytest.raises(DiskFull):
            write_output(file, NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert file.read_bytes() == OLD


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        *((name, f"_{name}") for name in ("CON", "con.pdf", "Nul.tar.gz", "COM1.pdf", "lpt9", "AUX")),
        *((name, name) for name in ("context.pdf", "CON 2.pdf", "Conway.pdf", "COM10.pdf", "nullable")),
    ],
)
def test_no_file_is_named_like_a_device_of_windows(name: str, safe: str) -> None:
    assert no_device(name) == safe
    assert is_bad_name(name) is (name != safe)
    assert not is_bad_name(safe)


@needs_linux
def test_what_windows_does_not_let_go_stays_until_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lexical"
    opened, new = folder / "open", tmp_path / "new"
    folder.mkdir()
    for path in (folder / "first", opened, folder / "third", new):
        path.write_text(path.name)
    install(monkeypatch)
    with opened.open():
        discard(folder)
        assert list(folder.iterdir()) == [opened]
        with pytest.raises(PermissionError) as caught:
            replace(new, opened)
        assert is_in_use(caught.value)
        assert unusable(caught.value).happened == f"{opened} is open in another program, or may not be changed."
        assert opened.read_text() == "open"
    replace(new, opened)
    assert opened.read_text() == "new"
    discard(folder)
    assert not folder.exists()


@needs_linux
def test_a_file_is_replaced_once_its_reader_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "new").write_text("new")
    install(monkeypatch)
    monkeypatch.setattr(files, "TRIES", 50)
    with (tmp_path / "old").open() as reader:
        Timer(0.1, reader.close).start()
        replace(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_text() == "new"


def test_a_folder_that_is_still_written_into_is_removed(tmp_path: Path) -> None:
    folder, stopped = tmp_path / "lexical", Event()
    folder.mkdir()

    def write() -> None:
        for number in range(2000):
            try:
                (folder / f"{number}").touch()
            except FileNotFoundError:  # the folder is gone
                break
        stopped.set()

    Thread(target=write).start()
    remove(folder)
    assert stopped.wait(30)
    assert not folder.exists()
