"""Tables as CSV, Markdown, Word documents and BibTeX. As JSON: schema/tables.py.

Each cell has the page of its quote and the citation key of its paper: "23 km “a length of 23 km” [funk2014, p. 7]".
Text of papers and of people is only text: no cell begins as a formula of a spreadsheet, and it is escaped in Markdown.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from folio.bibliography.export import library_bibtex
from folio.bibliography.markdown import escaped
from folio.bibliography.word import Linked, table_document
from folio.papers.link import reader_link
from folio.shown_text import name_line, plain_line
from folio.store.tables import StoredFinding, TableCell, TableColumn, TableRow
from folio.table.filling import as_column
from folio.table.shown import ShownTable
from folio.table.values import number_in

# What stands in a cell without an answer
_EMPTY = {"waiting": "", "not_found": "not found", "failed": "failed", "found": ""}
_CLOSEST = f"{_EMPTY['not_found']}; closest place:"  # before a quote that may not answer
BY_HAND, BY_MODEL, LOST, REMOVED = "edited by hand", "in a model's words", "no longer in the paper", "removed"
# Characters with which a spreadsheet begins a formula: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = "=+-@\t\r\n＝＋－＠"
_PAPER = ("Key", "Paper", "Year", "Title", "File")


@dataclass(frozen=True, slots=True)
class _Part:
    """One answer in a cell: a value, its quote, remarks, and where the quote is."""

    value: str
    quote: str
    remarks: tuple[str, ...]
    place: str  # "funk2014, p. 7"; "" for none
    link: str  # of the page in Folio; "" for none

    @property
    def words(self) -> str:
        """All but the place."""
        quote = f"“{self.quote}”" if self.quote else ""
        remarks = f"({', '.join(self.remarks)})" if self.remarks else ""
        return " ".join(filter(None, [self.value, quote, remarks]))


def _parts(
    shown: ShownTable, row: TableRow, cell: TableCell, page: str = "", *, with_closest: bool = True
) -> list[_Part]:
    """What a cell says. page: the address of Folio's page, for links. with_closest: of one that was not found, too."""
    if cell.edit:
        return [_Part(plain_line(cell.edit), "", (BY_HAND,), "", "")]
    if with_closest and (closest := cell.shown_closest):
        return [replace(_found(shown, row, closest, page), value=_CLOSEST)]
    if not cell.findings:
        return [_Part(_EMPTY[cell.state], "", (), "", "")] if _EMPTY[cell.state] else []
    return [_found(shown, row, finding, page) for finding in cell.findings]


def _found(shown: ShownTable, row: TableRow, finding: StoredFinding, page: str) -> _Part:
    quote, is_here = finding.quote, row.paper in shown.placed.papers
    is_lost = is_here and quote.state == "lost"
    is_placed = bool(page) and is_here and not is_lost
    link = reader_link(page, row.paper, quote.page, (quote.start, quote.end)) if is_placed else ""
    return _part(finding, shown.keys.get(row.paper, "") or row.label, link, is_lost=is_lost)


def _part(finding: StoredFinding, key: str, link: str, *, is_lost: bool) -> _Part:
    remarks = ((BY_MODEL,) if finding.by_model else ()) + ((LOST,) if is_lost else ())
    place = f"{name_line(key)}, p. {name_line(finding.quote.label)}"
    return _Part(plain_line(finding.value), plain_line(finding.quote.quote), remarks, place, link)


def _cited(part: _Part) -> str:
    return f"{part.words} [{part.place}]" if part.place else part.words


def said(shown: ShownTable, row: TableRow, column: TableColumn) -> list[str]:
    """What a cell says, with the page of each quote: several if places disagree, none if it was not asked."""
    return [_cited(part) for part in _parts(shown, row, shown.cell(row, column))]


def found_lines(cell: TableCell, key: str) -> list[str]:
    """The same of a cell that was just asked. key: the citation key of its paper."""
    if cell.error is not None:
        return [plain_line(f"failed: {cell.error[0]}")]
    if cell.closest:
        return [_cited(replace(_part(cell.closest, key, "", is_lost=False), value=_CLOSEST))]
    if not cell.findings:
        return [_EMPTY[cell.state]]
    return [_cited(_part(finding, key, "", is_lost=False)) for finding in cell.findings]


def csv_text(shown: ShownTable) -> str:
    """A table for spreadsheets, with a byte order mark, by which they know its encoding.

    A column of text has the quotes. Another kind has two columns: the number, "yes" or the choice alone; the quotes.
    What was not found has no closest place, so that a spreadsheet can count it.
    """
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\r\n")
    headings = [*_PAPER, *(plain_line(each) for column in shown.table.columns for each in _headings(column))]
    writer.writerow(map(_safe, headings))
    for row in shown.table.rows:
        label, file = name_line(row.label), name_line(row.file)
        about = (shown.keys.get(row.paper, ""), label, row.year, _title(shown, row), file)
        cells = (value for column in shown.table.columns for value in _values(shown, row, column))
        writer.writerow([each if isinstance(each, int | float) else _safe(each or "") for each in (*about, *cells)])
    return f"\ufeff{written.getvalue()}"


def _headings(column: TableColumn) -> list[str]:
    if column.kind == "text":
        return [column.name]
    return [f"{column.name} ({column.unit})" if column.unit else column.name, f"{column.name}: quotes"]


def _values(shown: ShownTable, row: TableRow, column: TableColumn) -> list[str | float]:
    cell = shown.cell(row, column)
    quotes = " | ".join(map(_cited, _parts(shown, row, cell, with_closest=False)))
    if column.kind == "text":
        return [quotes]
    return [_number(cell, column) if column.kind == "number" else _value(cell), quotes]


def _number(cell: TableCell, column: TableColumn) -> str | float:
    """The first number of a cell, in the unit of its column; "" for none."""
    found = [finding.number for finding in cell.findings if finding.number is not None]
    number = number_in(as_column(column), cell.edit) if cell.edit else next(iter(found), None)
    if number is None:
        return ""
    return int(number) if number == int(number) and abs(number) < 1e15 else number


def _value(cell: TableCell) -> str:
    values = [cell.edit] if cell.edit else [finding.value for finding in cell.findings]
    return " | ".join(dict.fromkeys(plain_line(value) for value in values if value))


def _safe(text: str) -> str:
    """A plain text that no spreadsheet reads as a formula: with an apostrophe before what would begin one."""
    return f"'{text}" if text.lstrip().startswith(tuple(_FORMULA)) else text


def _title(shown: ShownTable, row: TableRow) -> str:
    return name_line(row.title) + ("" if row.paper in shown.placed.papers else f" ({REMOVED})")


def markdown(shown: ShownTable, page: str) -> str:
    """A table with its quotes and pages. page: the address of Folio's page, for links."""
    table = shown.table
    lines = [f"# {escaped(name_line(table.name))}", "", f"{escaped(shown.scope)}.", ""]
    lines.append("| " + " | ".join(escaped(name) for name in ("Paper", *map(_heading, table.columns))) + " |")
    lines.append("| " + " | ".join("---" for _ in (0, *table.columns)) + " |")
    for row in table.rows:
        cells = [_paper(shown, row)]
        for column in table.columns:
            parts = _parts(shown, row, shown.cell(row, column), page)
            cells.append(" / ".join(map(_markdown_part, parts)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _heading(column: TableColumn) -> str:
    return f"{column.name} ({column.unit})" if column.unit else column.name


def _paper(shown: ShownTable, row: TableRow) -> str:
    key = shown.keys.get(row.paper, "")
    named = " ".join(filter(None, [row.label, f"({key})" if key else ""]))
    return escaped(named if row.paper in shown.placed.papers else f"{named} ({REMOVED})")


def _markdown_part(part: _Part) -> str:
    if not part.place:
        return escaped(part.words)
    place = f"[{escaped(part.place)}]({part.link})" if part.link else escaped(f"[{part.place}]")
    return f"{escaped(part.words)} {place}"


def word(shown: ShownTable, page: str) -> bytes:
    """A table as a Word document (.docx), on its side. page: see markdown."""
    table = shown.table
    headings = ["Paper", *map(_heading, table.columns)]
    rows = [[_word_paper(shown, row), *_word_cells(shown, row, page)] for row in table.rows]
    return table_document(name_line(table.name), f"{shown.scope}.", headings, rows)


def _word_paper(shown: ShownTable, row: TableRow) -> list[Linked]:
    named = " ".join(filter(None, [row.label, shown.keys.get(row.paper, "")]))
    return [Linked(named), Linked(_title(shown, row))]


def _word_cells(shown: ShownTable, row: TableRow, page: str) -> Iterator[list[Linked]]:
    for column in shown.table.columns:
        parts = _parts(shown, row, shown.cell(row, column), page)
        yield [Linked(part.words, f"[{part.place}]" if part.place else "", part.link) for part in parts]


def bibtex(shown: ShownTable, published: Mapping[str, str]) -> str:
    """The papers of the rows. published: paper id -> the publisher's entry (works.publishers_bibtex)."""
    rows, papers = shown.table.rows, shown.placed.papers
    gone = [name_line(row.title or row.file).replace("@", "(at)") for row in rows if row.paper not in papers]
    comments = "".join(f"% Removed from the library: {name}\n" for name in gone)
    here = [papers[row.paper] for row in rows if row.paper in papers]
    return comments + library_bibtex(here, shown.keys, published)
