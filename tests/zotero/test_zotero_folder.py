"""Zotero's data folder is found, and the files of its attachments in it."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from folio.errors import UsageError
from folio.zotero.files import Computer, DataFolder, attachment_file, find_data_folder, read_preferences

pytestmark = pytest.mark.fast


def _library(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "zotero.sqlite").touch()
    return folder


def _profile(folder: Path, **preferences: str) -> None:
    folder.mkdir(parents=True)
    lines = [f'user_pref("extensions.zotero.{name}", {value});' for name, value in preferences.items()]
    (folder / "prefs.js").write_text("// Mozilla User Preferences\n" + "\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("system", "profile"),
    [
        ("linux", ".zotero/zotero/ab12.default"),
        ("darwin", "Library/Application Support/Zotero/Profiles/ab12.default"),
        ("win32", "AppData/Roaming/Zotero/Zotero/Profiles/ab12.default"),
    ],
)
def test_the_folder_is_the_one_that_the_profile_names(tmp_path: Path, system: str, profile: str) -> None:
    _library(tmp_path / "Zotero")
    chosen = _library(tmp_path / "Mine")
    assert find_data_folder(None, Computer(tmp_path, system)).path == tmp_path / "Zotero"
    _profile(tmp_path / profile, dataDir=f'"{chosen}"', baseAttachmentPath='"/data/papers"')
    assert find_data_folder(None, Computer(tmp_path, system)) == DataFolder(chosen, Path("/data/papers"))


def test_app_data_says_where_windows_keeps_profiles(tmp_path: Path) -> None:
    chosen = _library(tmp_path / "Mine")
    _profile(tmp_path / "Roaming" / "Zotero" / "Zotero" / "Profiles" / "x", dataDir=f'"{chosen}"')
    computer = Computer(tmp_path / "home", "win32", tmp_path / "Roaming")
    assert find_data_folder(None, computer).path == chosen


def test_a_given_folder_has_its_profiles_base_folder(tmp_path: Path) -> None:
    default, other = _library(tmp_path / "Zotero"), _library(tmp_path / "Other")
    profiles = tmp_path / ".zotero" / "zotero"
    _profile(profiles / "a", baseAttachmentPath='"/of/default"')
    _profile(profiles / "b", dataDir=f'"{other}"', useDataDir="true", baseAttachmentPath='"/of/other"')
    computer = Computer(tmp_path, "linux")
    assert find_data_folder(default, computer).attachments == Path("/of/default")
    assert find_data_folder(other, computer).attachments == Path("/of/other")


def test_a_folder_switched_off_or_relative_is_not_used(tmp_path: Path) -> None:
    default, off = _library(tmp_path / "Zotero"), _library(tmp_path / "Off")
    profiles = tmp_path / ".zotero" / "zotero"
    _profile(profiles / "a", dataDir=f'"{off}"', useDataDir="false")
    _profile(profiles / "b", dataDir='"Off"', baseAttachmentPath='"papers"')
    assert find_data_folder(None, Computer(tmp_path, "linux")) == DataFolder(default)


def test_no_library_is_one_sentence_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No Zotero library was found in") as found:
        find_data_folder(None, Computer(tmp_path, "linux"))
    assert "--zotero FOLDER" in found.value.remedy
    with pytest.raises(UsageError, match=r"it has no zotero\.sqlite"):
        find_data_folder(tmp_path, Computer(tmp_path, "linux"))


def test_strings_of_preferences_are_javascript() -> None:
    text = r"""user_pref("extensions.zotero.dataDir", "C:\\Users\\J\u00f6rg \"x\"\x41\ud83d\ude00\\Zotero");
user_pref("extensions.zotero.useDataDir", true);
user_pref("other.dataDir", "no");
user_pref("extensions.zotero.lone", "\ud800");"""
    assert read_preferences(text) == {
        "dataDir": 'C:\\Users\\Jörg "x"A😀\\Zotero',
        "useDataDir": "true",
        "lone": "\ufffd",
    }


# Files of attachments


FOLDER, BASE, KEY = Path("/data/Zotero"), Path("/data/papers"), "ABCD2345"


@pytest.mark.parametrize(
    ("mode", "path", "file"),
    [
        (0, "storage:a b.pdf", "/data/Zotero/storage/ABCD2345/a b.pdf"),
        (1, "storage:论文.pdf", "/data/Zotero/storage/ABCD2345/论文.pdf"),
        (2, "/home/me/x.pdf", "/home/me/x.pdf"),
        (2, "attachments:raft/x.pdf", "/data/papers/raft/x.pdf"),
        (2, "attachments:raft\\x.pdf", "/data/papers/raft/x.pdf"),
    ],
)
def test_where_a_file_lies(mode: int, path: str, file: str) -> None:
    assert attachment_file(FOLDER, KEY, mode, path, BASE) == Path(file)


@pytest.mark.parametrize(
    ("mode", "path"),
    [
        (0, "storage:../../../etc/passwd"), (0, "storage:.."), (0, "storage:"), (0, "storage:a/b.pdf"),
        (0, "storage:a\\b.pdf"), (0, "storage:/etc/passwd"), (0, "/etc/passwd"), (0, "storage:a\0.pdf"), (0, ""),
        (2, "attachments:../x.pdf"), (2, "attachments:/etc/passwd"), (2, "attachments:"), (2, "relative.pdf"),
        (2, "/home/../etc/x.pdf"), (2, "//server/share/x.pdf"), (2, "\\\\server\\share\\x.pdf"),
        (2, "storage:x.pdf"), (2, f"/{'a' * 5000}.pdf"), (3, "/home/me/x.pdf"), (7, "storage:x.pdf"),
    ],
)  # fmt: skip
def test_a_path_that_can_be_no_attachments(mode: int, path: str) -> None:
    assert attachment_file(FOLDER, KEY, mode, path, BASE) is None


def test_keys_and_base_folders_are_required() -> None:
    assert attachment_file(FOLDER, "../../..", 0, "storage:x.pdf", BASE) is None
    assert attachment_file(FOLDER, "ABCD234é", 0, "storage:x.pdf", BASE) is None
    assert attachment_file(FOLDER, KEY, 2, "attachments:x.pdf", None) is None


def test_a_name_whose_accents_the_disk_writes_otherwise(tmp_path: Path) -> None:
    stored = tmp_path / "storage" / KEY / unicodedata.normalize("NFD", "Müller.pdf")
    stored.parent.mkdir(parents=True)
    stored.touch()
    found = attachment_file(tmp_path, KEY, 0, unicodedata.normalize("NFC", "storage:Müller.pdf"), None)
    assert found is not None
    assert found.exists()
