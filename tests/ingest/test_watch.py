"""What a look at a watched folder finds: settled writes, moves, what is gone, and what is only away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from folio.ingest.watch import GONE_S, SETTLE_S, TORN_S, Changes, WatchedFolder
from folio.system import folder_events
from tests.helpers.paths import ROOT

WHOLE = b"%PDF-1.4 some pages %%EOF\n"


class Watch:
    """A watched folder, at times that the test says."""

    def __init__(self, folder: Path, known: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.watched = WatchedFolder(folder, lambda: [str(folder / name) for name in known])
        self.now = 1000.0

    def put(self, name: str, content: bytes = WHOLE) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def look(self, after_s: float = 0.0) -> Changes:
        """A look at a time at which every file has just been written, as far as its own times tell."""
        self.now += after_s
        return self.watched.look(self.now, clock=0.0)

    def settle(self) -> tuple[list[str], list[str]]:
        """Look until all is still, and take it; returns the names of new and of removed files."""
        self.look()
        changes = self.look(TORN_S)
        self.watched.done(changes)
        assert not self.look()
        assert not self.watched.is_unsettled
        return list(changes.files.values()), [os.path.relpath(path, self.folder) for path in changes.removed]


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    folder = tmp_path / "papers"
    folder.mkdir()
    return Watch(folder)


def test_a_file_counts_when_it_is_still(watch: Watch) -> None:
    watch.put("a.pdf")
    assert not watch.look()
    assert watch.watched.is_unsettled
    watch.put("a.pdf", WHOLE * 2)
    assert not watch.look(SETTLE_S)  # it has changed, so the time begins again
    assert not watch.look(SETTLE_S / 2)
    changes = watch.look(SETTLE_S / 2)
    assert changes.files == {watch.folder / "a.pdf": "a.pdf"}
    assert watch.look().files  # as long as the library was not given it
    watch.watched.done(changes)
    assert not watch.look()
    watch.put("a.pdf", WHOLE * 3)
    assert watch.settle() == (["a.pdf"], [])


def test_a_file_without_an_end_is_given_more_time(watch: Watch) -> None:
    watch.put("a.pdf", b"%PDF-1.4 the first pages")
    watch.put("empty.pdf", b"")
    watch.look()
    assert not watch.look(TORN_S - 1)
    assert set(watch.look(1).files.values()) == {"a.pdf", "empty.pdf"}


def test_a_file_that_was_still_before_the_first_look_counts_at_once(watch: Watch) -> None:
    watch.put("a.pdf")
    watch.put("torn.pdf", b"%PDF-1.4")
    assert list(watch.watched.look(0, clock=time.time() + SETTLE_S).files.values()) == ["a.pdf"]
    assert len(watch.watched.look(0, clock=time.time() + TORN_S).files) == 1  # its time was counted at the first look
    assert len(watch.watched.look(TORN_S, clock=0).files) == 2


def test_what_an_ingest_skips_is_skipped(watch: Watch) -> None:
    for name in (".hidden.pdf", ".removed/a.pdf", "notes.txt", ".upload-1.pdf"):
        watch.put(name)
    watch.put("sub/B.PDF")
    assert watch.settle() == (["sub/B.PDF"], [])
    (watch.folder / "notes.txt").unlink()
    assert not watch.look(GONE_S)


def test_a_file_that_is_gone_leaves_after_a_moment(watch: Watch) -> None:
    watch.put("a.pdf")
    watch.put("b.pdf")
    watch.settle()
    (watch.folder / "a.pdf").rename(watch.folder / "a.tmp")
    assert not watch.look()
    (watch.folder / "a.tmp").rename(watch.folder / "a.pdf")  # as some programs save
    watch.settle()
    (watch.folder / "a.pdf").unlink()
    assert not watch.look()
    assert not watch.look(GONE_S / 2)
    assert watch.look(GONE_S / 2).removed == (str(watch.folder / "a.pdf"),)


@pytest.mark.parametrize("how", ["last file", "subfolder", "subfolders", "renamed"])
def test_what_a_person_deletes_leaves(watch: Watch, how: str) -> None:
    watch.put("a.pdf")
    watch.put("sub/deep/b.pdf")
    watch.settle()
    if how == "last file":
        (watch.folder / "a.pdf").unlink()
        (watch.folder / "sub" / "deep" / "b.pdf").unlink()
        new, gone = list[str](), ["a.pdf", "sub/deep/b.pdf"]
    elif how == "renamed":
        (watch.folder / "sub").rename(watch.folder / "other")
        new, gone = ["other/deep/b.pdf"], ["sub/deep/b.pdf"]
    else:
        shutil.rmtree(watch.folder / ("sub/deep" if how == "subfolder" else "sub"))
        new, gone = [], ["sub/deep/b.pdf"]
    assert watch.settle() == (new, gone)


def _empty_mount_point(folder: Path) -> None:
    """What is left when a drive is unmounted: a folder of the same name, which is another one."""
    folder.rename(folder.with_name("drive"))
    folder.mkdir()


@pytest.mark.parametrize("how", ["gone", "mount point", "mount point with other papers"])
def test_nothing_is_removed_because_a_drive_is_away(watch: Watch, how: str) -> None:
    watch.put("a.pdf")
    watch.put("sub/b.pdf")
    watch.settle()
    if how == "gone":
        watch.folder.rename(watch.folder.with_name("drive"))
    else:
        _empty_mount_point(watch.folder)
        if how == "mount point with other papers":
            watch.put("c.pdf")
    assert watch.watched.is_other()
    found = watch.settle()
    assert found == ((["c.pdf"] if "other" in how else []), [])
    assert sum(watch.watched.away().values()) == 2
    shutil.rmtree(watch.folder, ignore_errors=True)
    watch.folder.with_name("drive").rename(watch.folder)
    (watch.folder / "a.pdf").unlink()
    watch.put("d.pdf")
    # The folder is the one that it was, so what is not in it was deleted. c.pdf was in the one below the drive.
    assert watch.settle() == (["d.pdf"], ["a.pdf"])
    assert watch.watched.away() == ({str(watch.folder): 1} if "other" in how else {})


def test_a_drive_that_comes_back_with_fewer_papers(watch: Watch) -> None:
    for name in ("a.pdf", "b.pdf"):
        watch.put(name)
    watch.settle()
    _empty_mount_point(watch.folder)
    watch.settle()
    watch.folder.rmdir()
    watch.folder.with_name("drive").rename(watch.folder)
    (watch.folder / "a.pdf").unlink()
    assert watch.settle() == ([], ["a.pdf"])  # b.pdf shows that it is the folder


def test_a_drive_below_the_folder(watch: Watch) -> None:
    watch.put("a.pdf")
    watch.put("usb/b.pdf")
    watch.settle()
    (watch.folder / "usb").rename(watch.folder.with_name("drive"))
    (watch.folder / "usb").mkdir()
    assert watch.settle() == ([], [])
    assert watch.watched.away() == {str(watch.folder / "usb"): 1}


def test_after_a_start_only_single_files_are_gone(tmp_path: Path) -> None:
    """What was deleted meanwhile leaves; a folder without any of its papers may be a drive that is not there yet."""
    watch = Watch(tmp_path / "papers", ("a.pdf", "b.pdf", "usb/c.pdf", "away/d.pdf", ".hidden/e.pdf"))
    watch.put("b.pdf")
    watch.put(".hidden/e.pdf")
    (watch.folder / "usb").mkdir()
    assert watch.settle() == (["b.pdf"], ["a.pdf"])
    away = {str(watch.folder / "usb"): 1, str(watch.folder / "away"): 1}
    assert watch.watched.away() == away
    absent = Watch(tmp_path / "not-mounted", ("a.pdf", "b.pdf"))
    assert absent.settle() == ([], [])
    assert absent.watched.away() == {str(absent.folder): 2}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="this user may search every folder")
def test_what_cannot_be_searched_is_not_gone(watch: Watch) -> None:
    watch.put("sub/a.pdf")
    watch.settle()
    (watch.folder / "sub").chmod(0)
    try:
        assert watch.settle() == ([], [])
    finally:
        (watch.folder / "sub").chmod(0o700)


def test_a_link_to_a_drive_that_is_away(watch: Watch) -> None:
    drive = watch.folder.with_name("drive")
    drive.mkdir()
    (drive / "a.pdf").write_bytes(WHOLE)
    (watch.folder / "a.pdf").symlink_to(drive / "a.pdf")
    watch.put("b.pdf")
    assert watch.settle() == (["a.pdf", "b.pdf"], [])
    drive.rename(drive.with_name("away"))
    assert watch.settle() == (["a.pdf"], [])  # the ingest says that it is a link to nothing


def test_one_file(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "a.pdf")
    watch.folder.write_bytes(WHOLE)
    watch.look()
    changes = watch.look(SETTLE_S)
    assert changes.files == {watch.folder: "a.pdf"}
    watch.watched.done(changes)
    watch.folder.unlink()
    assert not watch.look(GONE_S)
    assert watch.watched.away() == {str(watch.folder): 1}


MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
36 22 0:50 / /mnt/my\\040papers rw shared:1 - nfs4 server:/papers rw
37 22 0:51 / /home/ann/cloud rw - fuse.sshfs ann@server: rw
38 37 8:2 / /home/ann/cloud/disk rw - fuseblk /dev/sdb1 rw
39 22 0:52 / /srv/b\xc3\xbccher rw - cifs //server/b rw
"""


@pytest.mark.parametrize(
    ("path", "kind", "remote"),
    [
        ("/home/ann", "ext4", False),
        ("/mnt/my papers/sub", "nfs4", True),
        ("/mnt/my papers too", "ext4", False),
        ("/home/ann/cloud", "fuse.sshfs", True),
        ("/home/ann/cloud/disk/a", "fuseblk", False),
        ("/srv/bücher", "cifs", True),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="Windows has no /proc")
def test_network_folders_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, kind: str, remote: bool
) -> None:
    table = tmp_path / "mountinfo"
    table.write_bytes(MOUNTS.encode("latin-1"))
    monkeypatch.setattr(folder_events, "_MOUNTS", table)
    assert folder_events.file_system(path, table.read_text(encoding="utf-8")) == kind
    assert folder_events.is_remote(Path(path)) == remote


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("unshare"), reason="needs Linux's limit of watches")
@pytest.mark.parametrize("watches", [0, 1])  # for none of two folders, and for one of them
def test_the_systems_limit_of_watches_is_a_problem(tmp_path: Path, watches: int) -> None:
    (tmp_path / "sub").mkdir()
    code = (
        "import sys, threading; from pathlib import Path; from folio.system.folder_events import FolderEvents;"
        "woken = threading.Event(); events = FolderEvents(Path(sys.argv[1]), woken.set); woken.wait(60);"
        "print(events.problem)"
    )
    limited = f'echo {watches} > /proc/sys/user/max_inotify_watches && exec "$@"'
    command = ["unshare", "-Ur", "sh", "-c", limited, "sh", sys.executable, "-c", code, str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip("this user may not limit a namespace of its own")
    assert ran.stdout == "OS file watch limit reached\n"
