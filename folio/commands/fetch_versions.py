"""Newer versions of papers that are in the index: downloaded, put in the old ones' places, and read."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from folio.console import errors, output, progress_bar, say
from folio.shown_text import name_line

if TYPE_CHECKING:
    from pathlib import Path

    from folio.app import App
    from folio.sources.lookup import Lookup
    from folio.sources.versions import NewVersion
    from folio.types import Paper
    from folio.work import Work


def planned(app: App, found: Iterable[tuple[Paper, Work]], *, keeps_both: bool) -> list[NewVersion]:
    """How these versions are to come in, each for one paper."""
    from folio.sources.versions import new_version

    pairs = {work.arxiv: (paper, work) for paper, work in reversed(list(found))}
    if not pairs:
        return []
    with closing(app.open_library()) as library:
        files = library.files()
    return [
        new_version(paper, work, files, app.papers_folder, keeps_both=keeps_both)
        for paper, work in reversed(pairs.values())
    ]


def describe(version: NewVersion) -> str:
    """What is to become of it, in words."""
    return f"version {version.number}, here: {_own(version)}{', which stays' if not version.files else ''}"


def _own(version: NewVersion) -> str:
    from folio.identifiers import version_number

    own = version_number(version.paper.arxiv)
    return f"version {own}" if own else "a version that is not known"


def confirmed(count: int) -> bool:
    """Ask whether to download so many."""
    errors().print(f"Download {count} {'newer version' if count == 1 else 'newer versions'}? [y/N] ", end="")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def bring_in(app: App, lookup: Lookup, versions: Sequence[NewVersion]) -> int:
    """Download, put in place and read these versions; returns 1 if one of them did not come."""
    from folio.sources.versions import download

    there: list[NewVersion] = []
    try:
        with progress_bar() as progress:
            for done, version in enumerate(versions, 1):
                there += [version] if download(version, lookup, app.internet.largest_mb * 10**6, say) else []
                progress("downloading", done, len(versions))
    except KeyboardInterrupt:
        say("Stopped. Nothing was replaced. Run the same command again to continue.")
        raise
    came = [_take_in(app, version) for version in there]
    return 0 if all(came) and len(there) == len(versions) else 1


def _take_in(app: App, version: NewVersion) -> bool:
    """Put one version in place and read it; whether it is in the index then. If not, the old one is as it was."""
    from folio.commands import ingest
    from folio.errors import PaperError
    from folio.files import sha256_file
    from folio.sources.versions import install, undo
    from folio.sources.work_keeping import PaperFound, keep_papers
    from folio.store import indexes

    name = name_line(version.paper.file)
    id = sha256_file(version.incoming)
    if id == version.paper.id:
        version.incoming.unlink()
        _record(app, version)
        output().print(f"{name} is version {version.number} already.")
        return True
    with indexes.writing(app.store_folder), closing(app.open_library()) as library:
        app.require_same_settings(library)
        keep_papers(library, {id: PaperFound((version.work,), "fetched", 1.0)})
    try:
        kept = install(version)
    except PaperError as error:
        say(f"{error.happened} {error.remedy}")
        return False
    ingest.run(app, ingest.parser("ingest.py").parse_args([str(path) for path in version.targets]))
    with closing(app.open_library()) as library:
        is_in = bool(library.papers_by_id([id]))
    if not is_in:
        undo(version, kept)
        with indexes.writing(app.store_folder), closing(app.open_library()) as library:
            for path in version.files:
                library.forget_failure(str(path))
        say(f"{name}: version {version.number} could not be read. {_own(version).capitalize()} stays.")
        return False
    output().print(_outcome(version, kept))
    return True


def _record(app: App, version: NewVersion) -> None:
    """Note which version a paper is whose own file does not say so."""
    from dataclasses import replace

    from folio.paper_metadata import Field
    from folio.store import indexes

    with indexes.writing(app.store_folder), closing(app.open_library()) as library:
        arxiv = Field(version.work.arxiv, "arxiv", True)
        library.change_metadata(version.paper.id, "online", lambda online: replace(online, arxiv=arxiv))


def _outcome(version: NewVersion, kept: Sequence[Path]) -> str:
    """What became of a version, in words."""
    name = name_line(version.paper.file)
    if not version.files:
        why = f": {name_line(version.why_both)}" if version.why_both else ""
        new = name_line(version.targets[0].name)
        return f"{new} (version {version.number}) is in the index beside {name} ({_own(version)}){why}."
    places = ", ".join(name_line(path.relative_to(version.folder).as_posix()) for path in kept)
    return f"{name}: version {version.number} replaces {_own(version)}. The old file is kept: {places}."
