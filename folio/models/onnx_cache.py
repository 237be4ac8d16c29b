"""A folder of ONNX graphs built from model weights, so that the next start only reads them.

Next to each graph, a JSON record says how it was built and gives the size, time and SHA-256 of each source file. A
source is hashed again only if its size or time has changed; a graph is hashed whenever it is read. A graph that is
missing, damaged or built from other sources counts as absent. Files are replaced atomically, so any number of processes
may share the folder. If it is not writable, nothing is cached.
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

# The folder for graphs, in MODELS_DIR.
GRAPHS = "onnx"
# A temporary file older than this many seconds was left behind by a killed process.
_STALE_S = 600


@dataclass(frozen=True, slots=True)
class Source:
    """A file that a graph was built from, as it was when it was hashed."""

    path: str  # absolute
    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class OnnxCache:
    """The cached graph of this name. folder None: nothing is cached."""

    folder: Path | None
    name: str
    version: str = ""
    digest: str = ""  # SHA-256 of the graph; "" if none can be built from these sources
    sources: tuple[Source, ...] = ()

    @classmethod
    def read(cls, folder: Path | None, name: str) -> OnnxCache:
        """Never raises: a record that cannot be read counts as absent."""
        if folder is None:
            return cls(None, name)
        try:
            record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            sources = tuple(Source(**source) for source in record["sources"])
            return cls(folder, name, str(record["version"]), str(record["graph"]), sources)
        except (OSError, ValueError, TypeError, KeyError):
            return cls(folder, name)

    def hash_sources(self, paths: Sequence[Path]) -> tuple[Source, ...]:
        """These files as they are now. A file with the recorded size and time is not hashed again. Raises OSError."""
        known = {(source.path, source.size, source.mtime_ns): source for source in self.sources}
        hashed = []
        for path in paths:
            status = path.stat()
            key = (os.path.abspath(path), status.st_size, status.st_mtime_ns)
            hashed.append(known.get(key) or Source(*key, sha256_file(path)))
        return tuple(hashed)

    def matches(self, version: str, sources: Sequence[Source]) -> bool:
        """Whether the graph was built by this version from files with these contents."""
        return self.version == version and [s.sha256 for s in self.sources] == [s.sha256 for s in sources]

    def load(self) -> bytes | None:
        """The graph; None if it is absent or its SHA-256 differs."""
        if self.folder is None or not self.digest:
            return None
        try:
            content = self._file(self.digest).read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == self.digest else None

    def save(self, version: str, sources: Sequence[Source], content: bytes) -> None:
        """Replace the cached graph and its record. Empty content records that none can be built from these sources.

        The record is written last and names the graph by its hash, so the two always match. Never raises OSError.
        """
        if self.folder is None:
            return
        digest = hashlib.sha256(content).hexdigest() if content else ""
        entries = [{field: getattr(source, field) for field in Source.__slots__} for source in sources]
        record = json.dumps({"version": version, "graph": digest, "sources": entries}, indent=1)
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            if content:
                self._replace(self._file(digest), content)
            self._replace(self.folder / f"{self.name}.json", record.encode())
            self._remove_stale(self._file(digest))

    def _file(self, digest: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.name}.{digest[:16]}.onnx"

    def _replace(self, path: Path, content: bytes) -> None:
        temporary = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.new")  # unique to this thread
        try:
            temporary.write_bytes(content)
            sync(temporary)
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _remove_stale(self, current: Path) -> None:
        """Remove replaced graphs and the temporary files of killed processes."""
        assert self.folder is not None
        for path in self.folder.glob(f"{self.name}.*"):
            is_replaced = path.suffix == ".onnx" and path != current
            is_abandoned = path.suffix == ".new" and path.stat().st_mtime < time() - _STALE_S
            if is_replaced or is_abandoned:
                path.unlink(missing_ok=True)
