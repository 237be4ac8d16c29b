"""Measure the check of answers on answers and summaries with labelled sentences: docs/measuring.md.

python -m benchmarks.grounding --judged benchmarks/judged-sample.jsonl --require "false_shown<=0.3"
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.grounding import answers, report, run
from folio.cli.command import Parser, positive_int, run_command
from folio.cli.evaluate import report_failures, show_changes, show_run, show_written, spread, thresholds_met
from folio.console import output, progress_bar
from folio.errors import UsageError, require_packages
from folio.evaluate import runner
from folio.evaluate.metrics import parse_threshold
from folio.evaluate.tables import print_tables

if TYPE_CHECKING:
    from folio.app import App


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m benchmarks.grounding",
        description="Measure the check of answers on answers and summaries with labelled sentences.",
        epilog="docs/evaluation-set.md shows the formats, docs/measuring.md the figures.",
    )
    made.add_argument("--judged", type=Path, nargs="+", metavar="FILE", help="check answers with labelled sentences")
    made.add_argument("--faithbench", type=Path, metavar="FILE", help="check the summaries of FaithBench")
    made.add_argument("--summedits", type=Path, metavar="FOLDER", help="check the summaries of SummEdits")
    made.add_argument("--limit", type=positive_int, metavar="N", help="take N of the answers, spread over the files")
    made.add_argument("--json", type=Path, metavar="FILE", help="save the run, to compare it with another")
    made.add_argument("--out", type=Path, metavar="FOLDER", help="folder for the report (default: evaluations/)")
    made.add_argument(
        "--compare", type=Path, nargs="+", metavar="RUN", help="a saved run to compare with; without answers, two"
    )
    made.add_argument(
        "--require",
        action="extend",
        nargs="+",
        metavar="THRESHOLD",
        help="exit with 1 if missed: true_shown=0.75 (at least), false_shown<=0.3 (at most)",
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    return run_command(lambda app: _measure(app, arguments))


def _measure(app: App, arguments: argparse.Namespace) -> int:
    require_packages("evaluate", "Measuring", "scipy")
    compared = arguments.compare or ()
    if arguments.judged or arguments.faithbench or arguments.summedits:
        if len(compared) > 1:
            raise UsageError("Labelled answers and two saved runs were given.", "Give one run to compare with.")
        return _evaluate(app, arguments)
    if not compared:
        raise UsageError("No labelled answers were given.", "Try --judged benchmarks/judged-sample.jsonl.")
    if len(compared) != 2:
        raise UsageError(
            "--compare without labelled answers needs two saved runs.", "Give both: --compare before.json now.json."
        )
    for option in ("limit", "json", "out"):
        if getattr(arguments, option):
            raise UsageError(f"--{option} needs labelled answers.", "Name them with --judged FILE.")
    return _compare(compared, arguments.require or ())


def _evaluate(app: App, arguments: argparse.Namespace) -> int:
    """Check the labelled answers, print, write the report, compare, and check the thresholds."""
    thresholds = [parse_threshold(text, report.NAMES) for text in arguments.require or ()]
    before = run.load(arguments.compare[0]) if arguments.compare else None
    sources, labelled = _load(arguments)
    labelled = spread(labelled, arguments.limit)
    check = run.check_of(app)
    app.models.announce()
    with progress_bar() as progress:
        made = run.run(
            labelled,
            check,
            sources=sources,
            made=datetime.now(UTC),
            settings=runner.relevant_settings(app),
            progress=progress,
        )
    shown = report.tables(made)
    if before:
        shown.append(report.comparison(before, made))
    show_run(shown, report.changes(before, made) if before else None, made.notes)
    written = [report.write(arguments.out or Path("evaluations"), made, shown)]
    if arguments.json:
        run.save(arguments.json, made)
        written.append(arguments.json)
    show_written(written)
    met = thresholds_met(thresholds, report.figures(made.answers))
    return max(met, report_failures(made.failed, len(made.answers), "answers"))


def _compare(paths: Sequence[Path], required: Sequence[str]) -> int:
    """Two saved runs; the thresholds are for the second."""
    thresholds = [parse_threshold(text, report.NAMES) for text in required]
    before, after = (run.load(path) for path in paths)
    print_tables(output(), [report.comparison(before, after)])
    show_changes(report.changes(before, after))
    return thresholds_met(thresholds, report.figures(after.answers))


def _load(arguments: argparse.Namespace) -> tuple[list[Path], list[answers.LabelledAnswer]]:
    """The files that the options name, and all of their answers. Raises UsageError."""
    sources: list[Path] = list(arguments.judged or ())
    labelled = [answer for path in sources for answer in answers.load_judged(path)]
    if arguments.faithbench:
        sources.append(arguments.faithbench)
        labelled += answers.load_faithbench(arguments.faithbench)
    if arguments.summedits:
        sources.append(arguments.summedits)
        labelled += answers.load_summedits(arguments.summedits)
    return sources, labelled


if __name__ == "__main__":
    sys.exit(main())
