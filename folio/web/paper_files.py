"""The papers' own files, for people who do not see the disk: where one is, a PDF put in, a paper taken out."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePath
from secrets import token_hex
from threading import Lock
from time import time
from typing import BinaryIO

from folio.app import App
from folio.errors import NotKnown, PaperError, StoreBusy
from folio.files import no_space, sha256_file
from folio.ingest.progress import IngestProgress, Outcome
from folio.store import indexes
from folio.store.library import Library
from folio.types import SourceFile

# Papers that were taken out, in PAPERS_DIR; an ingest passes hidden folders over.
REMOVED = ".removed"
_UPLOAD = ".upload-"
# Seconds after which a file that is not written to any more was left by a kill: a copy on this computer takes far less
STALE_S = 3600
# Seconds that the taking out of a paper waits for the writing of another to end; reading one can take minutes
_PATIENCE_S = 2
_LONGEST_NAME = 200  # bytes, the ending not counted: file systems take 255
_PIECE = 2**20  # bytes
# A PDF says what it is in its first kilobyte (ISO 32000-1, Annex H, implementation note 13).
_MARK, _MARK_WITHIN = b"%PDF-", 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """A PDF that was put into PAPERS_DIR, or lay there before."""

    file: SourceFile
    is_new: bool


@dataclass(frozen=True, slots=True)
class Removed:
    """A paper that is no longer in the index."""

    file: str
    kept_at: str | None  # where its file was moved to, within PAPERS_DIR; None where it was left alone


class PaperFiles:
    """Any number of threads may use it; papers are put in and taken out one at a time."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._folder = Path(os.path.abspath(app.papers_folder))  # as ingest.py names what is in it
        self._writing = Lock()
        self._hashed: dict[tuple[str, int, int], str] = {}  # path, size and time -> SHA-256

    def pdf(self, library: Library, paper: str) -> Path:
        """The file of the paper with this id, as it was ingested.

        Raises NotKnown for an id that is not here, PaperError for a file that is gone or has changed since.
        """
        known = [Path(file.path) for file in library.files() if file.sha256 == paper]
        if not known:
            raise not_here()
        for path in known:
            with suppress(OSError):
                if self._sha256(path) == paper:
                    return path
        raise PaperError(
            f"The file {known[0].name} is gone or has changed since it was ingested.",
            "Put it back where it was, or run `python ingest.py` again.",
        )

    def take_in(self, content: BinaryIO, name: str) -> Upload:
        """Put a PDF into PAPERS_DIR, under its own name or one like it; the same file is not kept twice.

        Raises PaperError for what is no PDF, DiskFull.
        """
        head = content.read(_MARK_WITHIN)
        if _MARK not in head:
            raise PaperError("The file is not a PDF.", "Choose the PDF itself.")
        with no_space(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            beside = self._folder / f"{_UPLOAD}{token_hex(8)}.pdf"
            try:
                with beside.open("xb") as written:
                    written.write(head)
                    while piece := content.read(_PIECE):
                        written.write(piece)
                    written.flush()
                    os.fsync(written.fileno())
                return self._placed(beside, _safe(name))
            finally:
                beside.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Delete what a kill left half-written in PAPERS_DIR."""
        for left in self._folder.glob(f"{_UPLOAD}*"):
            with suppress(OSError):
                if time() - left.stat().st_mtime > STALE_S:
                    left.unlink()

    def ingest(self, upload: Upload, progress: IngestProgress) -> Outcome:
        """Read a file that was taken in into the index. Of those that are new, one that gives no text is not kept, nor
        a second of a paper.

        Raises PaperError for that one, StoreBusy, StoreMismatch, ModelError, DiskFull.
        """
        file = upload.file
        try:
            with self._places():
                if upload.is_new and (other := self._same(file)):
                    self._unkeep(upload)
                    return Outcome(other, "duplicate", notes=(f"The same file as {other.name}.",))
                outcomes = list(self._app.ingest([file], progress, retry=frozenset([file.path])))
                (outcome,) = [outcome for outcome in outcomes if outcome.file.path == file.path]
                if outcome.status != "failed":
                    self._app.finish_ingest()
                elif upload.is_new:
                    with closing(self._app.open_library()) as library:
                        library.forget_failure(file.path)
        except BaseException:
            self._unkeep(upload)
            raise
        if outcome.status == "failed":
            self._unkeep(upload)
            happened, remedy, *_ = outcome.notes
            raise PaperError(happened, remedy)
        return outcome

    def _unkeep(self, upload: Upload) -> None:
        """What lay there before is not ours to delete."""
        if upload.is_new:
            Path(upload.file.path).unlink(missing_ok=True)

    def remove(self, paper: str) -> Removed:
        """Take a paper out of the index. Its file moves to .removed in PAPERS_DIR, or else the next ingest would bring
        it back; one that lies elsewhere is left alone.

        Raises NotKnown for an id that is not here, StoreBusy.
        """
        with self._places(_PATIENCE_S):
            with closing(self._app.open_library()) as library:
                files = [file for file in library.files() if file.sha256 == paper]
                if not files:
                    raise not_here()
                for file in files:
                    library.drop(file.path)
            try:
                kept = [moved for file in files if (moved := self._moved(Path(file.path)))]
            finally:
                self._app.finish_ingest()
        return Removed(files[0].name, kept[0] if kept else None)

    @contextmanager
    def _places(self, patience_s: float = -1) -> Iterator[None]:
        """The one place for a writer, in this process and among all. patience_s: how long it is waited for in this one;
        -1 is as long as it takes. Raises StoreBusy."""
        if not self._writing.acquire(timeout=patience_s):
            raise StoreBusy("A paper is being read into the index.", "Wait until it is in, then try again.")
        try:
            with indexes.writing(self._app.store_folder):
                yield
        finally:
            self._writing.release()

    def _same(self, file: SourceFile) -> SourceFile | None:
        """Another file of the same paper, where it is in the index and on the disk."""
        if not self._app.library_path.exists():
            return None
        with closing(self._app.open_library()) as library:
            others = (other for other in library.files() if other.sha256 == file.sha256 and other.path != file.path)
            return next((other for other in others if Path(other.path).is_file()), None)

    def _sha256(self, path: Path) -> str:
        found = path.stat()
        key = (str(path), found.st_size, found.st_mtime_ns)
        if key not in self._hashed:
            self._hashed[key] = sha256_file(path)
        return self._hashed[key]

    def _placed(self, beside: Path, name: str) -> Upload:
        """Give a file its name, or the next one that is free, never another file's; that of the same file is taken."""
        digest = sha256_file(beside)
        for path in _names(self._folder, name):
            try:
                path.touch(exist_ok=False)  # nobody else gets this name now
            except FileExistsError:
                with suppress(OSError):  # a folder, or gone meanwhile
                    if sha256_file(path) == digest:
                        return Upload(SourceFile(str(path), path.name, digest), is_new=False)
                continue
            beside.replace(path)
            return Upload(SourceFile(str(path), path.name, digest), is_new=True)
        raise AssertionError("names never run out")

    def _moved(self, path: Path) -> str | None:
        """Where a file of PAPERS_DIR was moved to, relative to it."""
        if not path.is_relative_to(self._folder) or not path.is_file():
            return None
        folder = self._folder / REMOVED
        folder.mkdir(exist_ok=True)
        place = next(place for place in _names(folder, path.name) if not place.exists())
        path.replace(place)
        return f"{REMOVED}/{place.name}"


def _safe(name: str) -> str:
    """A file's name without a folder and without what a file system or a terminal could take amiss."""
    last = PurePath(name.replace("\\", "/")).name
    kept = "".join(char if char.isprintable() else " " for char in unicodedata.normalize("NFC", last))
    stem = re.sub(r"\.pdf$", "", re.sub(r'[<>:"|?*]', "_", kept), flags=re.I)
    stem = " ".join(stem.split()).strip(". ").encode(errors="replace")[:_LONGEST_NAME].decode(errors="ignore")
    return f"{stem or 'paper'}.pdf"


def _names(folder: Path, name: str) -> Iterator[Path]:
    """A name, then "name (2)", "name (3)" and so on."""
    yield folder / name
    plain = PurePath(name)
    for number in count(2):
        yield folder / f"{plain.stem} ({number}){plain.suffix}"


def not_here() -> NotKnown:
    """What is said of an id that no paper has."""
    return NotKnown(
        "This paper is not in the index.", f"If it was taken out, its file is in {REMOVED} in the papers' folder."
    )
