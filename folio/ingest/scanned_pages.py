"""Keeps the scanned pages that OCR has read until their papers are in the library, so that an ingest can be resumed.

A page costs seconds, and a scanned book hours. Each page is written to a separate file as soon as it is read. The path
contains the hash of the PDF and the identity of the engine (ocr.Engine), so that no other file, engine or language
gets it.

A page that ran into a limit would do so again, and waste that time. It is kept as failed, with its `conditions`: a
digest of the limits, the engine and Folio's version.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from folio.pdf.ocr import Scan
from folio.pdf.order import Box
from folio.system.files import remove, write_json, write_text

# The folder next to the library
FOLDER = "scans"
# A file in the folder of a paper with missing pages: the conditions under which these pages ran into limits
_CONDITIONS = "conditions"
# Seconds after which the pages of a file that was never added are deleted
_KEPT_S = 60 * 24 * 3600


class ScannedPages:
    """Pages in a folder; with None, nothing is kept. One process at a time writes: it holds the writer lock."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def read(self, paper: str, engine: str, conditions: str) -> dict[int, Scan]:
        """Page index -> the result of this engine, for the kept pages of a file. paper: the file's SHA-256.

        Leaves out damaged pages, and pages that ran into a limit under other conditions.
        """
        if self._folder is None:
            return {}
        pages = (_page(path, engine, conditions) for path in self._of(self._folder, paper, engine).glob("*.json"))
        return dict(page for page in pages if page is not None)

    def begin(self, paper: str, engine: str) -> None:
        """Note that the pages of a file are being read. Deletes abandoned files' pages."""
        if self._folder is None:
            return
        with suppress(OSError):
            for folder in self._folder.iterdir():
                if time.time() - folder.stat().st_mtime > _KEPT_S:
                    remove(folder)
        with suppress(OSError):  # pages that cannot be kept can still be read
            self._of(self._folder, paper, engine).mkdir(parents=True, exist_ok=True)
            os.utime(self._folder / paper)

    def keep(self, paper: str, engine: str, index: int, scan: Scan, conditions: str) -> None:
        """Keep the result of an engine on a page, or the limit that it ran into. Raises DiskFull."""
        if self._folder is None:
            return
        record = {"engine": engine, "page": index, "blocks": scan.blocks}
        if scan.failed:
            record |= {"failed": scan.failed, "conditions": conditions}
        with suppress(OSError):
            path = self._of(self._folder, paper, engine) / f"{index + 1:05}.json"
            write_json(path, {**record, "sha256": _digest(record)})

    def forget(self, paper: str) -> None:
        """Delete the pages of a file, because its paper is in the library or was removed."""
        if self._folder is not None:
            with suppress(OSError):
                remove(self._folder / paper)
            with suppress(OSError):
                self._folder.rmdir()  # unless there are others

    def note_unfinished(self, paper: str, conditions: str) -> None:
        """Note that a paper in the library lacks some pages.

        conditions: those under which these pages ran into limits; "" if the next ingest may read them.
        """
        if self._folder is None:
            return
        with suppress(OSError):
            write_text(self._folder / paper / _CONDITIONS, conditions)

    def unfinished(self, conditions: str) -> frozenset[str]:
        """The files, by their SHA-256, with pages that may be finished under these conditions."""
        if self._folder is None:
            return frozenset()
        return frozenset(path.name for path in self._folder.glob("*/") if _conditions(path) != conditions)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return self._folder is None or not self._folder.is_dir()

    @staticmethod
    def _of(folder: Path, paper: str, engine: str) -> Path:
        return folder / paper / _short(engine)


def _short(engine: str) -> str:
    return hashlib.blake2b(engine.encode(), digest_size=8).hexdigest()


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _conditions(folder: Path) -> str:
    """The conditions that note_unfinished wrote; "" for none."""
    with suppress(OSError, ValueError):
        return (folder / _CONDITIONS).read_text(encoding="utf-8")
    return ""


def _page(path: Path, engine: str, conditions: str) -> tuple[int, Scan] | None:
    """A kept page; None if the file is damaged, from another engine, or for a limit under other conditions."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        digest = record.pop("sha256")
        if digest != _digest(record) or record["engine"] != engine:
            return None
        if record.get("conditions", conditions) != conditions:
            return None
        failed = record.get("failed", "")
        scan = Scan([_lines(block) for block in record["blocks"]], failed, "limit" if failed else "")
        return int(record["page"]), scan
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _lines(block: Sequence[Sequence[Any]]) -> list[Box]:
    return [Box(*line) for line in block]
