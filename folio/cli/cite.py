"""`folio cite`: the citation for a sentence of a draft, from the place that supports it best."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from folio.cli.command import Parser, run_command, write_json
from folio.console import errors, output
from folio.shown_text import name_line, plain_line, short_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.drafts.claims import CheckedClaim

_LONGEST_QUOTE, _LONGEST_LABEL = 400, 20  # characters


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Print the citation for a sentence of a draft: the paper and the place that support it best.",
        epilog="The exit code is 1 if no paper in the index supports the sentence; the nearest place is shown then.",
    )
    parser.add_argument("words", nargs="+", metavar="WORDS", help="the sentence; quotes are not needed")
    parser.add_argument("--bibtex", action="store_true", help="print the BibTeX entry of the paper, and nothing else")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio cite") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    from folio.bibliography.export import bibtex
    from folio.store.works import publishers_bibtex

    with closing(app.open_library()) as library:
        checked = app.claim_checker(library).check(" ".join(arguments.words))
        best = checked.citations[0] if checked.citations else None
        key = library.citation_key(best.paper) if best else ""
        published = publishers_bibtex(library.database, [best.paper.id]) if best else {}
    if arguments.json:
        from folio.schema.drafts import sentence_citation_json

        write_json(sentence_citation_json(checked, key))
    elif arguments.bibtex and best and checked.is_supported:
        sys.stdout.write(bibtex(best.paper, key, full=True, published=published.get(best.paper.id, "")))
    elif checked.is_supported:
        _show(checked, key)
    else:
        _show_nearest(checked)
    return 0 if checked.is_supported else 1


def _show_nearest(checked: CheckedClaim) -> None:
    """Print why no paper supports a sentence, and the nearest place, on standard error: it is no citation."""
    from folio.drafts.report import sentence_of

    console = errors()
    console.print(f"No paper in the index supports this sentence ({checked.verdict}).", style="bold yellow")
    console.print(plain_line(sentence_of(checked.reason)))
    for quote in checked.citations:
        console.print(f"“{short_line(quote.quote, _LONGEST_QUOTE)}” {quote.shown}", style="dim")


def _show(checked: CheckedClaim, key: str) -> None:
    from folio.bibliography.export import reference

    console, best = output(), checked.citations[0]
    for quote in checked.citations:
        console.print(f"“{short_line(quote.quote, _LONGEST_QUOTE)}” {quote.shown}")
    for quote in checked.against:
        console.print(f"But: “{short_line(quote.quote, _LONGEST_QUOTE)}” {quote.shown}", style="yellow")
    console.print(reference(best.paper, sorted({quote.page for quote in checked.citations})))
    label = name_line(best.label, _LONGEST_LABEL)
    console.print(f"key       {key}")
    console.print(f"Markdown  [@{key}, p. {label}]")
    console.print(f"LaTeX     \\cite[p.~{label}]{{{key}}}")
