"""`folio evaluate` and evaluate.py: asks the questions of a set, prints metrics, compares runs, and writes sets."""

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


T = TypeVar("T")

QUESTIONS = 50  # written by --make
# Options that write a set -> the options that may be combined with them
WRITERS = {"make": ("number", "output"), "from_log": ("output",)}
NOT_RATED = f"Rate answers: “Good answer” in the page, /good in the chat, or `{command('ask --feedback good')}`."


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Measure search and answers on questions with known answers.",
        epilog="docs/evaluation-set.md shows the formats. docs/settings.md lists the settings.",
    )
    parser.add_argument("eval_set", nargs="?", type=Path, metavar="EVAL_SET", help="questions: a file, or a folder")
    parser.add_argument("--papers", type=Path, metavar="FOLDER", help="ask about these PDFs, in a separate index")
    project = "search only papers of this project, or collection, and leave out questions that need others"
    parser.add_argument("--project", action="append", metavar="NAME", help=project)
    parser.add_argument("--no-answers", action="store_true", help="measure search only, without answers")
    parser.add_argument("--limit", type=positive_int, metavar="N", help="ask N of the questions, spread over the set")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the run, to compare it with others")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="folder for the report and its plot (default: evaluations/)"
    )
    parser.add_argument(
        "--compare",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="a saved run to compare with; without a set, two saved runs",
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
        help="let the chat model grade answers, 0 to 3; without a set, the rated answers, to see if the model agrees",
    )
    parser.add_argument("--make", type=Path, metavar="PAPERS", help="write a set for these PDFs with the chat model")
    parser.add_argument(
        "-n", type=positive_int, dest="number", metavar="N", help=f"questions to write (default: {QUESTIONS})"
    )
    from_log = "write a set from the log: from answers rated good, and from citations that were opened"
    parser.add_argument("--from-log", action="store_true", help=from_log)
    parser.add_argument("-o", type=Path, dest="output", metavar="FILE", help="file for --make or --from-log to write")
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "evaluate.py") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    from folio.evaluate.metrics import parse_threshold

    _check_options(arguments)
    if arguments.make:
        return _write_set(app, arguments)
    if arguments.from_log:
        return _write_log_set(app, arguments.output or Path("log.questions.jsonl"))
    require_packages("evaluate", "Measuring", "scipy", "matplotlib")
    if arguments.judge and arguments.eval_set is None:
        return _judge_log(app, arguments.limit)
    thresholds = [parse_threshold(text) for text in arguments.require or ()]
    if arguments.eval_set is None:
        return _compare(arguments.compare, thresholds)
    return _evaluate(app, arguments, thresholds)


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that cannot be combined, or that need another one."""
    given = {name for name, value in vars(arguments).items() if value not in (None, False)}
    for writer, allowed in WRITERS.items():
        if writer in given and (others := sorted(given - {writer, *allowed})):
            raise UsageError(f"{_named(writer)} and {_named(others[0])} cannot be combined.", "Use one of them.")
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
    special = {"number": "-n", "output": "-o", "eval_set": "a set of questions"}
    return special.get(name, f"--{name.replace('_', '-')}")


def _evaluate(app: App, arguments: argparse.Namespace, thresholds: Sequence[Threshold]) -> int:
    """Ask the questions, print the metrics, write the report, compare, and check the thresholds."""
    from folio.evaluate import dataset, report, runner
    from folio.evaluate.metrics import figures

    before = runner.load(arguments.compare[0]) if arguments.compare else None
    questions = dataset.load(arguments.eval_set)
    if questions.documents and arguments.papers:
        raise UsageError(f"{arguments.eval_set} has its own texts.", "Leave out --papers.")
    if arguments.project and (questions.documents or arguments.papers):
        raise UsageError("Only papers of the index are in a project.", "Leave out --project.")
    if arguments.judge and questions.relevance is not None:
        raise UsageError(f"{arguments.eval_set} judges documents, and has no answers.", "Leave out --judge.")
    run = ask(
        app,
        questions,
        papers=arguments.papers,
        projects=arguments.project or (),
        limit=arguments.limit,
        answers=not arguments.no_answers,
        judged=arguments.judge,
    )
    tables = report.tables(run)
    if before:
        tables.append(report.comparison(before, run))
    show_run(tables, report.changes(before, run) if before else None, run.notes)
    paths = [*report.write(arguments.out or Path("evaluations"), run, tables)]
    if arguments.json:
        runner.save(arguments.json, run)
        paths.append(arguments.json)
    show_written(paths)
    code = thresholds_met(thresholds, figures(run.asked, run.stages[-1] if run.stages else ""))
    return max(code, report_failures(run.failed, len(run.asked)))


def spread(items: Sequence[T], limit: int | None) -> list[T]:
    """At most this many of the items, at even distances."""
    if not limit or limit >= len(items):
        return list(items)
    step = len(items) / limit
    return [items[int(n * step)] for n in range(limit)]


def show_run(tables: Sequence[Table], changes: Sequence[str] | None, notes: Sequence[str]) -> None:
    """Print a run's tables and notes. changes: from the run it is compared with; None if there is none."""
    from folio.evaluate.tables import print_tables

    print_tables(output(), tables)
    if changes is not None:
        show_changes(changes)
    for note in notes:
        output().print(plain_line(note))


def show_written(paths: Sequence[Path]) -> None:
    """Print the files that were written."""
    output().print(f"\nWritten: {', '.join(plain_line(str(path)) for path in paths)}")


def show_changes(changes: Sequence[str]) -> None:
    """Print how the configurations of two runs differ."""
    output().print("\nWhat differs:" if changes else "\nSame configuration.")
    for line in changes:
        output().print(f"  {plain_line(line)}")


def thresholds_met(thresholds: Sequence[Threshold], metrics: Mapping[str, Figure]) -> int:
    """Print the thresholds that are missed; returns the exit code: 1 if there are any."""
    from folio.evaluate.metrics import violations

    if not thresholds:
        return 0
    missed = violations(thresholds, metrics)
    for sentence in missed:
        errors().print(plain_line(sentence), style="bold red")
    if not missed:
        output().print("All thresholds were met.")
    return 1 if missed else 0


def report_failures(failed: Sequence[FailedQuestion], succeeded: int, items: str = "questions") -> int:
    """Print the questions or answers that a model failed on; returns the exit code: 1 if there are any."""
    if not failed:
        return 0
    named = ", ".join(question.question for question in failed)
    happened = f"Failed: {len(failed)} of {succeeded + len(failed)} {items} ({named}). {failed[-1].happened}"
    return complain(happened, failed[-1].remedy, 1)


def ask(
    app: App,
    asked: EvalSet,
    *,
    papers: Path | None = None,
    projects: Sequence[str] = (),
    limit: int | None = None,
    answers: bool = True,
    judged: bool = False,
) -> Run:
    """Ask the questions of a set about these papers, the set's own texts, or the index.

    projects: search only their papers, and ask only what these can answer. limit: the most questions. judged: let the
    chat model grade the answers. Raises FolioError if there is nothing to ask about, and ModelError if a model failed
    on every question.
    """
    from datetime import UTC, datetime

    from folio.evaluate import dataset
    from folio.evaluate import runner as stores
    from folio.evaluate.runner import Runner
    from folio.search.filters import EVERYTHING, PaperFilter

    judge = _answer_judge(app) if judged else None
    if papers:
        app = stores.app_for_papers(app, papers)
        _ingest(app, papers)
    with progress_bar() as progress:
        ready = stores.open_text_store(app, asked, progress) if asked.documents else stores.open_paper_store(app)
        with ready as store:
            asked, chosen, about = dataset.resolved(asked, store.library), EVERYTHING, store.about
            if projects:
                chosen = store.retriever.select(PaperFilter.parse(projects=projects))
                asked = dataset.within(asked, stores.files_of(store.library, chosen.papers or ()))
                about = {**about, "project": ", ".join(projects)}
            asked = replace(asked, questions=tuple(spread(asked.questions, limit)))
            chat = answerer = None
            # A set that judges documents asks for no answers, but its follow-ups are rewritten by the answerer.
            has_follow_ups = any(question.history for question in asked.questions)
            if asked.relevance is not None and has_follow_ups:
                answerer = app.models.answerer(store.retriever)
            if asked.relevance is None and answers:
                from folio.answer.chat import Chat

                answerer = app.models.answerer(store.retriever)
                chat = Chat(store.retriever, answerer, top_k=app.top_k, papers=chosen.papers, scope=chosen.scope)
            app.models.announce()
            runner = Runner(asked, store.library, store.retriever, chat, answerer, judge, chosen.papers)
            return runner.run(datetime.now(UTC), about, stores.relevant_settings(app), progress)


def _ingest(app: App, papers: Path) -> None:
    """Bring the separate index of a folder up to date. Raises UsageError for a folder without a PDF."""
    from folio.cli.progress import IngestProgressBar
    from folio.ingest import discovery
    from folio.store import indexes

    pdfs = discovery.find_pdfs([papers])
    if not pdfs:
        raise UsageError(f"There are no PDFs in {papers}.", "Name the folder of the papers that the set asks about.")
    with indexes.writing(app.store_folder), IngestProgressBar(len(pdfs)) as progress:
        files, outcomes = discovery.hash_files(pdfs, progress)
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
    """Compare two saved runs; the thresholds are for the second."""
    from folio.evaluate import report, runner
    from folio.evaluate.metrics import figures
    from folio.evaluate.tables import print_tables

    before, after = (runner.load(path) for path in paths)
    print_tables(output(), [report.comparison(before, after)])
    show_changes(report.changes(before, after))
    return thresholds_met(thresholds, figures(after.asked, after.stages[-1] if after.stages else ""))


def _write_set(app: App, arguments: argparse.Namespace) -> int:
    """Write a set for a folder of papers. An existing file is not overwritten: a person may have reviewed it."""
    from folio.evaluate import dataset, question_writer
    from folio.evaluate import runner as stores

    papers: Path = arguments.make
    path: Path = arguments.output or Path(f"{papers.resolve().name}.questions.jsonl")
    number = arguments.number or QUESTIONS
    if path.exists():
        raise UsageError(f"{path} already exists.", "Give another name: -o FILE.")
    ask = question_writer.ask_with(app.models.chat_server, app.models.chat_model)
    app = stores.app_for_papers(app, papers)
    _ingest(app, papers)
    library = app.open_library()
    questions: list[dataset.Question] = []
    try:
        with progress_bar() as progress:
            for question in question_writer.write_questions(library, ask, number):
                questions.append(question)
                dataset.save(path, questions, dataset.PENDING)  # after each question, so that a failure loses none
                progress("Writing questions", len(questions), number)
    except (KeyboardInterrupt, ModelError):
        if questions:
            say(f"Questions written so far: {len(questions)}. They are in {path}.")
        raise
    finally:
        library.close()
    fewer = f" of {number}" if len(questions) < number else ""
    output().print(
        f"Questions written to {plain_line(str(path))}: {len(questions)}{fewer}, all `pending` until reviewed."
    )
    output().print(f"To run them: {command('evaluate')} {plain_line(str(path))} --papers {plain_line(str(papers))}")
    return 0


def _write_log_set(app: App, path: Path) -> int:
    """Write a set from the answers in the log that were rated good.

    Raises UsageError if the file exists, or if no answer is rated good.
    """
    from folio.evaluate import dataset
    from folio.evaluate.dataset import questions_from_log

    if path.exists():
        raise UsageError(f"{path} already exists.", "Give another name: -o FILE.")
    with closing(app.open_library()) as library:
        files = {paper.id: paper.file for paper in library.papers()}
        log = app.query_log(library)
        log_set = questions_from_log(log.entries(), files, log.opened())
    if not log_set.questions:
        happened = "The log has no answer that is rated good and cites a page, or is a refusal, and no opened citation."
        raise UsageError(happened, NOT_RATED)
    dataset.save(path, log_set.questions)
    shown = plain_line(str(path))
    output().print(f"Questions written to {shown}: {len(log_set.questions)}.")
    if log_set.opened:
        output().print(f"Not rated, and known only by citations that were opened, which is weak: {log_set.opened}.")
    if log_set.bad:
        output().print(
            f"Rated bad, and left out because the right page is not known: {len(log_set.bad)}"
            f" ({_numbers(log_set.bad)}). `{command('log show NUMBER')}` shows one; add it to the set by hand."
        )
    if log_set.without_gold:
        output().print(
            "Rated good, and left out because they cite no page, or only removed papers:"
            f" {len(log_set.without_gold)} ({_numbers(log_set.without_gold)})."
        )
    output().print(f"To run them: {command('evaluate')} {shown}")
    return 0


def _numbers(numbers: tuple[int, ...], most: int = 10) -> str:
    more = ", ..." if len(numbers) > most else ""
    return f"{', '.join(map(str, sorted(numbers)[:most]))}{more}"


def _judge_log(app: App, limit: int | None) -> int:
    """Let the model grade at most `limit` of the answers that people rated, and print how often it agrees."""
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
    judge = _answer_judge(app)
    app.models.announce()
    judged: list[JudgedAnswer] = []
    try:
        with progress_bar() as progress:
            judging.judge_marked(spread(marked, limit), judge, judged, progress)
    finally:  # after a failure, the grades so far are shown
        if judged:
            print_tables(output(), judging.agreement_tables(judged))
    if ungraded := sum(answer.grade is None for answer in judged):
        output().print(f"Answers that the model gave no grade: {ungraded}.")
    if without := len(rated) - len(marked):
        output().print(f"Rated answers that cite nothing, such as refusals, are not graded: {without}.")
    return 0


def _answer_judge(app: App) -> Judge:
    """The chat model as a judge. Raises ModelError if it is not ready."""
    from folio.evaluate import judge as judging
    from folio.evaluate.question_writer import ask_with

    return judging.judge_with(ask_with(app.models.chat_server, app.models.chat_model, judging.Grade))
