"""`folio papers export`: the whole library as a bibliography, on standard output or in a file."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from folio.app import App

PURPOSE = "write all papers as BibTeX or CSL-JSON"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("bibtex", "csl-json"), default="bibtex", help="default: bibtex")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to FILE instead of standard output")


def run(app: App, arguments: argparse.Namespace) -> int:
    """Write the bibliography; what is not sure is left out, with a comment or a note that says so."""
    from folio.answer.bibliography_entries import library_bibtex, library_csl_json
    from folio.console import say
    from folio.files import write_text
    from folio.shown_text import plain_line
    from folio.store import works

    with closing(app.open_library()) as library:
        papers = library.papers()
        published = works.publishers_bibtex(library.database, [paper.id for paper in papers])
    text = library_bibtex(papers, published) if arguments.format == "bibtex" else library_csl_json(papers)
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    write_text(arguments.out, text)
    say(f"Papers written to {plain_line(str(arguments.out))}: {len(papers):,}.")
    return 0
