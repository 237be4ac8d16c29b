"""`folio evaluate` and evaluate.py: ask a set of questions, print the figures, compare runs; write a set."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from folio.cli.command import Parser, positive_int, run_command
from folio.console import complain, errors, output, progress_bar, say
from folio.errors import ModelError, UsageError, command, require_packages
from folio.shown_text import plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.evaluate.dataset import EvalSet
    from folio.evaluate.judge import Judge, JudgedAnswer
    from folio.evaluate.metrics import Figure, Threshold
    from folio.evaluate.runner import FailedQuestion, Run
    from folio.evaluate.tables import Table


# What the forms of an evaluation share: a part of a set; what differs, what failed, which thresholds were missed.

T = TypeVar("T")


def spread(items: Sequence[T], limit: int | None) -> list[T]:
    """At most this many of the items, at even distances."""
    if not limit or limit >= len(items):
        return list(items)
    step = len(items) / limit
    return [items[int(n * step)] for n in range(limit)]


def report_failures(failed: Sequence[FailedQuestion], succeeded: int, items: str = "questions") -> int:
    """Say which questions or answers a model failed on; the exit code: 1 where there are any."""
    if not failed:
        return 0
    named = ", ".join(one.question for one in failed)
    last = failed[-1]
    return complain(
        f"Failed: {len(failed)} of {succeeded + len(failed)} {items} ({named}). {last.happened}", last.remedy, 1
    )


def show_run(tables: Sequence[Table], differing: Sequence[str] | None, notes: Sequence[str]) -> None:
    """Print a run's tables and notes. differing: from the run it is compared with; None if there is none."""
    from folio.evaluate.tables import print_tables

    print_tables(output(), tables)
    if differing is not None:
        show_changes(differing)
    for note in notes:
        output().print(plain_line(note))


def show_written(paths: Sequence[Path]) -> None:
    """Print which files were written."""
    output().print(f"\nWritten: {', '.join(plain_line(str(path)) for path in paths)}")


def show_changes(differing: Sequence[str]) -> None:
    """Print how two runs differ in their configuration."""
    output().print("\nSame configuration." if not differing else "\nWhat differs:")
    for line in differing:
        output().print(f"  {plain_line(line)}")


def thresholds_met(thresholds: Sequence[Threshold], found: Mapping[str, Figure]) -> int:
    """Print the thresholds that are not met; the exit code: 1 if there are any."""
    from folio.evaluate.metrics import violations

    if not thresholds:
        return 0
    failed = violations(thresholds, found)
    for sentence in failed:
        errors().print(plain_line(sentence), style="bold red")
    if not failed:
        output().print("All thresholds were met.")
    return 1 if failed else 0


# evaluate.py --from-log and --judge: a set from rated answers, and how far a judging model agrees with people.

NOT_RATED = f"Rate answers: “Good answer” in the page, /good in the chat, or `{command('ask --feedback good')}`."


def make(app: App, path: Path) -> int:
    """Write the set; nothing that is there is overwritten. Raises UsageError, also if no answer is rated good."""
    from folio.evaluate import dataset
    from folio.evaluate.dataset import questions_from_log

    if path.exists():
        raise UsageError(f"{path} already exists.", "Give another name: -o FILE.")
    with closing(app.open_library()) as library:
        files = {paper.id: paper.file for paper in library.papers()}
        made = questions_from_log(app.query_log(library).entries(), files)
    if not made.questions:
        raise UsageError("The log has no answer that is rated good and cites a page, or is a refusal.", NOT_RATED)
    dataset.save(path, made.questions)
    shown = plain_line(str(path))
    output().print(f"Questions written to {shown}: {len(made.questions)}.")
    if made.bad:
        shows = f"`{command('log show NUMBER')}`"
        output().print(
            f"Rated bad, and left out because nobody has said where the answer is: {len(made.bad)}"
            f" ({_numbers(made.bad)}). {shows} shows one; add it to the set by hand."
        )
    if made.without_gold:
        output().print(
            "Rated good, and left out because they cite no page, or one of a paper that is gone:"
            f" {len(made.without_gold)} ({_numbers(made.without_gold)})."
        )
    output().print(f"To run them: {command('evaluate')} {shown}")
    return 0


def judge(app: App, limit: int | None) -> int:
    """Grade the answers that people rated, and print how far the model agrees. limit: at most this many of them."""
    from folio.evaluate import judge as judging
    from folio.evaluate.tables import print_tables

    with closing(app.open_library()) as library:
        rated = [(number, entry) for number, entry in app.query_log(library).entries() if entry.feedback]
    marked = [
        judging.MarkedAnswer(
            number,
            entry.standalone_question,
            entry.answer,
            tuple(source.quote for source in entry.sources),
            entry.feedback == "good",
        )
        for number, entry in rated
        if entry.sources
    ]
    if not marked:
        raise UsageError("The log has no rated answer that cites a page.", NOT_RATED)
    judge = answer_judge(app)
    app.models.announce()
    judged: list[JudgedAnswer] = []
    try:
        with progress_bar() as progress:
            judging.judge_marked(spread(marked, limit), judge, judged, progress)
    finally:  # what was graded before a failure is shown
        if judged:
            print_tables(output(), judging.agreement_tables(judged))
    if ungraded := sum(one.grade is None for one in judged):
        output().print(f"Answers that the model gave no grade: {ungraded}.")
    if without := len(rated) - len(marked):
        output().print(f"Rated answers that cite nothing, such as refusals, are not graded: {without}.")
    return 0


def answer_judge(app: App) -> Judge:
    """The chat model as a judge. Raises ModelError if it is not ready."""
    from folio.evaluate import judge as judging
    from folio.evaluate.question_writer import ask_with

    return judging.judge_with(ask_with(app.models.server, app.models.chat_model, judging.Grade))


def _numbers(numbers: tuple[int, ...], most: int = 10) -> str:
    more = ", ..." if len(numbers) > most else ""
    return f"{', '.join(map(str, sorted(numbers)[:most]))}{more}"


QUESTIONS = 50  # that --make writes
# The options that write a set, and what goes with them
WRITERS = {"make": ("number", "output"), "from_log": ("output",)}


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Measure search and answers on questions with known answers.",
        epilog="docs/evaluation-set.md shows the formats. docs/settings.md lists the settings.",
    )
    parser.add_argument("eval_set", nargs="?", type=Path, metavar="EVAL_SET", help="questions: a file, or a folder")
    parser.add_argument("--papers", type=Path, metavar="FOLDER", help="ask about these PDFs, in a separate index")
    parser.add_argument("--no-answers", action="store_true", help="measure search only, without answers")
    parser.add_argument("--limit", type=positive_int, metavar="N", help="take N of the questions, spread over the set")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the run, to compare it with another")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="folder for the report and its plot (default: evaluations/)"
    )
    parser.add_argument(
        "--compare",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="a saved run to compare with; without a set, two",
    )
    parser.add_argument(
        "--require",
        action="extend",
        nargs="+",
        metavar="THRESHOLD",
        help="exit with 1 if missed: recall@5=0.8 (at least), answerable_refused<=0.08 (at most)",
    )
    parser.add_argument(
        "--judge",
        action="store_true",
        help="let the chat model grade answers, 0 to 3; without a set, those that people rated, to see if it agrees",
    )
    parser.add_argument("--make", type=Path, metavar="PAPERS", help="write a set for these PDFs with the chat model")
    parser.add_argument(
        "-n", type=positive_int, dest="number", metavar="N", help=f"questions to write (default: {QUESTIONS})"
    )
    parser.add_argument("--from-log", action="store_true", help="write a set from the answers in the log rated good")
    parser.add_argument("-o", type=Path, dest="output", metavar="FILE", help="the set that --make or --from-log writes")
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "evaluate.py") -> int:
    """prog: what --help and errors of usage call the program."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    from folio.evaluate.metrics import parse_threshold

    _require_sense(arguments)
    if arguments.make:
        return _make(app, arguments)
    if arguments.from_log:
        return make(app, arguments.output or Path("log.questions.jsonl"))
    require_packages("evaluate", "Measuring", "scipy", "matplotlib")
    if arguments.judge and arguments.eval_set is None:
        return judge(app, arguments.limit)
    thresholds = [parse_threshold(text) for text in arguments.require or ()]
    if arguments.eval_set is None:
        return _compare(arguments.compare, thresholds)
    return _evaluate(app, arguments, thresholds)


def _require_sense(arguments: argparse.Namespace) -> None:
    """Raises UsageError for options that do not go together, or that lack what they need."""
    given = {name for name, value in vars(arguments).items() if value not in (None, False)}
    for writes, goes_with in WRITERS.items():
        if writes in given and (others := sorted(given - {writes, *goes_with})):
            raise UsageError(f"{_named(writes)} and {_named(others[0])} cannot be combined.", "Use one of them.")
    if not given & set(WRITERS) and (alone := sorted(given & {"number", "output"})):
        raise UsageError(f"{_named(alone[0])} needs --make.", f"Write one: {command('evaluate --make PAPERS -n 50')}.")
    if {"judge", "no_answers"} <= given:
        raise UsageError("--judge and --no-answers cannot be combined.", "Use one of them.")
    if "judge" in given and arguments.eval_set is None:
        if others := sorted(given - {"judge", "limit"}):
            raise UsageError(f"{_named(others[0])} needs a set of questions.", "Name the set before the options.")
        return
    if given & set(WRITERS) or (arguments.eval_set and len(arguments.compare or ()) < 2):
        return
    if arguments.eval_set:
        raise UsageError("A set and two saved runs were given.", "Give a set and one run, or two runs without a set.")
    if not arguments.compare:
        raise UsageError("No set of questions was given.", f"Try {command('evaluate benchmarks/sample.jsonl')}.")
    if len(arguments.compare) != 2:
        raise UsageError("--compare without a set needs two saved runs.", "Give both: --compare before.json now.json.")
    if others := sorted(given - {"compare", "require"}):
        raise UsageError(f"{_named(others[0])} needs a set of questions.", "Name the set before the options.")


def _named(name: str) -> str:
    known = {"number": "-n", "output": "-o", "eval_set": "a set of questions"}
    return known.get(name, f"--{name.replace('_', '-')}")


def _evaluate(app: App, arguments: argparse.Namespace, thresholds: Sequence[Threshold]) -> int:
    """Ask, print, write the report, compare, and check the thresholds."""
    from folio.evaluate import dataset, report, runner
    from folio.evaluate.metrics import figures

    before = runner.load(arguments.compare[0]) if arguments.compare else None
    asked = dataset.load(arguments.eval_set)
    if asked.documents and arguments.papers:
        raise UsageError(f"{arguments.eval_set} has its own texts.", "Leave out --papers.")
    asked = replace(asked, questions=tuple(spread(asked.questions, arguments.limit)))
    if arguments.judge and asked.relevance is not None:
        raise UsageError(f"{arguments.eval_set} judges documents, and has no answers.", "Leave out --judge.")
    run = ask(app, asked, papers=arguments.papers, answers=not arguments.no_answers, judged=arguments.judge)
    shown = report.tables(run)
    if before:
        shown.append(report.comparison(before, run))
    show_run(shown, report.changes(before, run) if before else None, run.notes)
    written = [*report.write(arguments.out or Path("evaluations"), run, shown)]
    if arguments.json:
        runner.save(arguments.json, run)
        written.append(arguments.json)
    show_written(written)
    met = thresholds_met(thresholds, figures(run.asked, run.stages[-1] if run.stages else ""))
    return max(met, report_failures(run.failed, len(run.asked)))


def ask(app: App, asked: EvalSet, *, papers: Path | None = None, answers: bool = True, judged: bool = False) -> Run:
    """Every question of a set, of the store that it is meant for: of these papers, its own texts, or the index.

    judged: let the chat model grade the answers.
    Raises FolioError where there is nothing to ask, and ModelError where a model failed on every question.
    """
    from datetime import UTC, datetime

    from folio.evaluate import dataset
    from folio.evaluate import runner as stores
    from folio.evaluate.runner import Runner

    judge = answer_judge(app) if judged else None
    if papers:
        app = stores.app_for_papers(app, papers)
        _ingest(app, papers)
    with progress_bar() as progress:
        ready = stores.open_text_store(app, asked, progress) if asked.documents else stores.open_paper_store(app)
        with ready as store:
            asked = dataset.resolved(asked, store.library)
            chat = answerer = None
            # Judgements of documents go with statements and keywords, which have no answer, or with follow-ups, which
            # are rewritten as for an answer.
            follow_up = any(question.history for question in asked.questions)
            if (answers and asked.relevance is None) or (follow_up and asked.relevance is not None):
                answerer = app.models.answerer(store.retriever)
            if answers and answerer and asked.relevance is None:
                from folio.answer.chat import Chat

                chat = Chat(store.retriever, answerer, top_k=app.top_k)
            app.models.announce()
            runner = Runner(asked, store.library, store.retriever, chat, answerer, judge)
            return runner.run(datetime.now(UTC), store.about, stores.relevant_settings(app), progress)


def _ingest(app: App, papers: Path) -> None:
    """Bring a folder's own store up to date with it. Raises UsageError for a folder without a PDF."""
    from folio.cli.show import IngestProgressBar
    from folio.ingest import discovery
    from folio.store import indexes

    found = discovery.find_pdfs([papers])
    if not found:
        raise UsageError(f"There are no PDFs in {papers}.", "Name the folder of the papers that the set asks about.")
    with indexes.writing(app.store_folder), IngestProgressBar(len(found)) as progress:
        files, outcomes = discovery.hash_files(found, progress)
        try:
            for outcome in app.ingest(files, progress, retry=frozenset()):
                outcomes.append(outcome)
                progress.done(outcome)
            outcomes += app.prune()
        finally:
            app.finish_ingest()
    for outcome in outcomes:
        if outcome.status == "failed":
            say(f"{outcome.file.name}: {' '.join(outcome.notes)}")


def _compare(paths: Sequence[Path], thresholds: Sequence[Threshold]) -> int:
    """Two saved runs; the thresholds are for the second."""
    from folio.evaluate import report, runner
    from folio.evaluate.metrics import figures
    from folio.evaluate.tables import print_tables

    before, after = (runner.load(path) for path in paths)
    print_tables(output(), [report.comparison(before, after)])
    show_changes(report.changes(before, after))
    return thresholds_met(thresholds, figures(after.asked, after.stages[-1] if after.stages else ""))


def _make(app: App, arguments: argparse.Namespace) -> int:
    """Write a set for a folder of papers. Nothing that is there is overwritten: it may have been looked through."""
    from folio.evaluate import dataset, question_writer
    from folio.evaluate import runner as stores

    papers: Path = arguments.make
    path: Path = arguments.output or Path(f"{papers.resolve().name}.questions.jsonl")
    number = arguments.number or QUESTIONS
    if path.exists():
        raise UsageError(f"{path} already exists.", "Give another name: -o FILE.")
    ask = question_writer.ask_with(app.models.server, app.models.chat_model)
    app = stores.app_for_papers(app, papers)
    _ingest(app, papers)
    library = app.open_library()
    questions: list[dataset.Question] = []
    try:
        with progress_bar() as progress:
            for question in question_writer.write_questions(library, ask, number):
                questions.append(question)
                dataset.save(path, questions, dataset.PENDING)  # what has been written is kept, whatever comes
                progress("Writing questions", len(questions), number)
    except (KeyboardInterrupt, ModelError):
        if questions:
            say(f"Questions written so far: {len(questions)}. They are kept in {path}.")
        raise
    finally:
        library.close()
    fewer = f" of {number}" if len(questions) < number else ""
    output().print(
        f"Questions written to {plain_line(str(path))}: {len(questions)}{fewer}, all `pending` until reviewed."
    )
    output().print(f"To run them: {command('evaluate')} {plain_line(str(path))} --papers {plain_line(str(papers))}")
    return 0
