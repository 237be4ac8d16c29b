"""`folio check`: checks each sentence of a draft that cites a paper of the library against that paper."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.cli.command import Parser, run_command, write_json
from folio.console import output, progress_bar, say
from folio.errors import UsageError
from folio.shown_text import plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.drafts.checking import CheckedDraft, CheckedSentence

_STYLES = {"contradicted": "bold red", "number differs": "bold red", "not found": "bold yellow"}
_LONGEST_QUOTE = 400  # characters in a terminal


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Check each sentence of a draft that cites a paper in the index against that paper: quoted,"
        " supported, contradicted, number differs, or not found.",
        epilog="The exit code is 1 if a sentence is contradicted, has another number or is not found.",
    )
    parser.add_argument("draft", type=Path, metavar="DRAFT", help="a file in Markdown, LaTeX or Word (.docx)")
    parser.add_argument("--all", action="store_true", help="also show the sentences that are supported")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report to FILE too, as one HTML page")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio check") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    from folio.drafts.checking import check_draft, read_draft
    from folio.drafts.report import html_report
    from folio.system.files import write_output

    if arguments.html and arguments.html.exists() and arguments.html.samefile(arguments.draft):
        raise UsageError("The report would replace the draft.", "Name another file after --html.")
    draft = read_draft(arguments.draft)
    with closing(app.open_library()) as library, progress_bar() as progress:
        checked = check_draft(draft, arguments.draft.name, app.claim_checker(library), progress)
    if arguments.html:
        write_output(arguments.html, html_report(checked).encode())
        say(f"The report is in {plain_line(str(arguments.html))}.")
    if arguments.json:
        from folio.schema.drafts import checked_draft_json

        write_json(checked_draft_json(checked))
    else:
        _show(checked, is_all=arguments.all)
    return 1 if checked.trouble else 0


def _show(checked: CheckedDraft, *, is_all: bool) -> None:
    from folio.drafts.report import summary

    console = output()
    for sentence in checked.sentences if is_all else checked.trouble:
        _show_sentence(sentence)
    if checked.not_here:
        console.print("Not in the index:", style="bold")
        for line, cited in checked.not_here:
            console.print(f"  {plain_line(str(cited))} (line {line:,})")
        console.print()
    for problem in checked.problems:
        say(problem)
    console.print(summary(checked))


def _show_sentence(sentence: CheckedSentence) -> None:
    """Print a sentence: its verdict and line, its words, why, and the places."""
    from rich.text import Text

    from folio.drafts.report import sentence_of
    from folio.shown_text import short_line

    console = output()
    heading = Text(sentence.verdict, style=_STYLES.get(sentence.verdict, "green"))
    console.print(heading.append(f"  line {sentence.line:,}", style="dim"))
    console.print(f"  {plain_line(sentence.text)}")
    for claim in sentence.claims:
        if len(sentence.claims) > 1:
            console.print(f"  {plain_line(claim.claim)}", style="italic")
        if claim.reason:
            console.print(f"  {plain_line(sentence_of(claim.reason))}")
        for lead, quotes in (("", claim.citations), ("But: ", claim.against)):
            for quote in quotes:
                console.print(f"    {lead}“{short_line(quote.quote, _LONGEST_QUOTE)}” {quote.shown}", style="dim")
    if sentence.not_here:
        also = ", ".join(plain_line(str(each)) for each in sentence.not_here)
        console.print(f"  It also cites {also}, not in the index.", style="dim")
    console.print()
