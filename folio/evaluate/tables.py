"""Tables of text cells, printed to a terminal and written as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from folio.text import one_line

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its cells as text."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def print_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print tables to a terminal."""
    from rich.table import Table as RichTable
    from rich.text import Text

    from folio.shown_text import plain

    for table in tables:
        drawn = RichTable(box=None, pad_edge=False, header_style="bold")
        for place, name in enumerate(table.head):
            numbers = place > 0 and all(_is_number(row[place]) for row in table.rows)
            drawn.add_column(name, justify="right" if numbers else "left", overflow="fold")
        for row in table.rows:
            drawn.add_row(*(Text(plain(cell)) for cell in row))
        console.print(Text(plain(f"\n{table.title}"), style="bold"))
        console.print(drawn)


def as_markdown(table: Table) -> str:
    """The table in Markdown, below a second-level heading."""
    numbers = [all(_is_number(row[place]) for row in table.rows) for place in range(len(table.head))]
    rule = ["---:" if place and number else "---" for place, number in enumerate(numbers)]
    lines = [f"| {' | '.join(map(markdown_cell, row))} |" for row in (table.head, rule, *table.rows)]
    return f"## {markdown_cell(table.title)}\n\n" + "\n".join(lines)


def markdown_cell(text: str) -> str:
    """A text on one line, escaped for a table cell."""
    return one_line(text).replace("|", "\\|")


def _is_number(cell: str) -> bool:
    return not cell or cell.lstrip("+-")[:1].isdigit()
