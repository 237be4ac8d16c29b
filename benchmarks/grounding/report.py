"""Figures of a run over labelled answers, tables in the terminal and a dated Markdown file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.grounding.answers import (
    BAD,
    CONSISTENT,
    EDITED,
    FALSE,
    GOOD,
    LABELS,
    NOT_IN_EVIDENCE,
    SUPPORTED,
    UNFAITHFUL,
)
from benchmarks.grounding.run import AnswerOutcome, GroundingRun, Shown, StatementResult
from folio.errors import UsageError
from folio.evaluate.metrics import Figure, interval
from folio.evaluate.report import compared
from folio.evaluate.tables import Table, as_markdown, markdown_cell
from folio.shown_text import name_line
from folio.system.files import no_space

# Share of the statements with this label that have one of these outcomes. A statement that is quoted is shown as the
# paper's own sentence, so none that is wrong is shown in that way.
_SHOWN: tuple[Shown, ...] = ("quoted", "reworded")
_SHARES: dict[str, tuple[str, tuple[Shown, ...]]] = {
    "true_shown": (SUPPORTED, _SHOWN),
    "true_quoted": (SUPPORTED, ("quoted",)),
    "false_shown": (FALSE, ("reworded",)),
    "not_in_evidence_shown": (NOT_IN_EVIDENCE, ("reworded",)),
    "unfaithful_shown": (UNFAITHFUL, ("reworded",)),
    "good_shown": (GOOD, _SHOWN),
    "bad_shown": (BAD, ("reworded",)),
}
NAMES = (*_SHARES, "whole", "dangling", "consistent_kept", "edited_caught", "balanced")
# Figures that are better when they are lower.
LOWER_IS_BETTER = frozenset({"false_shown", "not_in_evidence_shown", "unfaithful_shown", "bad_shown", "dangling"})


def figures(answers: Sequence[AnswerOutcome]) -> dict[str, Figure]:
    """All shares by name, each in [0, 1]; those that nothing measures are left out.

    The arrays have one number per answer, in the order given.
    """
    found = {
        name: _figure(answers, lambda answer, label=label, outcomes=outcomes: _share(answer, label, outcomes))  # type: ignore[misc]
        for name, (label, outcomes) in _SHARES.items()
    }
    found["whole"] = _figure(answers, lambda answer: (answer.is_whole, bool(answer.supported)))
    found["dangling"] = _figure(answers, _dangling)
    found["consistent_kept"] = _figure(answers, lambda answer: _among(answer, CONSISTENT, answer.is_kept))
    found["edited_caught"] = _figure(answers, lambda answer: _among(answer, EDITED, not answer.is_kept))
    found["balanced"] = _balanced(found["consistent_kept"], found["edited_caught"])
    return {name: figure for name, figure in found.items() if figure.questions}


def counted(answers: Iterable[AnswerOutcome], label: str) -> list[StatementResult]:
    """The statements with this label, each once."""
    return [s for answer in answers for s in answer.statements if s.label == label and s.counted]


def _share(answer: AnswerOutcome, label: str, outcomes: tuple[Shown, ...]) -> tuple[float, float]:
    labelled = counted([answer], label)
    return sum(statement.outcome in outcomes for statement in labelled), len(labelled)


def _dangling(answer: AnswerOutcome) -> tuple[float, float]:
    return sum(s.dangling for s in answer.statements), sum(s.is_shown for s in answer.statements)


def _among(answer: AnswerOutcome, label: str, holds: bool) -> tuple[float, float]:
    """Whether something holds, for the summaries with this label."""
    return float(answer.summary_label == label and holds), float(answer.summary_label == label)


def _balanced(kept: Figure, caught: Figure) -> Figure:
    """The mean of both shares, as a mean over all summaries in which either kind has half of the weight."""
    consistent, edited = kept.denominator.sum(), caught.denominator.sum()
    if not consistent or not edited:
        return Figure(np.zeros_like(kept.numerator), np.zeros_like(kept.numerator))
    return Figure(
        kept.numerator / consistent + caught.numerator / edited,
        kept.denominator / consistent + caught.denominator / edited,
    )


def _figure(answers: Sequence[AnswerOutcome], parts: Callable[[AnswerOutcome], tuple[float, float]]) -> Figure:
    table = np.array([parts(answer) for answer in answers], dtype=np.float64).reshape(-1, 2)
    return Figure(table[:, 0], table[:, 1])


# The report

FIGURE_LABELS = {
    "true_shown": "supported statements that are shown",
    "true_quoted": "supported statements shown as the paper's words",
    "false_shown": "false statements that are shown",
    "not_in_evidence_shown": "statements not in the evidence that are shown",
    "unfaithful_shown": "statements of answers rated unfaithful that are shown",
    "good_shown": "good statements of summaries that are shown",
    "bad_shown": "bad statements of summaries that are shown",
    "whole": "answers with every supported statement shown",
    "dangling": "shown statements whose subject is left out",
    "consistent_kept": "consistent summaries with nothing left out",
    "edited_caught": "edited summaries with a statement left out",
    "balanced": "mean of these two",
}
_OF_SUMMARIES = {CONSISTENT, EDITED}  # labels of a whole summary

ABOUT = """\
A statement is quoted if the paper's sentence is shown in its place, and reworded if it is shown, marked as the model's
words; the others are left out. A corrupted twin counts only for the statements that differ from its answer. An answer
is whole if every supported statement of it is shown. The statement that answers is the first supported one; nothing of
an answer is shown if at most filler is. A statement dangles if it is shown although its subject stood in one that is
left out. A rule is charged with a statement if it is the one that left it out. Intervals are 95 % bootstrap intervals
over the answers; differences are paired by answer."""


def tables(run: GroundingRun) -> list[Table]:
    """The tables of a run, for everything that its answers have."""
    answers = run.answers
    found = [_figures(answers), _statements(answers)]
    found += [
        *_answers(answers),
        *_by_kind(answers),
        *_rules(answers),
        *_summaries(answers),
        *_rules_on_summaries(answers),
    ]
    if run.failed:
        failures = tuple((failed.question, failed.happened) for failed in run.failed)
        found.append(Table("Answers on which a verifier failed (not counted)", ("answer", "why"), failures))
    return found


def comparison(before: GroundingRun, after: GroundingRun) -> Table:
    """Compare two runs on their common answers, with paired intervals. Raises UsageError if they have none."""
    later = {answer.id: answer for answer in after.answers}
    both = [(answer, later[answer.id]) for answer in before.answers if answer.id in later]
    if not both:
        raise UsageError("The two runs have no answer in common.", "Compare runs over the same labelled answers.")
    title = f"{before.name} of {before.made:%Y-%m-%d %H:%M} against {after.name} of {after.made:%Y-%m-%d %H:%M}"
    old, new = figures([old for old, _ in both]), figures([new for _, new in both])
    return compared(title, "answers", old, new, FIGURE_LABELS.__getitem__, LOWER_IS_BETTER)


def changes(before: GroundingRun, after: GroundingRun) -> list[str]:
    """How two runs differ in check and settings, one line each."""
    old, new = {"check": before.check, **before.settings}, {"check": after.check, **after.settings}
    return [f"{n}: {old.get(n, '-')} -> {new.get(n, '-')}" for n in {**old, **new} if old.get(n) != new.get(n)]


def write(folder: Path, run: GroundingRun, shown: Iterable[Table]) -> Path:
    """Write the dated report; returns its path. Raises DiskFull."""
    path = folder / f"{run.made:%Y-%m-%d-%H%M%S}-{re.sub(r'[^A-Za-z0-9._-]+', '-', run.name)}.md"
    sources = ", ".join(f"`{source}`" for source in run.sources)
    parts = [f"# {markdown_cell(run.name)}, {run.made:%Y-%m-%d %H:%M} UTC"]
    parts += [f"{sources}: {len(run.answers)} answers and summaries; {run.seconds:,.0f} s.", *run.notes]
    parts += [as_markdown(table) for table in shown]
    parts.append(as_markdown(Table("Configuration", ("name", "value"), (("check", run.check), *run.settings.items()))))
    with no_space(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join([*parts, "## How it is counted", ABOUT]) + "\n", encoding="utf-8")
    return path


# The tables


def _figures(answers: Sequence[AnswerOutcome]) -> Table:
    rows = []
    for name, figure in figures(answers).items():
        low, high = interval(figure)
        # "balanced" is a mean of shares, and has no count of its own.
        count = "" if name == "balanced" else f"{figure.numerator.sum():.0f} of {figure.denominator.sum():.0f}"
        rows.append((name, f"{figure.value:.3f}", f"{low:.3f} to {high:.3f}", count, FIGURE_LABELS[name]))
    return Table("Figures", ("figure", "share", "95 %", "count", ""), tuple(rows))


def _by_model(answers: Sequence[AnswerOutcome]) -> Iterator[tuple[str, list[AnswerOutcome]]]:
    """All answers, and those of each model if there are several."""
    yield "all", list(answers)
    models = list(dict.fromkeys(answer.model for answer in answers))
    for model in models if len(models) > 1 else ():
        yield name_line(model, 40) or "-", [answer for answer in answers if answer.model == model]


_OUTCOMES = ("statements", "shown", "quoted", "reworded", "left out")


def _outcomes(statements: Sequence[StatementResult]) -> tuple[str, ...]:
    """Cells for _OUTCOMES."""
    counts = Counter(statement.outcome for statement in statements)
    shown = _part(counts["quoted"] + counts["reworded"], len(statements))
    return (str(len(statements)), shown, *(str(counts[outcome]) for outcome in ("quoted", "reworded", "left out")))


def _part(some: int, all: int) -> str:
    """A count with its share."""
    return f"{some} ({some / all:.2f})" if all else "0"


def _statements(answers: Sequence[AnswerOutcome]) -> Table:
    rows = []
    for model, some in _by_model(answers):
        for label in LABELS:
            if statements := counted(some, label):
                rows.append((model, label, *_outcomes(statements)))
    return Table("Statements by label", ("model", "label", *_OUTCOMES), tuple(rows))


def _answers(answers: Sequence[AnswerOutcome]) -> list[Table]:
    rows = []
    for model, some in _by_model([answer for answer in answers if not answer.is_summary]):
        judged = [answer for answer in some if answer.supported]
        totals = (
            sum(answer.is_whole for answer in judged),
            sum(answer.is_gutted for answer in judged),
            sum(answer.is_replaced for answer in judged),
        )
        dangling = sum(statement.dangling for answer in some for statement in answer.statements)
        if judged:
            rows.append((model, str(len(judged)), *(_part(total, len(judged)) for total in totals), str(dangling)))
    head = ("model", "answers", "whole", "gutted", "replaced", "dangling statements")
    title = "Answers: every supported statement shown (whole), the one that answers left out (gutted), none (replaced)"
    return [Table(title, head, tuple(rows))] if rows else []


def _by_kind(answers: Sequence[AnswerOutcome]) -> list[Table]:
    rows = []
    for label in LABELS:
        statements = counted(answers, label)
        kinds = Counter(statement.kind for statement in statements)
        for kind, _ in kinds.most_common() if len(kinds) > 1 else ():
            rows.append((label, kind or "-", *_outcomes([s for s in statements if s.kind == kind])))
    return [Table("Statements by kind", ("label", "kind", *_OUTCOMES), tuple(rows))] if rows else []


def _rules(answers: Sequence[AnswerOutcome]) -> list[Table]:
    """What each rule costs on supported statements, and what it catches of the others."""
    by_label = {label: counted(answers, label) for label in LABELS if label not in _OF_SUMMARIES}
    by_label = {label: statements for label, statements in by_label.items() if statements}
    left_out = {label: Counter(s.rule for s in some if not s.is_shown) for label, some in by_label.items()}
    rules = sum(left_out.values(), Counter[str]()).most_common()
    rows = tuple(
        (rule or "-", *(_part(left_out[label][rule], len(statements)) for label, statements in by_label.items()))
        for rule, _ in rules
    )
    title = "Statements that each rule leaves out, by label (and their share of that label)"
    return [Table(title, ("rule", *by_label), rows)] if rows else []


# SummEdits


def _summaries(answers: Sequence[AnswerOutcome]) -> list[Table]:
    summaries = [answer for answer in answers if answer.summary_label]
    if not summaries:
        return []
    domains = list(dict.fromkeys(answer.domain for answer in summaries))
    rows = [("all", *_kept_and_caught(summaries))]
    rows += [
        (d or "-", *_kept_and_caught([s for s in summaries if s.domain == d])) for d in domains if len(domains) > 1
    ]
    head = ("domain", "consistent", "kept", "edited", "caught", "balanced")
    found = [Table("Summaries by domain", head, tuple(rows))]
    edits = Counter(edit for answer in summaries for edit in answer.edits)
    caught = Counter(edit for answer in summaries for edit in answer.edits if not answer.is_kept)
    if edits:
        kinds = tuple((edit, str(count), _part(caught[edit], count)) for edit, count in edits.most_common())
        found.append(Table("Edited summaries by kind of edit (some have several)", ("edit", "edited", "caught"), kinds))
    return found


def _kept_and_caught(summaries: Sequence[AnswerOutcome]) -> tuple[str, ...]:
    known = figures(summaries)
    consistent = sum(answer.summary_label == CONSISTENT for answer in summaries)
    kept, caught = (
        sum(answer.summary_label == label and answer.is_kept is whole for answer in summaries)
        for label, whole in ((CONSISTENT, True), (EDITED, False))
    )
    edited = len(summaries) - consistent
    balanced = f"{known['balanced'].value:.3f}" if "balanced" in known else ""
    return str(consistent), _part(kept, consistent), str(edited), _part(caught, edited), balanced


def _rules_on_summaries(answers: Sequence[AnswerOutcome]) -> list[Table]:
    """In how many summaries each rule leaves out a statement."""
    by_label = {label: [a for a in answers if a.summary_label == label] for label in (CONSISTENT, EDITED)}
    left_out = {
        label: Counter(rule for a in some for rule in dict.fromkeys(s.rule for s in a.statements if not s.is_shown))
        for label, some in by_label.items()
    }
    rules = sum(left_out.values(), Counter[str]()).most_common()
    rows = tuple(
        (rule or "-", *(_part(left_out[label][rule], len(some)) for label, some in by_label.items()))
        for rule, _ in rules
    )
    title = "Summaries of which each rule leaves out a statement (and their share)"
    return [Table(title, ("rule", *by_label), rows)] if rows else []
