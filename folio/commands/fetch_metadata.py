"""`folio fetch --metadata`: what services know of the papers that are in the index, and what changes by it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from folio.console import output, progress_bar, say
from folio.shown_text import name_line, short_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.paper_metadata import Field
    from folio.sources.lookup import Lookup
    from folio.sources.work_keeping import PaperFound
    from folio.types import Paper

_SHOWN = 70  # characters of a value


def update(app: App, lookup: Lookup, *, is_dry: bool) -> int:
    """Ask about every paper, print what changes, and store it unless `is_dry`; returns the exit code."""
    from folio.paper_metadata import NO_METADATA, merged
    from folio.sources.metadata_update import NAMES, changes, describe_paper
    from folio.sources.work_keeping import keep_papers, metadata_then
    from folio.store import indexes, works

    with closing(app.open_library()) as library:
        papers = library.papers()
        layers = {paper.id: library.metadata_layers(paper.id) for paper in papers}
        database = library.database
        kept = {paper.id: next(iter(works.of_paper(database, paper.id)), None) for paper in papers}
    said: dict[str, PaperFound] = {}
    changed = unknown = 0
    try:
        with progress_bar() as progress:
            for done, paper in enumerate(papers, 1):
                # What services said before tells nothing about this time.
                about = merged({**layers[paper.id], "online": NO_METADATA})
                described = describe_paper(about, lookup)
                if described.note:
                    output().print(f"{name_line(paper.file)}: {described.note}.")
                if (found := described.found) is None:
                    unknown += 1
                    output().print(f"{name_line(paper.file)}: no service is known to have it.")
                else:
                    said[paper.id] = found
                    differing = changes(layers[paper.id], metadata_then(found, kept[paper.id]))
                    changed += bool(differing)
                    _show(paper, f"by {NAMES.get(found.found_by, found.found_by)}, match {found.score:.2f}", differing)
                progress("looking up", done, len(papers))
    except KeyboardInterrupt:
        say("Stopped. Nothing was changed; the answers so far are kept for a day.")
        raise
    if not is_dry and said:
        with indexes.writing(app.store_folder):
            with closing(app.open_library()) as library:
                keep_papers(library, said)
            app.finish_ingest()
    counts = f"Papers: {len(papers):,}, found: {len(said):,}, changed: {changed:,}, not found: {unknown:,}."
    output().print(f"{counts} Nothing was stored, because of --dry-run." if is_dry else counts)
    return 0


def _show(paper: Paper, how: str, differing: Sequence[tuple[str, Field[Any], Field[Any]]]) -> None:
    if not differing:
        return
    output().print(f"{name_line(paper.file)} ({how}):")
    for name, old, new in differing:
        output().print(f"  {name}: {_value(old)} -> {_value(new)}")


def _value(field: Field[Any]) -> str:
    value = field.value
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value or "")
    return short_line(text, _SHOWN) if text else "(none)"
