"""The file of settings: what is changed is changed whole, and every other line stays."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dotenv import dotenv_values

from folio.errors import DiskFull, UsageError
from folio.system import env_file
from folio.system.env_file import change_file, changed_text
from tests.helpers.paths import ROOT

COMMENTED = (
    "# Papers\n\nexport PAPERS_DIR=/data # here\nllm = 'builtin'\r\nUNKNOWN=\"two\nlines\"\n  # the end\nnot a line"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folio" / ".env"


def test_a_missing_file_is_made_for_this_user_alone(path: Path) -> None:
    change_file(path, {"LLM": "builtin", "TOP_K": None})
    assert path.read_text() == "LLM='builtin'\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_other_lines_stay_as_they_are(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(COMMENTED.encode())
    path.chmod(0o640)
    change_file(path, {"LLM": "ollama", "TOP_K": "6", "PAPERS_DIR": None})
    changed = "# Papers\n\nLLM='ollama'\r\nUNKNOWN=\"two\nlines\"\n  # the end\nnot a line\r\nTOP_K='6'\r\n"
    assert path.read_bytes() == changed.encode()
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_name_that_is_there_twice_is_set_once() -> None:
    assert changed_text("A=1\nB=2\nA=3", {"A": "4"}) == "A='4'\nB=2\n"
    assert changed_text("A=1\nB=2\nA=3\n", {"A": None}) == "B=2\n"


@pytest.mark.parametrize(
    "value",
    ["", " x ", "it's", "a\\b", "a\\'b", "#no comment", '"', "a b # c", "ü/Ö", "$HOME", "x=y", "C:\\Papers\\new"],
)
def test_a_value_is_read_as_it_was_written(path: Path, value: str) -> None:
    change_file(path, {"A": value, "B": "1"})
    assert dotenv_values(path) == {"A": value, "B": "1"}


@pytest.mark.parametrize("value", ["two\nlines", "a\x00b", "${HOME}/papers", "tab\there"])
def test_a_value_that_the_file_cannot_hold_is_refused(path: Path, value: str) -> None:
    with pytest.raises(UsageError):
        change_file(path, {"A": value})
    assert not path.exists()


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "folio.env"
    real.parent.mkdir()
    real.write_text("A=1\n")
    path.parent.mkdir()
    path.symlink_to(real)
    change_file(path, {"B": "2"})
    assert path.is_symlink()
    assert real.read_text() == "A=1\nB='2'\n"


def test_several_writers_lose_nothing(path: Path) -> None:
    names = [f"NAME_{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: change_file(path, {name: name.lower()}), names))
    assert dotenv_values(path) == {name: name.lower() for name in names}


def test_a_killed_writer_leaves_the_old_file(path: Path) -> None:
    change_file(path, {"A": "1"})
    dies = "import os; from folio.system import env_file\nenv_file.sync = lambda path: os._exit(9)\n"
    code = f"{dies}from pathlib import Path\nenv_file.change_file(Path({str(path)!r}), {{'A': '2'}})"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 9
    assert path.read_text() == "A='1'\n"
    change_file(path, {"A": "3"})
    assert path.read_text() == "A='3'\n"
    assert [each.name for each in path.parent.iterdir() if each.name.endswith(".new")] == []


def test_a_full_disk_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_file(path, {"A": "1"})

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(env_file, "sync", full)
    with pytest.raises(DiskFull):
        change_file(path, {"A": "2"})
    assert path.read_text() == "A='1'\n"
    assert sorted(each.name for each in path.parent.iterdir()) == [".env", ".env.lock"]


def test_a_read_only_file_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_file(path, {"A": "1"})
    path.chmod(0o400)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write all files
    with pytest.raises(PermissionError):
        change_file(path, {"A": "2"})
    assert path.read_text() == "A='1'\n"


def test_a_file_that_is_no_text_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"A=\xff\n")
    with pytest.raises(UsageError, match="no text in UTF-8"):
        change_file(path, {"A": "2"})
    assert path.read_bytes() == b"A=\xff\n"
