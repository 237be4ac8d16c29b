"""`--bib` of `folio ingest`: reads bibliographies, gives papers what they say, and tells what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.console import output, say
from folio.errors import UsageError
from folio.ingest.discovery import Outcome
from folio.papers.lists import matches, unknown_names
from folio.papers.metadata import Metadata
from folio.papers.model import SourceFile
from folio.shown_text import name_line, plain_line
from folio.zotero import sync
from folio.zotero.files import Computer, find_data_folder
from folio.zotero.library import read_library

if TYPE_CHECKING:
    from folio.app import App
    from folio.bibliography.imports import Bibliography, Imported


_LISTED = 5  # entries of a kind, unless all are wanted


def read(paths: Iterable[Path]) -> list[Bibliography]:
    """The bibliographies, each once. Raises UsageError for one that cannot be read."""
    if not paths:
        return []
    from folio.bibliography.imports import read_bibliography

    return list({found.path: found for found in map(read_bibliography, paths)}.values())


def named_pdfs(bibliographies: Iterable[Bibliography]) -> dict[Path, str]:
    """Absolute path -> display name of every PDF that a bibliography names."""
    return {path: path.name for bibliography in bibliographies for path in bibliography.named_pdfs()}


def import_all(app: App, bibliographies: Sequence[Bibliography]) -> list[Imported]:
    """Give the papers what each bibliography says; the last one that knows a paper counts."""
    if not bibliographies or not app.has_library():
        return []
    from folio.bibliography.imports import import_bibliography

    with closing(app.open_library()) as library:
        return [import_bibliography(library, bibliography) for bibliography in bibliographies]


def report(
    bibliographies: Sequence[Bibliography], imported: Sequence[Imported], outcomes: Sequence[Outcome], verbose: bool
) -> int:
    """Print what came of each bibliography; returns the exit code: 1 if nothing of one could be read."""
    new = {outcome.file.path for outcome in outcomes if outcome.status in ("added", "replaced")}
    for bibliography, found in zip(bibliographies, imported, strict=False):
        added = sum(str(path) in new for path in bibliography.named_pdfs())
        counts = [
            f"entries: {len(bibliography.entries):,}",
            f"papers matched: {found.matched:,}",
            f"changed: {found.changed:,}",
            *([f"no longer said: {found.withdrawn:,}"] if found.withdrawn else []),
            *([f"PDFs added: {added:,}"] if added else []),
            f"not matched: {len(found.unmatched):,}",
        ]
        _print(f"{name_line(bibliography.path.name)}: {', '.join(counts)}.")
        _list("No paper for", [entry.key or entry.title for entry in found.unmatched], verbose)
        _list("Skipped", [f"{entry.key}: {why}" for entry, why in found.ambiguous], verbose)
        places = [f"line {problem.line}: " if problem.line else "" for problem in bibliography.problems]
        problems = [f"{place}{problem.happened}" for place, problem in zip(places, bibliography.problems, strict=True)]
        _list("Could not be read", problems, verbose)
    return int(any(found.problems and not found.entries for found in bibliographies))


def _list(heading: str, items: Sequence[str], verbose: bool) -> None:
    shown = items if verbose else items[:_LISTED]
    more = f"; {len(items) - len(shown):,} more with -v" if len(shown) < len(items) else ""
    if items:
        _print(f"{heading}: {'; '.join(name_line(item, 160) for item in shown)}{more}", indent="  ")


def _print(line: str, indent: str = "") -> None:
    output().print(f"{indent}{plain_line(line)}", markup=False, highlight=False)


# `--zotero` of folio ingest: which files it reads, what it stores, removes and reports.

_NAMED = 3  # files that a line names


class ZoteroIngest:
    """One ingest from a Zotero library. `files`: the PDFs to read, with the name that people are shown."""

    def __init__(self, data_folder: Path | None, collections: Sequence[str], tags: Sequence[str]) -> None:
        """data_folder: None looks for it. Raises UsageError, also if there is nothing to read."""
        self._zotero = read_library(find_data_folder(data_folder, Computer.this()))
        self._collections, self._tags = collections, tags
        known = [each.metadata for each in self._zotero.attachments]
        # An empty library is more likely a mistake than a wish to remove everything.
        if not known and not self._zotero.trashed:
            where = self._zotero.folder
            raise UsageError(f"There are no PDFs in the Zotero library {where}.", "Name another after --zotero.")
        if unknown := unknown_names(known, collections, tags):
            raise UsageError(
                f"No PDF in Zotero is in a collection or has a tag of this name: {', '.join(map(name_line, unknown))}.",
                _names_that_exist(known, of_tags=not collections),
            )
        self.files = sync.selected(self._zotero, self._is_wanted)
        self._missing = sync.missing(self._zotero, self._is_wanted)
        self._described = sync.Described()

    def _is_wanted(self, metadata: Metadata) -> bool:
        return matches(metadata, self._collections, self._tags)

    def describe(self, app: App, files: Sequence[SourceFile]) -> None:
        """Store what Zotero says of these files. Raises StoreMismatch before it changes anything."""
        with closing(app.open_library(create=True)) as library:
            app.require_same_settings(library)
            self._described = sync.describe(library, self._zotero, files)

    def remove(self, app: App) -> list[Outcome]:
        """Remove the papers that have left Zotero."""
        with closing(app.open_library()) as library:
            removed = sync.remove(library, self._zotero, app.papers_folder)
        return [Outcome(file, "pruned", notes=(reason,)) for file, reason in removed]

    def report(self, *, verbose: bool) -> None:
        """Say what came from Zotero. verbose: name every file that is missing."""
        count, described = len(self.files), self._described
        say(
            f"Zotero: {count:,} {'PDF' if count == 1 else 'PDFs'} of {self._zotero.folder}; metadata of"
            f" {described.new:,} papers new, of {described.changed:,} changed."
        )
        if self._missing:
            named = _listed(self._missing, len(self._missing) if verbose else _NAMED)
            say(f"PDFs that Zotero has no file of on this computer: {len(self._missing):,}, {named}.")
        if described.shared:
            named = _listed(described.shared, _NAMED)
            say(f"PDFs of several items in Zotero, described by the first: {len(described.shared):,}, {named}.")


def _listed(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(map(name_line, names[:most])) + (f" and {more:,} more" if more > 0 else "")


def _names_that_exist(known: Sequence[Metadata], *, of_tags: bool) -> str:
    named = {name for metadata in known for name in (metadata.tags if of_tags else metadata.collections).value}
    if not named:
        return f"Leave the filter out: no PDF there has a {'tag' if of_tags else 'collection'}."
    return f"{'Tags' if of_tags else 'Collections'} there: {_listed(sorted(named), 10)}."
