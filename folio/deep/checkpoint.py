"""The checkpoint of a deep search: a file in the store's folder from which a stopped search can be resumed.

It is JSON, with ids in place of passages and papers; their texts stay in the library. LangGraph's own checkpointers can
import and call whatever a file names; this module only makes the types that it declares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from folio.answer_types import Style
from folio.deep import graph
from folio.deep.state import DeepState
from folio.deep.types import DeepEvent, EvidenceScored, HitReference
from folio.errors import StoreError, UsageError, command
from folio.papers.metadata import stored_form
from folio.papers.model import Chunk, Hit, Paper
from folio.search.retriever import Retriever
from folio.system.files import open_regular, unusable, write_private

VERSION = 2
MOST_BYTES = 16 * 2**20  # of a file to read; three rounds with a model take 24 kB
MOST_EVIDENCE = 1000  # passages for one answer
AGAIN = "Ask the question again: " + command('ask --deep "What is ...?"')


@dataclass(frozen=True)
class SearchOptions:
    """The options of the question."""

    style: Style
    evidence: int | None  # number of passages; None for the setting
    filters: tuple[tuple[str, ...], ...]  # of papers, as typed


@dataclass(frozen=True)
class SearchHead:
    """The search that a checkpoint belongs to."""

    id: str
    question: str  # standalone: a follow-up has its references filled in
    options: SearchOptions
    store: str  # Retriever.state
    assessor: str


@dataclass(frozen=True)
class Progress:
    """How far a search has come."""

    step: str  # the last finished step; "" for none
    state: DeepState  # after that step
    events: tuple[DeepEvent, ...] = ()  # up to the end of that step
    scored: tuple[EvidenceScored, ...] = ()  # during the next, unfinished step
    calls: int = 0  # of this budget
    seconds: float = 0.0
    calls_before: int = 0  # of earlier, spent budgets
    seconds_before: float = 0.0
    is_spent: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose papers and passages are not looked up yet."""

    head: SearchHead
    content: dict[str, Any]

    def progress(self, retriever: Retriever) -> Progress:
        """Look up the progress. Raises StoreError if it is damaged or refers to papers outside the library."""
        with _readable():
            ids: list[str] = from_json(list[str], self.content["papers"])
            passages: list[int] = from_json(list[int], self.content["passages"])
            if not all(0 <= id < 2**63 for id in passages):
                raise ValueError("an id out of range")
        papers = {paper.id: paper for paper in retriever.papers_by_id(ids)}
        references = References(papers, retriever.passages_by_id(passages))
        with _readable():
            progress: Progress = from_json(Progress, self.content["progress"], references)
            _require_whole(progress)
        return progress


def checkpoint_path(store: Path) -> Path:
    """The checkpoint file of this store."""
    return store / "deep_search.json"


def read(path: Path) -> Checkpoint:
    """The checkpoint of the last search. Raises UsageError if there is none, StoreError if it cannot be read."""
    try:
        with open_regular(path) as file:
            text = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise UsageError(
            "There is no deep search to resume.",
            "Only a stopped search is kept, and none with QUERY_LOG=false or --no-log. Start one: "
            + command('ask --deep "What is ...?"'),
        ) from error
    except OSError as error:
        raise unusable(error) from error
    with _readable():
        if len(text) > MOST_BYTES:
            raise ValueError("too long")
        content = json.loads(text)
        version = content["version"]
        if version == VERSION:
            head: SearchHead = from_json(SearchHead, content["head"])
            evidence = head.options.evidence
            if not head.question.strip() or (evidence is not None and not 1 <= evidence <= MOST_EVIDENCE):
                raise ValueError("an impossible question")
            return Checkpoint(head, content)
    raise StoreError("The stopped deep search was saved by another version of Folio.", AGAIN)


class CheckpointFile:
    """The file of one search. The next search replaces it; a search that ends by itself removes it."""

    def __init__(self, path: Path, options: SearchOptions, *, writes: bool, notice: Callable[[str], None]) -> None:
        """writes: False writes nothing; only the file of a resumed search is removed at its end."""
        self._path = path
        self.options = options
        self._writes = writes
        self._notice = notice
        self._id = ""
        self.is_kept = False  # the search can be resumed

    def begin(self, resumed: SearchHead | None = None) -> None:
        """Start a search, or resume one."""
        self._id = resumed.id if resumed else token_hex(8)
        self.is_kept = resumed is not None

    def write(self, question: str, store: str, assessor: str, progress: Progress) -> None:
        """Replace the file. If it cannot be written, report that once; the search continues."""
        if not self._writes:
            return
        used = References()
        head = to_json(SearchHead(self._id, question, self.options, store, assessor), used)
        content = {"version": VERSION, "head": head, "progress": to_json(progress, used)}
        try:
            write_private(self._path, json.dumps({**content, "papers": [*used.papers], "passages": [*used.passages]}))
            self.is_kept = True
        except (OSError, StoreError) as error:
            self._writes = False
            reason = error.happened if isinstance(error, StoreError) else unusable(error).happened
            self._notice(f"If this search is stopped, it cannot be resumed: {reason}")

    def remove(self) -> None:
        """Remove the file, unless it belongs to another search by now."""
        with suppress(UsageError, StoreError, OSError):
            if self.is_kept and read(self._path).head.id == self._id:
                remove_all(self._path)
        self.is_kept = False


def remove_all(path: Path) -> bool:
    """Remove a checkpoint and the temporary file of a killed process. Returns whether there was one."""
    files = [file for file in (path, path.with_name(f"{path.name}.new")) if file.is_symlink() or file.exists()]
    for file in files:
        file.unlink(missing_ok=True)
    return bool(files)


@contextmanager
def _readable() -> Iterator[None]:
    """Turns every error in the file's content into one StoreError."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise damaged() from error


def damaged() -> StoreError:
    return StoreError("The stopped deep search cannot be read: its file is damaged.", AGAIN)


def _require_whole(progress: Progress) -> None:
    """Raises ValueError for impossible values."""
    state = progress.state
    places = [query.part for query in (*state.queries, *(query for query, _ in state.found))]
    places += [context.part for context in state.contexts] + [part for part, _ in state.read]
    counts = (state.round, progress.calls, progress.calls_before)
    steps = {step.__name__ for step in graph.STEPS}
    if (
        (progress.step and (progress.step not in steps or not state.parts))
        or not all(0 <= place < len(state.parts) for place in places)
        or min(*counts, progress.seconds, progress.seconds_before) < 0
    ):
        raise ValueError("impossible values")


# JSON that refers to papers and passages by id. A file may contain anything: only the declared types are made from it.


@dataclass
class References:
    """Papers and passages by id: collected while writing, looked up while reading."""

    papers: dict[str, Paper] = field(default_factory=dict)
    passages: dict[int, tuple[Chunk, Paper, str]] = field(default_factory=dict)

    def refer(self, value: Paper | Hit) -> str | HitReference:
        if isinstance(value, Paper):
            self.papers[value.id] = value
            return value.id
        self.passages[value.chunk.id] = value.chunk, value.paper, value.text
        dense, lexical = (None if score is None else float(score) for score in (value.dense, value.lexical))
        return HitReference(value.chunk.id, float(value.score), dense, lexical, value.highlights, value.summary)

    def resolve(self, reference: str | HitReference) -> Paper | Hit:
        """Raises KeyError for an unknown id, ValueError for a highlight outside its passage."""
        if isinstance(reference, str):
            return self.papers[reference]
        id, score, dense, lexical, highlights, summary = reference
        chunk, paper, text = self.passages[id]
        if any(not chunk.start <= start < end <= chunk.end for start, end in highlights):
            raise ValueError("a highlight outside its passage")
        return Hit(chunk, paper, text, score, dense, lexical, highlights, summary)


def to_json(value: object, references: References) -> Any:
    """A value of dataclasses, tuples, frozensets, texts and numbers as JSON types."""
    kind: Any = type(value)
    return stored_form(kind).dump_python(value, mode="json", context=references)


def from_json(kind: Any, value: object, references: References | None = None) -> Any:
    """The value that `to_json` wrote. Raises ValueError for anything else, KeyError for an unknown id."""
    text = json.dumps(value, allow_nan=False)
    return stored_form(kind).validate_json(text, strict=True, extra="forbid", context=references)
