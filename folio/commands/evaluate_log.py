"""evaluate.py --from-log and --judge: a set from rated answers, and how far a judging model agrees with people."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.commands.evaluation_output import spread
from folio.errors import command

if TYPE_CHECKING:
    from folio.app import App
    from folio.evaluate.answer_judge import Judge, JudgedAnswer

NOT_RATED = f"Rate answers: “Good answer” in the page, /good in the chat, or `{command('ask --feedback good')}`."


def make(app: App, path: Path) -> int:
    """Write the set; nothing that is there is overwritten. Raises UsageError, also if no answer is rated good."""
    from folio.console import output
    from folio.errors import UsageError
    from folio.evaluate import dataset
    from folio.evaluate.log_set import questions_from_log
    from folio.shown_text import plain_line

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
    from folio.console import output, progress_bar
    from folio.errors import UsageError
    from folio.evaluate import answer_judge as judging
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
    from folio.evaluate import answer_judge as judging
    from folio.evaluate.question_writer import ask_with

    return judging.judge_with(ask_with(app.models.server, app.models.chat_model, judging.Grade))


def _numbers(numbers: tuple[int, ...], most: int = 10) -> str:
    more = ", ..." if len(numbers) > most else ""
    return f"{', '.join(map(str, sorted(numbers)[:most]))}{more}"
