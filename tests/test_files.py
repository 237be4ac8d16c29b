"""Files on disk: removal while somebody still writes."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

from folio.files import remove


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
