"""`--bib` and `--zotero` of `folio ingest`: their PDFs, the metadata they give to papers, and what is printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.console import output, say
from folio.ingest.discovery import Outcome
from folio.papers.model import SourceFile
from folio.shown_text import counted, name_line, plain_line
from folio.zotero import sync
from folio.zotero.annotations import AnnotationsTaken
from folio.zotero.files import Computer, find_data_folder
from folio.zotero.library import read_library

if TYPE_CHECKING:
    from folio.app import App
    from folio.bibliography.entries import Entry
    from folio.bibliography.imports import Bibliography, Imported


_LISTED = 5  # entries of a kind, unless verbose
_NAMED = 3  # files that a line names


def read(paths: Iterable[Path]) -> list[Bibliography]:
    """The bibliographies, each once. Raises UsageError for one that cannot be read."""
    if not paths:
        return []
    from folio.bibliography.imports import read_bibliography

    return list({bibliography.path: bibliography for bibliography in map(read_bibliography, paths)}.values())


def named_pdfs(bibliographies: Iterable[Bibliography]) -> dict[Path, str]:
    """Absolute path -> display name of every PDF that a bibliography names."""
    return {path: path.name for bibliography in bibliographies for path in bibliography.named_pdfs()}


def import_all(app: App, bibliographies: Sequence[Bibliography]) -> list[Imported]:
    """Store the metadata of each bibliography; for a paper in several, the last one counts."""
    if not bibliographies or not app.has_library():
        return []
    from folio.bibliography.imports import import_bibliography

    with closing(app.open_library()) as library:
        return [import_bibliography(library, bibliography) for bibliography in bibliographies]


def report(
    bibliographies: Sequence[Bibliography], imported: Sequence[Imported], outcomes: Sequence[Outcome], verbose: bool
) -> int:
    """Print the result for each bibliography; returns the exit code: 1 if one has no readable entry."""
    new = {outcome.file.path for outcome in outcomes if outcome.status in ("added", "replaced")}
    for bibliography, result in zip(bibliographies, imported, strict=False):
        added = sum(str(path) in new for path in bibliography.named_pdfs())
        counts = [
            f"entries: {len(bibliography.entries):,}",
            f"papers matched: {result.matched:,}",
            f"changed: {result.changed:,}",
            *([f"no longer in the bibliography: {result.withdrawn:,}"] if result.withdrawn else []),
            *([f"PDFs added: {added:,}"] if added else []),
            f"not matched: {len(result.unmatched):,}",
        ]
        _print(f"{name_line(bibliography.path.name)}: {', '.join(counts)}.")
        _list("No paper for", [entry.key or entry.title for entry in result.unmatched], verbose)
        _list("Skipped", [f"{entry.key}: {why}" for entry, why in result.ambiguous], verbose)
        lines = [(f"line {problem.line}: " if problem.line else "", problem) for problem in bibliography.problems]
        _list("Key of several entries", _repeated_keys(bibliography), verbose)
        _list("Could not be read", [f"{line}{problem.happened}" for line, problem in lines], verbose)
    return int(any(bibliography.problems and not bibliography.entries for bibliography in bibliographies))


def _repeated_keys(bibliography: Bibliography) -> list[str]:
    """The keys that several entries have, with their lines. BibTeX forbids it, and case does not matter to it."""
    entries: dict[str, list[Entry]] = {}
    for entry in bibliography.entries:
        entries.setdefault(entry.key.casefold(), []).append(entry)
    repeated = [same for key, same in entries.items() if key and len(same) > 1]
    lines = [", ".join(str(entry.line) for entry in same if entry.line) for same in repeated]  # JSON has no lines
    return [
        f"{same[0].key} ({f'lines {listed}' if listed else f'{len(same)} entries'})"
        for same, listed in zip(repeated, lines, strict=True)
    ]


def _list(heading: str, items: Sequence[str], verbose: bool) -> None:
    shown = items if verbose else items[:_LISTED]
    more = f"; {len(items) - len(shown):,} more with -v" if len(shown) < len(items) else ""
    if items:
        _print(f"{heading}: {'; '.join(name_line(item, 160) for item in shown)}{more}", indent="  ")


def _print(line: str, indent: str = "") -> None:
    output().print(f"{indent}{plain_line(line)}", markup=False, highlight=False)


class ZoteroIngest:
    """One ingest from a Zotero library. `files`: path -> display name of the PDFs to read."""

    def __init__(self, data_folder: Path | None, collections: Sequence[str], tags: Sequence[str]) -> None:
        """data_folder: None finds it. Raises UsageError, also if there is nothing to read."""
        zotero = self._zotero = read_library(find_data_folder(data_folder, Computer.this()))
        self._chosen = sync.ZoteroSelection(zotero, collections, tags)
        self.files = self._chosen.files
        self._missing = sync.missing(zotero, self._chosen.is_wanted)
        self._others = sync.other_files(zotero, self._chosen.is_wanted)
        self._mislabelled = sync.mislabelled(zotero, self._chosen.is_wanted)
        self._described = sync.Described()
        self._annotations = AnnotationsTaken()

    def describe(self, app: App, files: Sequence[SourceFile]) -> None:
        """Store Zotero's metadata of these files. Raises StoreMismatch before anything changes."""
        self._described = app.describe_from_zotero(self._zotero, files)

    def remove(self, app: App) -> list[Outcome]:
        """Remove the papers that are no longer in Zotero, and take over its annotations."""
        removed = app.remove_what_left_zotero(self._zotero)
        self._annotations = app.take_annotations(self._zotero)
        return removed

    def report(self, *, verbose: bool) -> None:
        """Print a summary. verbose: name every file that is missing or not read."""
        described = self._described
        say(
            f"Zotero: {counted(len(self.files), 'PDF')} in {self._zotero.folder}; papers with new metadata:"
            f" {described.new:,}, with changed metadata: {described.changed:,}."
        )
        taken = self._annotations
        if taken != AnnotationsTaken():
            say(f"Annotations: new notes: {taken.new:,}, changed: {taken.changed:,}, removed: {taken.removed:,}.")
        if self._zotero.problem:
            say(f"The citation keys of Better BibTeX were not read: {self._zotero.problem}")
        most = sys.maxsize if verbose else _NAMED
        if self._mislabelled:
            named = sync.listed(self._mislabelled, most)
            say(f"PDFs that Zotero does not call PDFs, read too: {len(self._mislabelled):,}, {named}.")
        if self._others:
            kinds = [f"{counted(len(names), kind)}, {sync.listed(names, most)}" for kind, names in self._others.items()]
            say(f"Files in Zotero that are no PDFs, and are not read: {'; '.join(kinds)}.")
        if self._missing:
            named = sync.listed(self._missing, most, plain_line)
            say(f"PDFs whose file is not on this computer: {len(self._missing):,}, {named}.")
        if described.shared:
            named = sync.listed(described.shared, _NAMED)
            say(f"PDFs of several Zotero items, with the metadata of the first: {len(described.shared):,}, {named}.")
