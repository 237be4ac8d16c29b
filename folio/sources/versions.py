"""Newer versions of papers that are in the library: where the new file goes, and what becomes of the old one.

The new file takes over the old one's place and name, so that the library replaces the paper in one transaction, with
what people wrote about it. The old file is kept in .removed of the papers' folder. A file that lies elsewhere is its
owner's: it stays, and the new version comes beside it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from folio.errors import PaperError, command
from folio.files import REMOVED, no_space, replace, sha256_file, shortened, sync
from folio.identifiers import bare_arxiv, version_number
from folio.sources.fetching import pdf_name
from folio.sources.lookup import Lookup
from folio.sources.pdf_download import download_pdf
from folio.temporary import KEPT_S
from folio.types import Paper, SourceFile
from folio.work import Work

_LONGEST_STEM = 200  # bytes of an old file's name: file systems allow 255
_INCOMING = ".incoming"  # whole files that have not taken their places yet; ingestion skips hidden folders


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version of a paper that is newer than the one in the library."""

    paper: Paper
    work: Work  # its arXiv identifier has the version
    files: tuple[Path, ...]  # of the old version, to be replaced; none if both are kept
    folder: Path  # of the papers
    why_both: str = ""  # why the old one stays; "" if it does not, or if that is wanted

    @property
    def number(self) -> int:
        return version_number(self.work.arxiv) or 1

    @property
    def incoming(self) -> Path:
        """Where its file is until it takes its place."""
        return self.folder / _INCOMING / f"{self.work.arxiv.replace('/', '_')}.pdf"

    @property
    def targets(self) -> tuple[Path, ...]:
        """Where its file goes."""
        return self.files or (self.folder / pdf_name(self.work, with_version=True),)


def newer(paper: Paper, work: Work, papers: Sequence[Paper]) -> bool:
    """Whether a work is a newer version of a paper, and that the newest one in the library.

    Of a paper whose version is not known, every version but the first may be newer.
    """
    theirs = version_number(work.arxiv)
    if theirs is None or theirs < 2 or bare_arxiv(work.arxiv) != bare_arxiv(paper.arxiv):
        return False
    same = [each for each in papers if bare_arxiv(each.arxiv) == bare_arxiv(work.arxiv)]
    return (version_number(paper.arxiv) or 0) == max(version_number(each.arxiv) or 0 for each in same) < theirs


def is_missing(paper: Paper, work: Work, papers: Sequence[Paper]) -> bool:
    """Whether a work is a version of a paper that the library does not have, newer or older."""
    same = [
        each.arxiv for each in papers if bare_arxiv(each.arxiv) == bare_arxiv(paper.arxiv) == bare_arxiv(work.arxiv)
    ]
    theirs = version_number(work.arxiv)
    return theirs is not None and bool(same) and all(version_number(arxiv) != theirs for arxiv in same)


def new_version(paper: Paper, work: Work, files: Sequence[SourceFile], folder: Path, *, keeps_both: bool) -> NewVersion:
    """How a version is to come in. files: of the library. folder: of the papers."""
    own = [Path(file.path) for file in files if file.sha256 == paper.id]
    if keeps_both:
        return NewVersion(paper, work, (), folder)
    outside = [path for path in own if not _is_inside(path, folder)]
    if outside:
        return NewVersion(paper, work, (), folder, f"{outside[0].name} is not in the papers' folder")
    return NewVersion(paper, work, tuple(own), folder)


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a file itself, and no link to one, lies in a folder."""
    real = Path(os.path.realpath(folder))
    return not path.is_symlink() and Path(os.path.realpath(path)).is_relative_to(real)


def download(version: NewVersion, lookup: Lookup, largest: int, on_failure: Callable[[str], None]) -> bool:
    """Bring its file to `incoming`; whether it is there. Raises OSError, DiskFull."""
    if version.incoming.is_file():  # of a run that was stopped
        return True
    for path in version.incoming.parent.glob("*.pdf"):  # of such runs that nobody went on with
        if time.time() - path.lstat().st_mtime > KEPT_S:
            path.unlink(missing_ok=True)
    links = [lookup.client.addresses.arxiv_pdf(version.work.arxiv)]
    return download_pdf(lookup.client, links, version.incoming, largest, on_failure)


def install(version: NewVersion) -> list[Path]:
    """Put its file into its places; returns where the old ones are kept. Each place has one or the other at any time.

    A place that has the new one already stays as it is: a run that was killed left it so. Raises PaperError if an old
    file is not the one that was read or another file has the new one's place, OSError, DiskFull.
    """
    for path in version.files:
        is_new = _same(path, version.incoming) and _kept(path, version).exists()
        if not is_new and not _has(path, version.paper.id):
            raise PaperError(
                f"{path.name} is missing or has changed since it was read.",
                f"Run `{command('ingest')}`, then the same command again.",
            )
    for path in version.targets if not version.files else ():
        if path.exists() and not _same(path, version.incoming):
            raise PaperError(
                f"There is another file {path.name} already.", "Rename it, then run the same command again."
            )
    kept = [_keep(path, version) for path in version.files]
    with no_space(version.folder):
        for path in version.targets:
            _put(version.incoming, path)
    version.incoming.unlink()
    return kept


def undo(version: NewVersion, kept: Sequence[Path]) -> None:
    """Put the old files back, for a version that could not be read. One that came beside stays: it may be looked at."""
    for path, old in zip(version.files, kept, strict=True):
        _put(old, path)
        old.unlink()


def _kept(path: Path, version: NewVersion) -> Path:
    """Where an old file is kept in .removed, or a name that is free there."""
    own = version_number(version.paper.arxiv)
    folder = version.folder / REMOVED
    stem = shortened(path.stem, _LONGEST_STEM) + (f" v{own}" if own else f" before v{version.number}")
    names = (f"{stem}{f' ({number})' if number > 1 else ''}.pdf" for number in count(1))
    places = (folder / name for name in names)
    return next(place for place in places if not place.exists() or _has(place, version.paper.id))


def _keep(path: Path, version: NewVersion) -> Path:
    """Copy an old file into .removed."""
    target = _kept(path, version)
    target.parent.mkdir(exist_ok=True)
    with no_space(target.parent):
        if not target.exists():
            _put(path, target)
    return target


def _same(one: Path, other: Path) -> bool:
    return _has(one, sha256_file(other))


def _has(path: Path, sha256: str) -> bool:
    return path.is_file() and sha256_file(path) == sha256


def _put(source: Path, target: Path) -> None:
    """Copy a file to a place, whole at once."""
    part = target.with_name(f".{shortened(target.name, 100)}.part")
    try:
        shutil.copyfile(source, part)
        sync(part)
        replace(part, target)
    finally:
        part.unlink(missing_ok=True)
