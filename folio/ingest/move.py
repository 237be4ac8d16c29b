"""Moves a library from one store to another over PaperStore: nothing is read from a PDF or embedded again.

The new library is filled beside what the target holds, paper by paper, and takes its place at the end. Each paper is
read back and compared. A move that was interrupted compares what is there, and goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from folio.errors import StoreBusy, StoreDamaged, StoreError, StoreMissing, UsageError
from folio.files import write_json
from folio.paper_metadata import NO_METADATA, SOURCES, Metadata, Source
from folio.store import works
from folio.store.lasting_tables import Lasting
from folio.store.paper_store import PaperStore
from folio.store.paper_vectors import PaperVector
from folio.store.work_rows import AboutWork, KeptWork
from folio.types import Chunk, NewPaper, Progress, SourceFile, Vectors

if TYPE_CHECKING:
    from folio.ingest.local_store import StoreBackend
    from folio.store.history import Asked

_AGAIN = "Run the same command again: it goes on where it stopped."


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move has brought to its target."""

    papers: int
    kept: int  # of these papers, those that an earlier, interrupted move had brought
    files: int
    failures: int
    pages: int
    passages: int
    fine_passages: int
    questions: int  # of the log
    conversations: int
    works: int


@dataclass(frozen=True, slots=True, eq=False)
class _Copy:
    """What is read of one paper."""

    paper: NewPaper
    chunk_ids: tuple[int, ...]
    vectors: Vectors

    def equals(self, other: _Copy) -> bool:
        return (
            self.paper == other.paper
            and self.chunk_ids == other.chunk_ids
            and np.array_equal(self.vectors, other.vectors)
        )


@dataclass(frozen=True, slots=True)
class _Overview:
    """What is known of all papers at once."""

    files: dict[str, list[SourceFile]]  # paper -> its files, in the order they were added
    added: dict[str, str]
    vectors: dict[str, PaperVector]

    def agrees(self, other: _Overview, paper: str) -> bool:
        """Whether both say the same of a paper, but for its files."""
        ours, theirs = self.vectors.get(paper), other.vectors.get(paper)
        return (
            self.added.get(paper) == other.added.get(paper)
            and (ours is None) == (theirs is None)
            and (
                ours is None
                or theirs is None
                or (ours.text_hash == theirs.text_hash and np.array_equal(ours.vector, theirs.vector))
            )
        )


@dataclass(slots=True)
class _Tally:
    """Counts what outlives papers while it is copied."""

    questions: int = 0  # of the log
    conversations: set[str] = field(default_factory=set)
    described: int = 0  # works

    def asked(self, asked: Iterable[Asked]) -> Iterator[Asked]:
        for each in asked:
            self.questions += each.entry is not None
            self.conversations |= {each.turn.conversation} if each.turn else set()
            yield each

    def works(self, rows: Iterable[AboutWork]) -> Iterator[AboutWork]:
        for row in rows:
            self.described += isinstance(row, KeptWork)
            yield row


def move(
    source: StoreBackend, target: StoreBackend, record: Path, progress: Progress, *, replaces: bool = False
) -> Moved:
    """Make the library of `target` what that of `source` is; the caller holds the writer lock of this computer.

    record: ingested.json. progress: told about papers. replaces: whether a library that is there may be replaced; it
    serves until the new one is whole. Raises UsageError if there is one, StoreMissing if there is nothing to move,
    StoreBusy if another computer has changed the source meanwhile, and whatever reading and writing raise; what was
    moved until then is kept, and the same call goes on with it.
    """
    with closing(source.open_to_copy()) as old:
        made_with, stamp = old.fingerprint(), old.papers_stamp()
        if not made_with or not old.counts()["papers"]:
            raise StoreMissing(f"The library at {source.place} has no papers to move.", "Check the settings.")
        if target.is_taken() and not replaces:
            raise UsageError(
                f"There is a library at {target.place} already.",
                "Add --yes to replace it, with its log and its conversations; or choose another place: docs/scale.md.",
            )
        with closing(target.begin_move(made_with)) as new:
            kept = _fill(old, new, progress)
            if old.papers_stamp() != stamp:
                raise _changed()
            tally = _Tally()
            lasting = Lasting(tally.asked(source.asked()), tally.works(works.read_rows(old.database)))
            target.finish_move(new, lasting, lambda library: _write_record(library, record))
        with closing(target.open()) as new:
            return _checked(_counts(old), new, kept, target, tally)


def _changed() -> StoreBusy:
    return StoreBusy(
        "The library was changed while it was moved.",
        "Run the same command again when nobody writes to it: it goes on where it stopped.",
    )


def _write_record(library: PaperStore, record: Path) -> None:
    from folio.ingest import pipeline

    write_json(record, pipeline.record(library))


def _fill(old: PaperStore, new: PaperStore, progress: Progress) -> int:
    """Bring the papers to the new library, and all that is said of them; returns how many were there already."""
    _fill_metadata(old, new)  # first: passages are searched by their paper's title too
    here, there = _overview(old), _overview(new)
    wanted = {(file.path, paper) for paper, files in here.files.items() for file in files}
    for path, paper in [(file.path, paper) for paper, files in there.files.items() for file in files]:
        if (path, paper) not in wanted:
            new.drop(path)
    kept = 0
    for count, (paper, files) in enumerate(here.files.items()):
        progress("papers", count, len(here.files))
        copy = _read(old, paper)
        linked = there.files.get(paper, [])
        is_kept = linked == files[: len(linked)] and here.agrees(there, paper) and _is_there(new, copy)
        if not is_kept:
            for file in linked:
                new.drop(file.path)
            whole = here.vectors.get(paper)
            new.add(copy.paper, files[0], copy.chunk_ids, copy.vectors, whole, here.added[paper])
            linked = files[:1]
        if linked != files:
            new.link(files[len(linked) :])
        kept += is_kept
        if not is_kept and not _is_there(new, copy):
            raise StoreError(f"Paper {paper[:12]} was not stored as it was read.", _AGAIN)
    progress("papers", len(here.files), len(here.files))
    _fill_failures(old, new)
    there = _overview(new)
    if here.files != there.files or not all(here.agrees(there, paper) for paper in here.files):
        raise StoreError("What is known of some papers was not stored as it was read.", _AGAIN)
    return kept


def _fill_metadata(old: PaperStore, new: PaperStore) -> None:
    for paper in sorted(old.described() | new.described()):
        here, there = _said(old, paper), _said(new, paper)
        for source in SOURCES:
            said = here.get(source, NO_METADATA)
            if source != "pdf" and said != there.get(source, NO_METADATA):
                new.set_metadata(paper, source, said)


def _said(store: PaperStore, paper: str) -> dict[Source, Metadata]:
    return {source: said for source, said in store.metadata_layers(paper).items() if source != "pdf"}


def _fill_failures(old: PaperStore, new: PaperStore) -> None:
    here, there = old.failures(), new.failures()
    for failure in there:
        if failure not in here:
            new.forget_failure(failure.file.path)
    for failure in here:
        if failure not in there:
            new.record_failure(failure)


def _overview(store: PaperStore) -> _Overview:
    files: dict[str, list[SourceFile]] = {}
    with store.reading():
        for file in store.files():
            files.setdefault(file.sha256, []).append(file)
        return _Overview(files, store.added(), store.paper_vectors())


def _read(store: PaperStore, paper: str) -> _Copy:
    """All of a paper; its text and its passages are checked as they are read. Raises StoreDamaged."""
    with store.reading():
        about = next(iter(store.papers_by_id([paper])), None)
        if about is None:
            raise _changed()
        found = [chunk for chunk, _, _ in store.read_chunks(store.chunk_ids_of([paper]))]
        passages = sorted(found, key=lambda chunk: (chunk.start, chunk.end))
        ids = [passage.id for passage in passages]
        inside = store.fine_in(ids)
        fine = [chunk for id in ids for chunk in inside[id]]
        store.read_chunks([chunk.id for chunk in fine])
        ids += [chunk.id for chunk in fine]
        made = NewPaper(
            paper,
            store.metadata_layers(paper).get("pdf", NO_METADATA),
            store.text(paper, 0, about.length),
            about.pages,
            _spans(passages),
            about.problems,
            about.sections.sections,
            tuple(_spans(inside[passage.id]) for passage in passages) if fine else (),
        )
        vectors = store.vectors_of(ids) if ids else np.empty((0, int(store.fingerprint()["dimension"])), np.float32)
        return _Copy(made, tuple(ids), vectors)


def _spans(chunks: Iterable[Chunk]) -> tuple[tuple[int, int], ...]:
    return tuple((chunk.start, chunk.end) for chunk in chunks)


def _is_there(store: PaperStore, copy: _Copy) -> bool:
    """Whether the store has the paper exactly so."""
    try:
        return _read(store, copy.paper.id).equals(copy)
    except StoreDamaged:
        return False


def _checked(here: Mapping[str, int], new: PaperStore, kept: int, target: StoreBackend, tally: _Tally) -> Moved:
    """What the library that serves now holds. Raises StoreDamaged unless it has these numbers of everything."""
    there = _counts(new)
    wrong = [f"{there[what]} {what} instead of {number}" for what, number in here.items() if there[what] != number]
    wrong += target.index_faults(new)
    if wrong:
        raise StoreDamaged(f"The library at {target.place} is not what was moved: {'; '.join(wrong)}.", _AGAIN)
    return Moved(
        here["papers"],
        kept,
        here["files"],
        here["failures"],
        sum(paper.page_count for paper in new.papers()),
        here["passages"],
        here["fine passages"],
        tally.questions,
        len(tally.conversations),
        tally.described,
    )


def _counts(store: PaperStore) -> dict[str, int]:
    counts = store.counts()
    return {
        **{what: counts[what] for what in ("papers", "files", "failures")},
        "passages": store.chunk_count(),
        "fine passages": store.chunk_count("fine"),
    }
