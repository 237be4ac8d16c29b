from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from folio.sources.zotero_files import attachment_file

pytestmark = pytest.mark.fast

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
