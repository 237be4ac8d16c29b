"""Graphs that were made from a model's weights, kept in a folder so that the next start only reads them.

Beside a graph stands what it was made from: the way of making it, and the size, time and SHA-256 of each source. A
source is hashed again only when its size or time has changed; the graph is hashed whenever it is read. What is missing,
damaged or of something else counts as not there. Files are replaced whole, so any number of processes may share the
folder; where it cannot be written, nothing is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from time import time
from typing import Any

from folio.files import sha256_file, sync

# The folder for them, below MODELS_DIR.
GRAPHS = "onnx"
# Seconds after which a file that is not yet renamed is what a killed process left behind.
_LEFT_BEHIND = 600


@dataclass(frozen=True, slots=True)
class Source:
    """A file that a graph was made from, as it was when it was hashed."""

    path: str  # absolute
    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class OnnxCache:
    """What a folder has of the graph with this name. folder None: nothing, and nothing is kept."""

    folder: Path | None
    name: str
    version: str = ""
    graph: str = ""  # its SHA-256; "" where the makers said that none can be made
    sources: tuple[Source, ...] = ()

    @classmethod
    def read(cls, folder: Path | None, name: str) -> OnnxCache:
        """Never raises: a record that cannot be read is none."""
        if folder is None:
            return cls(None, name)
        try:
            record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            sources = tuple(Source(**source) for source in record["sources"])
            return cls(folder, name, str(record["version"]), str(record["graph"]), sources)
        except (OSError, ValueError, TypeError, KeyError):
            return cls(folder, name)

    def examined(self, paths: Sequence[Path]) -> tuple[Source, ...]:
        """These files as they are now; those that have the size and time that they had are not read. Raises OSError."""
        known = {(source.path, source.size, source.mtime_ns): source for source in self.sources}
        found = []
        for path in paths:
            status = path.stat()
            now = (os.path.abspath(path), status.st_size, status.st_mtime_ns)
            found.append(known.get(now) or Source(*now, sha256_file(path)))
        return tuple(found)

    def is_of(self, version: str, sources: Sequence[Source]) -> bool:
        """Whether it was made in this way from files with these bytes."""
        return self.version == version and [s.sha256 for s in self.sources] == [s.sha256 for s in sources]

    def content(self) -> bytes | None:
        """The graph, whole and as it was made; else None."""
        if self.folder is None or not self.graph:
            return None
        try:
            content = self._file(self.graph).read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == self.graph else None

    def keep(self, version: str, sources: Sequence[Source], content: bytes) -> None:
        """Put a graph and its record in place of what was there; empty content: none can be made of these sources.

        The record comes last, and names the graph by its hash, so that the two always fit. Never raises OSError.
        """
        if self.folder is None:
            return
        digest = hashlib.sha256(content).hexdigest() if content else ""
        made_of = [{field: getattr(source, field) for field in Source.__slots__} for source in sources]
        record = json.dumps({"version": version, "graph": digest, "sources": made_of}, indent=1)
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            if content:
                self._replace(self._file(digest), content)
            self._replace(self.folder / f"{self.name}.json", record.encode())
            self._sweep(self._file(digest))

    def _file(self, digest: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.name}.{digest[:16]}.onnx"

    def _replace(self, path: Path, content: bytes) -> None:
        beside = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.new")  # of this thread alone
        try:
            beside.write_bytes(content)
            sync(beside)
            os.replace(beside, path)
        except OSError:
            with suppress(OSError):
                beside.unlink()
            raise

    def _sweep(self, current: Path) -> None:
        """Remove the graphs that this one took the place of, and what killed processes left behind."""
        assert self.folder is not None
        for path in self.folder.glob(f"{self.name}.*"):
            stale = path.suffix == ".onnx" and path != current
            left = path.suffix == ".new" and path.stat().st_mtime < time() - _LEFT_BEHIND
            if stale or left:
                path.unlink(missing_ok=True)
