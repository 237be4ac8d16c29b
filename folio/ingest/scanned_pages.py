"""The pages of scans that OCR has read, kept until their papers are in the library: a stopped ingest goes on there.

A page costs seconds, and a scanned book hours. Each is written when it is read, to a file of its own: under the hash of
the PDF and the identity of the engine (ocr.Engine), so that another file, engine or language never gets it.

A page that ran into a limit would do so again, at the cost of the whole limit. It is kept as that, with what it was
tried with: a digest of the limits, the engine and Folio's version, here called `conditions`.
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

from folio.files import remove, write_json, write_text
from folio.pdf.ocr import Scan
from folio.pdf.reading_order import Box

# The folder beside the library
FOLDER = "scans"
# In the folder of a paper that is in the library without some pages: the conditions under which they ran into limits
_CONDITIONS = "conditions"
# Seconds after which the pages of a file that was never added are deleted: nobody goes on with it.
_KEPT_S = 60 * 24 * 3600


class ScannedPages:
    """Pages in a folder; with None, nothing is kept. One process at a time writes: it holds the writer lock."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def read(self, paper: str, engine: str, conditions: str) -> dict[int, Scan]:
        """Page index -> what this engine read on it, for the pages of a file that are kept. paper: its SHA-256.

        A page that is not as it was written is left out, and one that ran into a limit under other conditions.
        """
        if self._folder is None:
            return {}
        found = (_page(path, engine, conditions) for path in self._of(self._folder, paper, engine).glob("*.json"))
        return dict(each for each in found if each is not None)

    def begin(self, paper: str, engine: str) -> None:
        """Note that the pages of a file are being read. Deletes what nobody goes on with."""
        if self._folder is None:
            return
        with suppress(OSError):
            for folder in self._folder.iterdir():
                if time.time() - folder.stat().st_mtime > _KEPT_S:
                    remove(folder)
        with suppress(OSError):  # a page that cannot be kept is read all the same
            self._of(self._folder, paper, engine).mkdir(parents=True, exist_ok=True)
            os.utime(self._folder / paper)

    def keep(self, paper: str, engine: str, index: int, scan: Scan, conditions: str) -> None:
        """Keep what an engine read on a page, or the limit that it ran into. Raises DiskFull."""
        if self._folder is None:
            return
        written = {"engine": engine, "page": index, "blocks": scan.blocks}
        if scan.failed:
            written |= {"failed": scan.failed, "conditions": conditions}
        with suppress(OSError):
            path = self._of(self._folder, paper, engine) / f"{index + 1:05}.json"
            write_json(path, {**written, "sha256": _digest(written)})

    def forget(self, paper: str) -> None:
        """Delete the pages of a file: its paper is in the library, or was removed."""
        if self._folder is not None:
            with suppress(OSError):
                remove(self._folder / paper)
            with suppress(OSError):
                self._folder.rmdir()  # unless there are others

    def note_unfinished(self, paper: str, conditions: str) -> None:
        """Note that a paper is in the library without some pages. conditions: those that they ran into limits under; ""
        if they may be read under the same ones."""
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


def _digest(written: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


def _conditions(folder: Path) -> str:
    """What note_unfinished noted of a paper."""
    with suppress(OSError, ValueError):
        return (folder / _CONDITIONS).read_text(encoding="utf-8")
    return ""


def _page(path: Path, engine: str, conditions: str) -> tuple[int, Scan] | None:
    """A page as it was kept; None if the file is damaged, of another engine, or of a limit under other conditions."""
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        digest = written.pop("sha256")
        if digest != _digest(written) or written["engine"] != engine:
            return None
        if written.get("conditions", conditions) != conditions:
            return None
        failed = written.get("failed", "")
        scan = Scan([_lines(block) for block in written["blocks"]], failed, "limit" if failed else "")
        return int(written["page"]), scan
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _lines(block: Sequence[Sequence[Any]]) -> list[Box]:
    return [Box(*line) for line in block]
