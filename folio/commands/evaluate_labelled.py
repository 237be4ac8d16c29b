"""evaluate.py --judged, --faithbench, --summedits: what the check shows of answers and summaries with labels."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from folio.commands.evaluation_output import (
    report_failures,
    show_changes,
    show_run,
    show_written,
    spread,
    thresholds_met,
)

if TYPE_CHECKING:
    from folio.app import App
    from folio.evaluate.labelled_answers import LabelledAnswer

# The options that name labelled answers
LABELLED = ("judged", "faithbench", "summedits")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that name labelled answers."""
    parser.add_argument("--judged", type=Path, nargs="+", metavar="FILE", help="check answers with labelled sentences")
    parser.add_argument("--faithbench", type=Path, metavar="FILE", help="check the summaries of FaithBench")
    parser.add_argument("--summedits", type=Path, metavar="FOLDER", help="check the summaries of SummEdits")


def evaluate(app: App, arguments: argparse.Namespace) -> int:
    """Check the labelled answers, print, write the report, compare, and check the thresholds."""
    from datetime import UTC, datetime

    from folio.console import progress_bar
    from folio.evaluate import grounding_metrics, grounding_report, grounding_runner, stores
    from folio.evaluate.statement_check import check_of
    from folio.evaluate.thresholds import parse_threshold

    thresholds = [parse_threshold(text, grounding_metrics.NAMES) for text in arguments.require or ()]
    before = grounding_runner.load(arguments.compare[0]) if arguments.compare else None
    sources, answers = _load(arguments)
    answers = spread(answers, arguments.limit)
    check = check_of(app)
    app.models.announce()
    with progress_bar() as progress:
        run = grounding_runner.run(
            answers,
            check,
            sources=sources,
            made=datetime.now(UTC),
            settings=stores.relevant_settings(app),
            progress=progress,
        )
    shown = grounding_report.tables(run)
    if before:
        shown.append(grounding_report.comparison(before, run))
    show_run(shown, grounding_report.changes(before, run) if before else None, run.notes)
    written = [grounding_report.write(arguments.out or Path("evaluations"), run, shown)]
    if arguments.json:
        grounding_runner.save(arguments.json, run)
        written.append(arguments.json)
    show_written(written)
    met = thresholds_met(thresholds, grounding_metrics.figures(run.answers))
    return max(met, report_failures(run.failed, len(run.answers), "answers"))


def is_saved_run(path: Path) -> bool:
    """Whether a file is a saved run over labelled answers."""
    import json

    try:
        return "grounding_form" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):  # reading it as another run says what is wrong
        return False


def compare(paths: Sequence[Path], required: Sequence[str]) -> int:
    """Two saved runs over labelled answers; the thresholds are for the second."""
    from folio.console import output
    from folio.evaluate import grounding_metrics, grounding_report, grounding_runner
    from folio.evaluate.tables import print_tables
    from folio.evaluate.thresholds import parse_threshold

    thresholds = [parse_threshold(text, grounding_metrics.NAMES) for text in required]
    before, after = (grounding_runner.load(path) for path in paths)
    print_tables(output(), [grounding_report.comparison(before, after)])
    show_changes(grounding_report.changes(before, after))
    return thresholds_met(thresholds, grounding_metrics.figures(after.answers))


def _load(arguments: argparse.Namespace) -> tuple[list[Path], list[LabelledAnswer]]:
    """The files that the options name, and all of their answers. Raises UsageError."""
    from folio.evaluate import labelled_answers

    sources: list[Path] = list(arguments.judged or ())
    answers = [answer for path in sources for answer in labelled_answers.load_judged(path)]
    if arguments.faithbench:
        sources.append(arguments.faithbench)
        answers += labelled_answers.load_faithbench(arguments.faithbench)
    if arguments.summedits:
        sources.append(arguments.summedits)
        answers += labelled_answers.load_summedits(arguments.summedits)
    return sources, answers
