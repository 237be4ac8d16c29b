"""A run -> its tables, in the terminal and in a dated Markdown report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from folio.errors import UsageError
from folio.evaluate.metrics import (
    ANSWERING,
    RANKING,
    UNITS,
    Asked,
    Figure,
    difference,
    figures,
    finest,
    interval,
    latencies,
    name_of,
    refusal_curve,
)
from folio.evaluate.plot import picture, shown_name, stage_name, unit_name
from folio.evaluate.runner import Run
from folio.files import no_space

if TYPE_CHECKING:
    from rich.console import Console

# nDCG@10 that others published, by set and stage: value, model, where it stands.
PUBLISHED = {
    "scifact": {
        "bm25": (0.679, "BM25, one field (Anserini)", "BEIR regressions of Anserini and Pyserini; multi-field: 0.665"),
        "dense": (0.645, "all-MiniLM-L6-v2", "MTEB, Muennighoff et al. 2023, arXiv:2210.07316"),
    }
}
# The model that the published figure of "dense" is of.
PUBLISHED_EMBEDDER = "all-MiniLM-L6-v2"
EXPLAINED_FROM = 0.02  # a gap that wants an explanation

LABELS = {
    "citation_rate": "sentences with a citation",
    "citation_accuracy": "citations on a gold page",
    "first_citation": "first citation on a gold page",
    "any_citation": "any citation on a gold page",
    "quote_fidelity": "quotes that stand word for word on their page",
    "refusal_recall": "unanswerable questions that were refused",
    "refusal_precision": "refusals of unanswerable questions",
    "answerable_refused": "answerable questions that were refused",
}
# Shares of answerable questions refused, for which the curve's table says what share of the others would be.
CURVE_ROWS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3)

ABOUT = """\
Recall@k is the share of what a question needs that the first k passages have: one thing where any gold entry will do,
a thing for each paper, or part, where every one is needed, each relevant document in a set of that kind. MRR is the
mean of 1 / rank of the first of them, of the last where every one is needed. nDCG@10 discounts by log2(rank + 1). A
passage has its gold when the folded quote, or its first or last 60 %, stands in its text, or when it has half of an
answer's span. Gold pages are those of the file on which the quote stands; a passage or a citation counts for one when
its text stands there. By page, ranks count passages; by paper, each paper counts once, where its best passage is.
Intervals are 95 % bootstrap intervals over the questions, those of differences paired by question."""


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text, for any way of showing them."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(run: Run) -> list[Table]:
    """Everything that a run has figures for."""
    by_stage = {stage: figures(run.asked, stage) for stage in run.stages}
    last = by_stage[run.stages[-1]] if run.stages else figures(run.asked, "")
    found = [_ranking(run, by_stage, unit) for unit in UNITS if name_of(unit, "mrr") in last]
    found += _against(run, by_stage, last)
    found += _published(run, by_stage)
    found += _by_type(run, last)
    found += _answering(last)
    found += _curve(run.asked)
    times = latencies(question.timings_ms for question in run.asked)
    rows = tuple((name, f"{median:,.1f}", f"{late:,.1f}") for name, (median, late) in times.items())
    found.append(Table("Milliseconds a question", ("stage", "p50", "p95"), rows))
    if run.failed:
        told = tuple((failed.question, failed.happened) for failed in run.failed)
        found.append(Table("Questions that a model failed on, which no figure counts", ("question", "why"), told))
    if run.faults:
        faulty = tuple((f.question, f.text, "counted" if f.counted else "not counted") for f in run.faults)
        found.append(Table("Faulty gold entries", ("question", "what is wrong", ""), faulty))
    return found


def comparison(before: Run, after: Run) -> Table:
    """The figures of two runs on the questions of both, with paired intervals.

    Raises UsageError when they have no question in common.
    """
    ours = {question.id: question for question in after.asked}
    both = [(question, ours[question.id]) for question in before.asked if question.id in ours]
    if not both:
        raise UsageError("The two runs have no question in common.", "Compare runs of one set.")
    old = figures([question for question, _ in both], before.stages[-1] if before.stages else "")
    new = figures([question for _, question in both], after.stages[-1] if after.stages else "")
    rows = []
    for name in (name for name in old if name in new):
        gap = difference(old[name], new[name])
        low, high = gap.interval
        verdict = "better" if (gap.after > gap.before) != (name == "answerable_refused") else "worse"
        rows.append(
            (
                _label(name),
                str(new[name].questions),
                f"{gap.before:.3f}",
                f"{gap.after:.3f}",
                f"{gap.after - gap.before:+.3f}",
                f"{low:+.3f} to {high:+.3f}",
                verdict if gap.is_clear else "within chance",
            )
        )
    title = f"{before.name} of {before.made:%Y-%m-%d %H:%M} against {after.name} of {after.made:%Y-%m-%d %H:%M}"
    return Table(title, ("figure", "questions", "before", "after", "difference", "95 %", ""), tuple(rows))


def changes(before: Run, after: Run) -> list[str]:
    """What two runs were made with that differs, a line each."""
    found = []
    for old, new in ((before.models, after.models), (before.store, after.store), (before.settings, after.settings)):
        names = dict.fromkeys((*old, *new))
        found += [f"{n}: {old.get(n, '-')} -> {new.get(n, '-')}" for n in names if old.get(n) != new.get(n)]
    return found


# The tables


def _label(name: str) -> str:
    unit, _, figure = name.rpartition(".")
    shown = LABELS.get(figure) or shown_name(figure)
    return f"{shown} by {unit}" if unit else shown


def _value(figure: Figure | None) -> str:
    return "" if figure is None or figure.value is None else f"{figure.value:.3f}"


def _between(figure: Figure) -> str:
    low, high = interval(figure)
    return f"{low:.3f} to {high:.3f}"


def _ranking(run: Run, by_stage: dict[str, dict[str, Figure]], unit: str) -> Table:
    names = [name_of(unit, name) for name in RANKING]
    last = by_stage[run.stages[-1]]
    rows = [(stage_name(stage), *(_value(found.get(name)) for name in names)) for stage, found in by_stage.items()]
    rows.append(("95 % of the last", *(_between(last[name]) for name in names)))
    title = f"Found by {unit_name(run, unit)}, questions: {last[names[0]].questions}"
    return Table(title, ("stage", *map(_label, RANKING)), tuple(rows))


def _against(run: Run, by_stage: dict[str, dict[str, Figure]], last: dict[str, Figure]) -> list[Table]:
    """What the last stage has over each earlier one, by the finest unit that there is."""
    unit = finest(last)
    if unit is None or len(run.stages) < 2:
        return []
    rows = []
    for name in RANKING:
        cells = []
        for stage in run.stages[:-1]:
            gap = difference(by_stage[stage][name_of(unit, name)], last[name_of(unit, name)])
            low, high = gap.interval
            cells.append(f"{gap.after - gap.before:+.3f} ({low:+.3f} to {high:+.3f})")
        rows.append((_label(name), *cells))
    title = f"{stage_name(run.stages[-1]).capitalize()} by {unit_name(run, unit)}, less an earlier stage (95 %, paired)"
    return [Table(title, ("figure", *(f"less {stage_name(stage)}" for stage in run.stages[:-1])), tuple(rows))]


def _published(run: Run, by_stage: dict[str, dict[str, Figure]]) -> list[Table]:
    known = PUBLISHED.get(run.name, {}) if run.is_text else {}
    rows = []
    for stage, (value, model, source) in known.items():
        figure = by_stage.get(stage, {}).get("paper.ndcg@10")
        if figure is None or (stage == "dense" and PUBLISHED_EMBEDDER not in run.models.get("embedder", "")):
            continue
        gap = (figure.value or 0.0) - value
        wants = f"{gap:+.3f}" + (" (over 0.02)" if abs(gap) > EXPLAINED_FROM else "")
        rows.append((stage_name(stage), f"{_value(figure)}", f"{value:.3f}", wants, model, source))
    head = ("stage", "here", "published", "gap", "of", "source")
    return [Table("nDCG@10 by document beside what was published", head, tuple(rows))] if rows else []


def _by_type(run: Run, last: dict[str, Figure]) -> list[Table]:
    unit = finest(last)
    types = list(dict.fromkeys(question.type for question in run.asked if question.ranks))
    if unit is None or len(types) < 2:
        return []
    names = [name_of(unit, name) for name in RANKING]
    rows = []
    for kind in types:
        found = figures([question for question in run.asked if question.type == kind], run.stages[-1])
        if names[0] in found:
            rows.append((kind or "-", str(found[names[0]].questions), *(_value(found[name]) for name in names)))
    title = f"{stage_name(run.stages[-1]).capitalize()} by {unit_name(run, unit)}, by type of question"
    return [Table(title, ("type", "questions", *map(_label, RANKING)), tuple(rows))]


def _answering(last: dict[str, Figure]) -> list[Table]:
    known = [(name, last[name]) for name in ANSWERING if name in last]
    rows = tuple((_label(name), _value(f), _between(f), f"{f.over.sum():.0f} of {f.of.sum():.0f}") for name, f in known)
    return [Table("Answers", ("figure", "share", "95 %", "count"), rows)] if rows else []


def _curve(asked: Sequence[Asked]) -> list[Table]:
    points = refusal_curve(asked)
    rows = []
    for allowed in CURVE_ROWS if points else ():
        within = [point for point in points if point.answerable <= allowed]
        if not within:  # more than that is refused whatever the threshold
            continue
        best = max(within, key=lambda point: (point.unanswerable, -point.answerable))
        rows.append((f"{allowed:.0%}", f"{best.threshold:.3f}", f"{best.answerable:.1%}", f"{best.unanswerable:.1%}"))
    head = ("at most refused of the answerable", "below a confidence of", "refused of them", "of the unanswerable")
    return [Table("What another threshold would refuse", head, tuple(rows))] if rows else []


# Showing and writing


def show(console: Console, shown: Iterable[Table]) -> None:
    """Tables in a terminal."""
    from rich.table import Table as RichTable
    from rich.text import Text

    from folio.console import plain

    for table in shown:
        drawn = RichTable(box=None, pad_edge=False, header_style="bold")
        for place, name in enumerate(table.head):
            numbers = place > 0 and all(_is_number(row[place]) for row in table.rows)
            drawn.add_column(name, justify="right" if numbers else "left", overflow="fold")
        for row in table.rows:
            drawn.add_row(*(Text(plain(cell)) for cell in row))
        console.print(Text(plain(f"\n{table.title}"), style="bold"))
        console.print(drawn)


def write(folder: Path, run: Run, shown: Sequence[Table]) -> tuple[Path, Path]:
    """Write the dated report and its picture; returns where they are. Raises DiskFull."""
    name = f"{run.made:%Y-%m-%d-%H%M%S}-{re.sub(r'[^A-Za-z0-9._-]+', '-', run.name)}"
    report, drawn = folder / f"{name}.md", folder / f"{name}.png"
    with no_space(folder):
        folder.mkdir(parents=True, exist_ok=True)
        drawn.write_bytes(picture(run))
        report.write_text(markdown(run, shown, drawn.name), encoding="utf-8")
    return report, drawn


def markdown(run: Run, shown: Iterable[Table], picture_name: str) -> str:
    """The report."""
    unanswerable = sum(not question.answerable for question in run.asked)
    failed = f", failed besides: {len(run.failed)}" if run.failed else ""
    counts = f"questions: {len(run.asked)}, without an answer: {unanswerable}{failed}; {run.seconds:,.0f} s."
    parts = [f"# {_cell(run.name)}, {run.made:%Y-%m-%d %H:%M} UTC", f"`{run.source}`: {counts}"]
    parts += [_cell(note) for note in run.notes]
    parts.append(f"![The figures of each stage]({picture_name})")
    parts += [_table(table) for table in shown]
    made = (*run.models.items(), *run.store.items(), *run.settings.items())
    parts.append(_table(Table("Made with", ("what", "value"), made)))
    return "\n\n".join([*parts, "## How it is counted", ABOUT]) + "\n"


def _table(table: Table) -> str:
    numbers = [all(_is_number(row[place]) for row in table.rows) for place in range(len(table.head))]
    rule = ["---:" if place and number else "---" for place, number in enumerate(numbers)]
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in (table.head, rule, *table.rows)]
    return f"## {_cell(table.title)}\n\n" + "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _is_number(cell: str) -> bool:
    return not cell or cell.lstrip("+-")[:1].isdigit()
