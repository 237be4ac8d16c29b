"""`--bib` of `folio ingest`: reads bibliographies, gives papers what they say, and tells what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.console import output
from folio.shown_text import name_line, plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.ingest.progress import Outcome
    from folio.sources.bibliography_file import Bibliography
    from folio.sources.bibliography_import import Imported

_LISTED = 5  # entries of a kind, unless all are wanted


def read(paths: Iterable[Path]) -> list[Bibliography]:
    """The bibliographies, each once. Raises UsageError for one that cannot be read."""
    if not paths:
        return []
    from folio.sources.bibliography_file import read_bibliography

    return list({found.path: found for found in map(read_bibliography, paths)}.values())


def named_pdfs(bibliographies: Iterable[Bibliography]) -> dict[Path, str]:
    """Absolute path -> display name of every PDF that a bibliography names."""
    return {path: path.name for bibliography in bibliographies for path in bibliography.named_pdfs()}


def import_all(app: App, bibliographies: Sequence[Bibliography]) -> list[Imported]:
    """Give the papers what each bibliography says; the last one that knows a paper counts."""
    if not bibliographies or not app.has_library():
        return []
    from folio.sources.bibliography_import import import_bibliography

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
