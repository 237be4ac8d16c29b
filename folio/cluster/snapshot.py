"""What questions have read of a library in Milvus: one sees one state of each paper, the next need not read it again.

Everything is read with "Strong" in the half minute after somebody edited what is known about a paper: edits are seen at
once. Otherwise "Bounded" is read, which lags some seconds behind. So what was read just after the state of the library
changed may lack rows of that state, and is forgotten when the question ends; what was read later serves all questions
until the state changes again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic, time

from folio.cluster.library_state import LibraryState
from folio.cluster.milvus_client import Row
from folio.paper_metadata import Metadata, Source
from folio.types import Chunk, Vectors

# More than Bounded lags (Milvus's default is 5 seconds), and than the clocks of two computers differ
_EDITED_S = 30.0
# More than Bounded lags
_SETTLED_S = 10.0
# Rows that are kept from one question to the next, at most
_PAPERS_KEPT, _CHUNKS_KEPT, _VECTORS_KEPT = 20_000, 50_000, 4_000


@dataclass(slots=True)
class Snapshot:
    """What was read of one state; a row that was read once counts until the question's end."""

    state: LibraryState
    strong: bool  # whether to wait for all that was written before
    is_kept: bool  # whether the next question may use it
    papers: dict[str, Row | None] = field(default_factory=dict)  # id -> its row; None if there is no such paper
    chunks: dict[int, tuple[Chunk, str]] = field(default_factory=dict)  # id -> chunk and hash of its text
    vectors: dict[int, Vectors] = field(default_factory=dict)  # of chunks
    layers: dict[str, dict[Source, Metadata]] = field(default_factory=dict)
    alike: dict[str, list[str]] = field(default_factory=dict)  # a hash -> the papers that have it

    @property
    def is_full(self) -> bool:
        """Whether it holds more papers or chunks than are worth keeping."""
        return len(self.papers) > _PAPERS_KEPT or len(self.chunks) > _CHUNKS_KEPT


class SnapshotMemory:
    """Keeps the last snapshot of a reader."""

    def __init__(self, *, strong: bool, is_current: bool) -> None:
        """strong: read everything with it. is_current: a reader never lags, as in Milvus Lite."""
        self.strong, self._is_current = strong, is_current
        self._last: Snapshot | None = None
        self._state, self._since = LibraryState(), 0.0  # the state that was read last; since when it has been that

    def snapshot_of(self, state: LibraryState) -> Snapshot:
        """The last one, if it is of this state and holds all of it; otherwise an empty one."""
        last, self._last = self._last, None
        if last is not None and last.is_kept and last.state == state and not last.is_full:
            if len(last.vectors) > _VECTORS_KEPT:
                last.vectors.clear()
            return last
        if self._state != state:
            self._state, self._since = state, monotonic()
        strong = self.strong or abs(time() - state.edited / 1e6) < _EDITED_S
        return Snapshot(state, strong, strong or self._is_current or monotonic() - self._since > _SETTLED_S)

    def keep(self, snapshot: Snapshot) -> None:
        """A question has ended."""
        self._last = snapshot

    def forget(self) -> None:
        """What was read may have changed."""
        self._last = None
