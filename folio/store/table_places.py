"""The tables of a library with the current names of their papers and the current places of their quotes.

As for notes, a quote is searched again once its paper has another text, and where it was found is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite

from folio.errors import DiskFull, StoreBusy
from folio.papers.label import sure_year
from folio.papers.model import Paper
from folio.store import tables
from folio.store.database import storable
from folio.store.library import Library
from folio.store.note_places import located, quote_in, text_crcs
from folio.store.tables import EvidenceTable, StoredFinding, TableCell, TableRow

_WAIT_S = 1.0  # for other writers, to store where a quote was found; else it is searched again the next time


@dataclass(frozen=True, slots=True)
class PlacedTable:
    """A table with its papers as they are now."""

    table: EvidenceTable  # its rows by year, the latest first, then by label
    papers: Mapping[str, Paper]  # id -> paper, of those that are in the library; see `placed`

    def is_stale(self, paper: str, cell: TableCell) -> bool:
        """Whether the text of a paper has changed, and lacks a quote of a cell."""
        return paper in self.papers and any(finding.quote.state == "lost" for finding in cell.findings)


def placed(library: Library, id: str, since: int = -1) -> PlacedTable:
    """A table, with its cells that changed since a change, and then the papers of these alone. Raises NotKnown."""
    with library.reading():
        table = tables.read(library.database, id, since)
        wanted = [row.paper for row in table.rows] if since < 0 else [paper for _, paper in table.cells]
        papers = {paper.id: paper for paper in library.papers_by_id(wanted)}
        crcs = text_crcs(library, list(papers))
        moved: list[tuple[str, str, TableCell, TableCell]] = []
        cells = dict(table.cells)
        for (column, paper), cell in table.cells.items():
            findings = tuple(_located(library, finding, papers.get(paper), crcs) for finding in cell.findings)
            closest = _located(library, cell.closest, papers.get(paper), crcs) if cell.closest else None
            now = replace(cell, findings=findings, closest=closest)
            if now != cell:
                moved.append((column, paper, cell, now))
                cells[column, paper] = now
    named = [row_of(papers[row.paper]) if row.paper in papers else row for row in table.rows]
    renamed = [row for row, before in zip(named, table.rows, strict=True) if row != before]
    if (moved or renamed) and not library.is_read_only:
        with suppress(StoreBusy, DiskFull), library.database.transaction("user", _WAIT_S):
            tables.replace_findings(library.database, moved)
            tables.rename_rows(library.database, id, renamed)
    return PlacedTable(replace(table, rows=tuple(sorted(named, key=_order)), cells=cells), papers)


def row_of(paper: Paper) -> TableRow:
    title, file, label = (storable(text) for text in (paper.title, paper.file, paper.label or paper.key))
    return TableRow(paper.id, title, file, label, sure_year(paper.metadata))


def stored_finding(
    paper: Paper, text: str, span: tuple[int, int], value: str, number: float | None, *, by_model: bool
) -> StoredFinding:
    """text: of the paper. span: of the quote."""
    quote = replace(quote_in(paper, text, *span), title="", file="")
    known = number if number is not None and isfinite(number) else None
    return _described(StoredFinding(quote, 0, "", storable(value), known, by_model), paper)


def _located(
    library: Library, finding: StoredFinding, paper: Paper | None, crcs: dict[str, int]
) -> StoredFinding:
    """The finding at its place in the current text of its paper. A quote is lost, too, if it goes on on the next page
    now, for it would have no page that it stands on."""
    if paper is None:
        return finding
    quote = replace(located(library, finding.quote, paper, crcs), paper=paper.id, title="", file="")
    if quote == finding.quote:
        return finding
    if quote.state == "lost":
        return replace(finding, quote=quote)
    first, last = paper.pages.pages_of(quote.start, quote.end)
    if first != last:
        return replace(finding, quote=replace(finding.quote, state="lost", text_crc=quote.text_crc))
    return _described(replace(finding, quote=quote), paper)


def _described(finding: StoredFinding, paper: Paper) -> StoredFinding:
    """The finding with the section and the page of its quote."""
    quote = finding.quote
    begins, _ = paper.pages.bounds(quote.page, paper.length)
    return replace(finding, page_start=begins, section=paper.sections.shown(quote.start, quote.end))


def _order(row: TableRow) -> tuple[int, str, str]:
    return -(row.year or 0), row.label.casefold(), row.paper
