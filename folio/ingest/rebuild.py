"""Rebuilds a store; the old one stays in use until the new one is complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from folio.errors import StoreError
from folio.ingest import pipeline, queue
from folio.ingest.discovery import IngestProgress, Outcome
from folio.ingest.scanned_pages import FOLDER, ScannedPages
from folio.papers.model import SourceFile
from folio.protocols import Embedder
from folio.store.claims import Claims
from folio.store.fingerprint import Reading, fingerprint
from folio.store.library import Library
from folio.store.store import Store


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """What a library is made of again, and how. See pipeline.ingest."""

    files: Sequence[SourceFile]
    embedder: Embedder
    reading: Reading
    limits: pipeline.Limits
    progress: IngestProgress
    batch: int
    read: pipeline.PaperReader | None = None


def rebuild(store: Store, plan: RebuildPlan) -> Iterator[Outcome]:
    """Make the library of a store again; the last step puts it in the place of the old one.

    An interrupted rebuild is continued. Raises StoreError if no file could be read: the old library stays. Also
    UserFileDamaged, and StoreBusy if another computer has added papers meanwhile, which would be lost. The caller holds
    the writer lock, and updates the indexes afterwards.
    """
    with closing(store.begin_rebuild(fingerprint(plan.embedder, plan.reading))) as begun:
        try:
            yield from read_again(begun.library, store.claims(begun.library), plan, store.folder)
        except NoneReadable:
            begun.abandon()
            raise
        begun.finish()
    with closing(store.open()) as library:  # what people said of papers has come back
        queue.refresh(library, lambda: plan.embedder, plan.batch)


class NoneReadable(StoreError):
    """None of the files for a rebuild could be read."""


def read_again(new: Library, claims: Claims, plan: RebuildPlan, folder: Path) -> Iterator[Outcome]:
    """Make a library that is not in use yet contain only these files' papers; papers that it already has stay.

    folder: of the store, where scanned pages are kept. Raises NoneReadable.
    """
    paths = frozenset(file.path for file in plan.files)
    for old in new.files():
        if old.path not in paths:
            new.drop(old.path)
    yield from pipeline.ingest(
        new,
        claims,
        plan.files,
        lambda: plan.embedder,
        plan.reading,
        plan.limits,
        plan.progress,
        batch=plan.batch,
        retry=paths,
        read=plan.read,
        scans=ScannedPages(folder / FOLDER),
    )
    if not new.chunk_count():
        raise NoneReadable("None of the files could be read.", "See the reasons above. The index has not been changed.")
