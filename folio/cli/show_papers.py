"""Prints papers: lists of them, and one with all that is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from folio.papers.edits import value_text
from folio.papers.lists import By, unsure_fields
from folio.papers.metadata import FIELDS, ORIGIN_WORDS, Field
from folio.papers.model import Paper, PaperHit
from folio.papers.people import short_list
from folio.shown_text import counted, name_line, page_words, plain_line, short_line

if TYPE_CHECKING:
    from rich.console import Console

_UNSURE = "?"  # after a value that is not sure
_LONGEST_VALUE = 500  # characters of a field; JSON has all of them


def show_papers(console: Console, papers: Sequence[Paper], of: int, *, warnings: bool) -> None:
    """Print one line for each paper. of: number of papers in the index. warnings: also print each paper's warnings."""
    table = Table("key", "authors", "year", "title", "file", box=None, pad_edge=False, header_style="bold")
    if warnings:
        table.add_column("warnings", style="yellow")
    for column in table.columns:
        column.overflow = "fold"
    for paper in papers:
        unsure = unsure_fields(paper.metadata)
        values = {
            "authors": short_list([name_line(person.family, 40) for person in paper.metadata.authors.value]),
            "year": str(paper.year or ""),
            "title": name_line(paper.title),
        }
        if paper.flag:
            values["title"] = f"{paper.flag.words} · {values['title']}"
        marked = [f"{value}{_UNSURE}" if name in unsure else value for name, value in values.items()]
        problems = ["; ".join(map(plain_line, paper.problems))] if warnings else []
        table.add_row(*map(Text, [name_line(paper.key), *marked, name_line(paper.file), *problems]))
    if papers:
        console.print(table)
    total = counted(of, "paper")
    line = f"{total}." if len(papers) == of else f"{len(papers):,} of {total}."
    marks = f" {_UNSURE} means not sure." if any(unsure_fields(paper.metadata) for paper in papers) else ""
    console.print(f"{line}{marks}", style="dim")


def show_found(console: Console, hits: Sequence[PaperHit]) -> None:
    """Print the papers that a query found, best first: label, title, file, and why each was found."""
    for rank, hit in enumerate(hits, 1):
        paper, passage = hit.paper, hit.passage
        cited = paper.label or paper.cited_as
        name = [] if cited.startswith("“") else [Text(name_line(cited), style="bold cyan")]  # a short title
        title = [Text(name_line(paper.title), style="bold")] if paper.title else []
        flag = [Text(paper.flag.words, style="bold red")] if paper.flag else []
        console.print(Text(f"{rank}. ").append_text(Text("  ").join([*flag, *name, *title])))
        why = [f"its words: {name_line(', '.join(hit.words))}"] if hit.words else []
        if passage is not None:
            where = name_line(passage.section)
            why.append(f"in the text: {where + ', ' if where else ''}{passage.where}")
        elif not why:
            why.append("a similar subject")
        console.print(Text(f"   {name_line(paper.file)} · {hit.score:.2f} · {' · '.join(why)}", style="dim"))
    if not hits:
        console.print("No papers found.")


def show_counts(console: Console, by: By, counts: Sequence[tuple[str, int]]) -> None:
    """Print how many papers have each value."""
    table = Table(by, "papers", box=None, pad_edge=False, header_style="bold")
    table.columns[1].justify = "right"
    for value, number in counts:
        table.add_row(Text(name_line(value)) if value else Text("none", style="dim"), f"{number:,}")
    console.print(table)


def show_paper(console: Console, paper: Paper, files: Sequence[str], citation_key: str) -> None:
    """Print every field with its origin, the files, the sections and the warnings. files: names."""
    console.print(Text(name_line(paper.title or paper.file), style="bold"))
    for notice in paper.notices:
        console.print(Text(notice.text, style="bold red" if notice.is_grave else "yellow"))
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim")
    known = paper.metadata.known()
    for name in FIELDS:
        if name in known:
            table.add_row(name.replace("_", " "), Text(_value(known[name])), _origin(known[name]))
    if paper.metadata.citation_key.value != citation_key:
        table.add_row("citation key", Text(citation_key), "made by Folio")
    table.add_row("key", Text(name_line(paper.key)), "in citations")
    table.add_row("id", paper.id)
    table.add_row("files", Text(", ".join(map(name_line, files))))
    table.add_row("size", f"{paper.page_count:,} pages, {paper.chunks:,} passages")
    console.print(table)
    if paper.sections.headed:
        console.print("\nSections", style="bold")
    for section in paper.sections.headed:
        line = Text(f"{'  ' * min(section.level, 6)}{name_line(section.shown)}")
        pages = page_words(paper.pages.pages_of(section.start, section.end))
        kind = "" if section.kind == "other" else f"{section.kind}, "
        console.print(line.append(f" · {kind}{pages}", style="dim"))
    if paper.problems:
        console.print("\nWarnings", style="bold")
    for problem in paper.problems:
        console.print(Text(f"  {plain_line(problem)}", style="yellow"))


def show_edit(console: Console, before: Paper, after: Paper, names: Sequence[str]) -> None:
    """Print the old and the new value of the fields with these names that have changed."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    for name in names:
        old, new = getattr(before.metadata, name), getattr(after.metadata, name)
        if old != new:
            table.add_row(name.replace("_", " "), Text(f"{_with_origin(old)}  →  {_with_origin(new)}"))
    console.print(Text(name_line(after.file), style="bold"))
    if table.row_count:
        console.print(table)
    else:
        console.print("Nothing has changed.")


def _with_origin(field: Field[Any]) -> str:
    return f"{_value(field)} ({_origin(field)})" if field.origin else "(not known)"


def _value(field: Field[Any]) -> str:
    return short_line(value_text(field.value), _LONGEST_VALUE) or "(empty)"


def _origin(field: Field[Any]) -> str:
    needs_no_note = field.sure or field.origin == "cited works"  # whose words already say that it is a guess
    return ORIGIN_WORDS[field.origin] if needs_no_note else f"{ORIGIN_WORDS[field.origin]}, not sure"
