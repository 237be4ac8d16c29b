"""Downloaded files come into the folder whole, whoever else brings the same one, and leave nothing behind."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, cast

from folio.services.download import download_pdf
from folio.services.http import HttpClient
from folio.system.files import KEPT_S

PDF = b"%PDF-1.7\n" + b"x" * 5000 + b"\n%%EOF\n"


class Together:
    """A client whose downloads all wait in the middle for one another."""

    def __init__(self, count: int) -> None:
        self._meet = threading.Barrier(count, timeout=20)

    def download(self, url: str, file: BinaryIO, largest: int) -> None:
        file.write(PDF[:100])
        file.flush()
        self._meet.wait()
        file.write(PDF[100:])


def bring(client: Together, path: Path) -> bool:
    return download_pdf(cast(HttpClient, client), ["https://arxiv.org/pdf/2301.00001"], path, 10**6, print)


def test_two_downloads_of_one_file_do_not_meet(tmp_path: Path) -> None:
    client, path = Together(2), tmp_path / "otters.pdf"
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: bring(client, path), range(2))) == [True, True]
    assert path.read_bytes() == PDF
    assert [file.name for file in tmp_path.iterdir()] == ["otters.pdf"]


def test_what_a_killed_download_left_is_deleted_after_a_day(tmp_path: Path) -> None:
    old, new = tmp_path / ".seals.pdf.0a0a0a0a.part", tmp_path / ".krill.pdf.0b0b0b0b.part"
    for part, age_s in ((old, KEPT_S + 60), (new, 60)):
        part.write_bytes(PDF[:100])
        os.utime(part, (time.time() - age_s,) * 2)
    assert bring(Together(1), tmp_path / "otters.pdf")
    assert {file.name for file in tmp_path.iterdir()} == {"otters.pdf", new.name}
