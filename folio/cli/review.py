"""`folio review`: a review of papers as Markdown or a Word document: what each contributes, by theme, in quotes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.cli.command import FILTERS, Parser, add_paper_options, paper_filter, run_command, write_or_print
from folio.console import progress_bar
from folio.errors import UsageError
from folio.shown_text import counted, plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.bibliography.document import Block

_ENDINGS = (".md", ".docx")


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Write a review of papers: what each contributes in its own words, by theme, where they agree and"
        " differ, what they leave open, and their references. Every sentence of a paper is a quote with its page.",
        epilog="CITATION_STYLE says how papers are cited: by author and year, or by number.",
    )
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help="put this question to each paper too")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="write to FILE, in Markdown or for Word (.docx)")
    parser.add_argument("--title", help="the title (default: what was chosen)")
    add_paper_options(parser, "review")
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio review") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_intermixed_args(argv)
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    from folio.bibliography.document import document_markdown

    out: Path | None = arguments.out
    if out and out.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{plain_line(str(out))} ends like no document.", "Name a file that ends in .md or .docx.")
    blocks = _blocks(app, arguments)
    if out and out.suffix.lower() == ".docx":
        from folio.bibliography.word import word_of_blocks

        content = word_of_blocks(blocks)
    else:
        content = document_markdown(blocks).encode()
    return write_or_print(out, content, "The review is in")


def _blocks(app: App, arguments: argparse.Namespace) -> list[Block]:
    from folio.review.report import Citing, report
    from folio.search.filters import fitting_papers
    from folio.table.cell import Column

    columns = [Column(question, question) for question in arguments.questions]
    with closing(app.open_library()) as library, progress_bar() as progress:
        app.require_paper(library)
        papers = fitting_papers(library, paper_filter(arguments))
        finder = app.cell_finder(library) if columns else None
        title = arguments.title or _title(arguments, len(papers))
        made = app.reviewer(library, finder).review(papers, title, columns, progress)
    return report(made, Citing(app.numbers_citations, app.page_url))


def _title(arguments: argparse.Namespace, papers: int) -> str:
    """What was chosen, in words."""
    chosen = [value for name in FILTERS for value in getattr(arguments, name) or ()]
    return f"Review: {', '.join(chosen)}" if chosen else f"Review of {counted(papers, 'paper')}"
