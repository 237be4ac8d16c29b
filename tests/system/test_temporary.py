"""Temporary folders: the old ones of this user are deleted, and nothing else."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from folio.system.files import KEPT_S, make_folder, temporary_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def make_old(path: Path) -> Path:
    at = time.time() - KEPT_S - 60
    os.utime(path, (at, at), follow_symlinks=False)
    return path


def test_old_folders_are_deleted_by_the_next(folder: Path) -> None:
    left = [make_folder("folio-pages-"), make_folder("folio-plot-")]
    (left[0] / "a-p1.png").touch()
    recent = make_folder("folio-pages-")
    for path in left:
        make_old(path)
    new = make_folder("folio-plot-")
    assert set(folder.iterdir()) == {recent, new}
    assert new.stat().st_mode & 0o777 == 0o700


def test_what_others_made_is_kept(folder: Path) -> None:
    outside = folder / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    names = ("folio-main", "folio-pages-mine", "folio-pages-2024-papers", "my-folio-pages-abcdefgh")
    for name in names:
        (folder / name).mkdir()
    kept = {make_old(folder / name) for name in names}
    link = folder / "folio-pages-abcdefgh"
    link.symlink_to(outside)
    file = folder / "folio-pages-abcdefg1"
    file.touch()
    kept |= {make_old(link), make_old(file)}
    new = make_folder("folio-pages-")
    assert set(folder.iterdir()) == {*kept, outside, new}
    assert (outside / "kept").exists()


def test_a_folder_is_deleted_after_its_block(folder: Path) -> None:
    with temporary_folder("folio-plot-") as made:
        (made / "file").touch()
    assert list(folder.iterdir()) == []


def test_a_folder_goes_while_another_thread_writes_into_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, late = os.rmdir, [True]

    def rmdir(path: Any, **how: Any) -> None:
        if late:  # a file appears between the listing and the removal
            late.clear()
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        remove(path, **how)

    monkeypatch.setattr(os, "rmdir", rmdir)
    with temporary_folder("folio-bm25-") as made:
        (made / "meta.lock").touch()
    assert not late
    assert list(folder.iterdir()) == []
