"""Reports a run: tables in the terminal, a dated Markdown file, and plots of the metrics and the refusal curve."""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from folio.errors import UsageError
from folio.evaluate import followups
from folio.evaluate.metrics import (
    ANSWERING,
    RANKING,
    UNITS,
    Figure,
    QuestionResult,
    difference,
    figure_name,
    figures,
    finest_unit,
    interval,
    latencies,
    refusal_curve,
)
from folio.evaluate.runner import Run
from folio.evaluate.tables import Table, as_markdown, markdown_cell
from folio.system.files import no_space, temporary_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WIDTH, HEIGHT, DPI = 12.0, 5.0, 120  # inches, inches, dots per inch; 1.5 times as wide with a curve
_STAGE_NAMES = {"bm25": "BM25 alone", "dense": "dense alone"}
_EARLIER_COLOURS = ("#d9d9d9", "#b5b5b5", "#a9c8e6", "#b9dcc0", "#e8cfa8")  # of the stages before the last, in order
_LAST_COLOUR = "#1f5fa6"  # of the last stage
_CURRENT_COLOUR = "#c46210"  # of the current threshold's point on the refusal curve


def stage_name(stage: str) -> str:
    """A stage's display name: "BM25 alone", "fused"."""
    return _STAGE_NAMES.get(stage, stage)


def unit_name(run: Run, unit: str) -> str:
    """A unit's display name: "passage", "page", "paper" or "document"."""
    return "document" if run.is_text and unit == "paper" else "passage" if unit == "chunk" else unit


def figure_label(figure: str) -> str:
    """A ranking metric's display name: "Recall@5", "MRR"."""
    return "MRR" if figure == "mrr" else figure.replace("recall", "Recall").replace("ndcg", "nDCG")


# Published nDCG@10 by set and stage: value, model, source.
PUBLISHED = {
    "scifact": {
        "bm25": (0.679, "BM25, one field (Anserini)", "BEIR regressions of Anserini and Pyserini; multi-field: 0.665"),
        "dense": (0.645, "all-MiniLM-L6-v2", "MTEB, Muennighoff et al. 2023, arXiv:2210.07316"),
    }
}
# The embedder of the published "dense" value
PUBLISHED_EMBEDDER = "all-MiniLM-L6-v2"
LARGE_GAP = 0.02  # a larger gap to the published value is marked

METRIC_LABELS = {
    "citation_rate": "sentences with a citation",
    "citation_accuracy": "citations on a gold page",
    "first_citation": "first citation on a gold page",
    "any_citation": "any citation on a gold page",
    "paper.citation_accuracy": "citations of a gold paper",
    "paper.first_citation": "first citation of a gold paper",
    "paper.any_citation": "any citation of a gold paper",
    "topics": "expected topics that the answer names",
    "gold_shown": "gold quote inside what is shown",
    "answer_words": "words shown",
    "quote_fidelity": "quotes that are verbatim on their page",
    "refusal_recall": "unanswerable questions that were refused",
    "refusal_precision": "refusals of unanswerable questions",
    "answerable_refused": "answerable questions that were refused",
    "grade": "grade by the local model, 0 to 3",
}
# The rows of the refusal table: the allowed share of answerable questions refused
CURVE_ROWS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3)

METRIC_DEFINITIONS = """\
Recall@k is the share of a question's targets that the first k passages have. A question has one target if any gold
entry is enough, one per paper or part if all are needed, and one per relevant document in a BEIR set. MRR is the mean
of 1 / rank of the first target found, or of the last one if a question needs all its targets. nDCG@10 discounts by
log2(rank + 1). A passage has a target if its text contains the quote, or the quote's first or last 60 %, ignoring
case, accents and punctuation, or if it has half of the answer's span. Gold pages are the pages of the file that
contain the quote; a passage or a citation counts for a page only if its text is on it. By page, ranks count passages;
by paper, each paper counts once, at its best passage. Intervals are 95 % bootstrap intervals over the questions;
differences are paired by question."""


def tables(run: Run) -> list[Table]:
    """The tables of a run, for everything that was measured."""
    by_stage = {stage: figures(run.asked, stage) for stage in run.stages}
    last = by_stage[run.stages[-1]] if run.stages else figures(run.asked, "")
    listed = [_ranking(run, by_stage, unit) for unit in UNITS if figure_name(unit, "mrr") in last]
    listed += _stage_gains(run, by_stage, last)
    listed += _published(run, by_stage)
    listed += _by_group(run, last, "type", lambda question: question.type)
    listed += _by_group(run, last, "difficulty", lambda question: question.difficulty)
    listed += _answers_by_difficulty(run)
    listed += [followups.table(run.resolution)] if run.resolution else []
    listed += _answering(last)
    listed += _curve(run.asked)
    times = latencies(question.timings_ms for question in run.asked)
    rows = tuple((name, f"{median:,.1f}", f"{late:,.1f}") for name, (median, late) in times.items())
    listed.append(Table("Milliseconds per question", ("stage", "p50", "p95"), rows))
    if run.failed:
        failures = tuple((failed.question, failed.happened) for failed in run.failed)
        listed.append(Table("Questions on which a model failed (not counted)", ("question", "why"), failures))
    if run.faults:
        problems = tuple((f.question, f.text, "counted" if f.counted else "not counted") for f in run.faults)
        listed.append(Table("Wrong gold entries", ("question", "problem", ""), problems))
    return listed


def comparison(before: Run, after: Run) -> Table:
    """Compare two runs on their common questions, with paired intervals. Raises UsageError if they have none."""
    after_by_id = {question.id: question for question in after.asked}
    pairs = [(question, after_by_id[question.id]) for question in before.asked if question.id in after_by_id]
    if not pairs:
        raise UsageError("The two runs have no question in common.", "Compare runs of the same set.")
    old = figures([question for question, _ in pairs], before.stages[-1] if before.stages else "")
    new = figures([question for _, question in pairs], after.stages[-1] if after.stages else "")
    title = f"{before.name} of {before.made:%Y-%m-%d %H:%M} against {after.name} of {after.made:%Y-%m-%d %H:%M}"
    return compared(title, "questions", old, new, _label, {"answerable_refused"})


def compared(
    title: str,
    counted: str,
    before: Mapping[str, Figure],
    after: Mapping[str, Figure],
    label: Callable[[str], str],
    lower_is_better: Container[str],
) -> Table:
    """The figures that two runs have in common, with paired intervals. counted: the items, "questions" or "answers"."""
    rows = []
    for name in (name for name in before if name in after):
        gap = difference(before[name], after[name])
        low, high = gap.interval
        verdict = "better" if (gap.after > gap.before) != (name in lower_is_better) else "worse"
        rows.append(
            (
                label(name),
                str(after[name].questions),
                f"{gap.before:.3f}",
                f"{gap.after:.3f}",
                f"{gap.after - gap.before:+.3f}",
                f"{low:+.3f} to {high:+.3f}",
                verdict if gap.is_clear else "not significant",
            )
        )
    return Table(title, ("metric", counted, "before", "after", "difference", "95 %", ""), tuple(rows))


def changes(before: Run, after: Run) -> list[str]:
    """How two runs differ in models, store and settings, one line each."""
    lines = []
    for old, new in ((before.models, after.models), (before.store, after.store), (before.settings, after.settings)):
        names = dict.fromkeys((*old, *new))
        lines += [f"{n}: {old.get(n, '-')} -> {new.get(n, '-')}" for n in names if old.get(n) != new.get(n)]
    return lines


def _label(name: str) -> str:
    if name in METRIC_LABELS:
        return METRIC_LABELS[name]
    unit, _, figure = name.rpartition(".")
    text = figure_label(figure)
    return f"{text} by {unit}" if unit else text


def _value(figure: Figure | None) -> str:
    return "" if figure is None or figure.value is None else f"{figure.value:.3f}"


def _interval(figure: Figure) -> str:
    low, high = interval(figure)
    return f"{low:.3f} to {high:.3f}"


def _ranking(run: Run, by_stage: dict[str, dict[str, Figure]], unit: str) -> Table:
    names = [figure_name(unit, name) for name in RANKING]
    last = by_stage[run.stages[-1]]
    rows = [(stage_name(stage), *(_value(metrics.get(name)) for name in names)) for stage, metrics in by_stage.items()]
    rows.append(("95 % of the last", *(_interval(last[name]) for name in names)))
    title = f"Found by {unit_name(run, unit)}, questions: {last[names[0]].questions}"
    return Table(title, ("stage", *map(_label, RANKING)), tuple(rows))


def _stage_gains(run: Run, by_stage: dict[str, dict[str, Figure]], last: dict[str, Figure]) -> list[Table]:
    """The difference between the last stage and each earlier one, by the finest unit."""
    unit = finest_unit(last)
    if unit is None or len(run.stages) < 2:
        return []
    rows = []
    for name in RANKING:
        cells = []
        for stage in run.stages[:-1]:
            gap = difference(by_stage[stage][figure_name(unit, name)], last[figure_name(unit, name)])
            low, high = gap.interval
            cells.append(f"{gap.after - gap.before:+.3f} ({low:+.3f} to {high:+.3f})")
        rows.append((_label(name), *cells))
    title = f"{stage_name(run.stages[-1]).capitalize()} by {unit_name(run, unit)}, less an earlier stage (95 %, paired)"
    return [Table(title, ("metric", *(f"less {stage_name(stage)}" for stage in run.stages[:-1])), tuple(rows))]


def _published(run: Run, by_stage: dict[str, dict[str, Figure]]) -> list[Table]:
    values = PUBLISHED.get(run.name, {}) if run.is_text else {}
    rows = []
    for stage, (value, model, source) in values.items():
        figure = by_stage.get(stage, {}).get("paper.ndcg@10")
        if figure is None or (stage == "dense" and PUBLISHED_EMBEDDER not in run.models.get("embedder", "")):
            continue
        gap = (figure.value or 0.0) - value
        gap_text = f"{gap:+.3f}" + (f" (over {LARGE_GAP})" if abs(gap) > LARGE_GAP else "")
        rows.append((stage_name(stage), f"{_value(figure)}", f"{value:.3f}", gap_text, model, source))
    head = ("stage", "here", "published", "gap", "model", "source")
    return [Table("nDCG@10 by document, compared with published values", head, tuple(rows))] if rows else []


def _by_group(
    run: Run, last: dict[str, Figure], group: str, of: Callable[[QuestionResult], str]
) -> list[Table]:
    """The ranking for each group of questions. of: a question's group."""
    unit = finest_unit(last)
    groups = list(dict.fromkeys(of(question) for question in run.asked if question.ranks))
    if unit is None or len(groups) < 2:
        return []
    names = [figure_name(unit, name) for name in RANKING]
    rows = []
    for each in groups:
        by_name = figures([question for question in run.asked if of(question) == each], run.stages[-1])
        if names[0] in by_name:
            rows.append((each or "-", str(by_name[names[0]].questions), *(_value(by_name[name]) for name in names)))
    title = f"{stage_name(run.stages[-1]).capitalize()} by {unit_name(run, unit)}, by {group} of question"
    return [Table(title, (group, "questions", *map(_label, RANKING)), tuple(rows))]


def _answers_by_difficulty(run: Run) -> list[Table]:
    """What was measured of the answers to questions of each difficulty."""
    levels = list(dict.fromkeys(question.difficulty for question in run.asked if question.answer))
    if len(levels) < 2:
        return []
    of_level = {level: [question for question in run.asked if question.difficulty == level] for level in levels}
    measured = {level: figures(questions, "") for level, questions in of_level.items()}
    rows = tuple(
        (_label(name), *(_value(measured[level].get(name)) for level in levels))
        for name in ANSWERING
        if any(name in by_name for by_name in measured.values())
    )
    return [Table("Answers by difficulty of question", ("metric", *(level or "-" for level in levels)), rows)]


def _answering(last: dict[str, Figure]) -> list[Table]:
    measured = [(name, last[name]) for name in ANSWERING if name in last]
    rows = tuple(
        (_label(name), _value(f), _interval(f), f"{f.numerator.sum():.0f} of {f.denominator.sum():.0f}")
        for name, f in measured
    )
    return [Table("Answers", ("metric", "share", "95 %", "count"), rows)] if rows else []


def _curve(results: Sequence[QuestionResult]) -> list[Table]:
    points = refusal_curve(results)
    rows = []
    for allowed in CURVE_ROWS if points else ():
        within = [point for point in points if point.answerable <= allowed]
        if not within:  # every threshold refuses more
            continue
        best = max(within, key=lambda point: (point.unanswerable, -point.answerable))
        rows.append((f"{allowed:.0%}", f"{best.threshold:.3f}", f"{best.answerable:.1%}", f"{best.unanswerable:.1%}"))
    head = ("answerable refused, at most", "threshold", "answerable refused", "unanswerable refused")
    return [Table("Refusals at other confidence thresholds", head, tuple(rows))] if rows else []


def write(folder: Path, run: Run, report_tables: Sequence[Table]) -> tuple[Path, Path]:
    """Write the dated report and its plot; returns their paths. Raises DiskFull."""
    name = f"{run.made:%Y-%m-%d-%H%M%S}-{re.sub(r'[^A-Za-z0-9._-]+', '-', run.name)}"
    report, plot = folder / f"{name}.md", folder / f"{name}.png"
    with no_space(folder):
        folder.mkdir(parents=True, exist_ok=True)
        plot.write_bytes(picture(run))
        report.write_text(markdown(run, report_tables, plot.name), encoding="utf-8")
    return report, plot


def markdown(run: Run, report_tables: Iterable[Table], picture_name: str) -> str:
    """The report as Markdown."""
    unanswerable = sum(not question.answerable for question in run.asked)
    failed = f", failed: {len(run.failed)}" if run.failed else ""
    counts = f"{len(run.asked)} questions, {unanswerable} of them unanswerable{failed}; {run.seconds:,.0f} s."
    parts = [f"# {markdown_cell(run.name)}, {run.made:%Y-%m-%d %H:%M} UTC", f"`{run.source}`: {counts}"]
    parts += [markdown_cell(note) for note in run.notes]
    parts.append(f"![The metrics of each stage]({picture_name})")
    parts += [as_markdown(table) for table in report_tables]
    configuration = (*run.models.items(), *run.store.items(), *run.settings.items())
    parts.append(as_markdown(Table("Configuration", ("name", "value"), configuration)))
    return "\n\n".join([*parts, "## How the metrics are defined", METRIC_DEFINITIONS]) + "\n"


def picture(run: Run) -> bytes:
    """A PNG of 12 x 5 inches at 120 dpi, or 18 x 5 if there is a refusal curve."""
    # On first use Matplotlib logs that it is building its font cache.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    # Keep the font cache out of the home folder.
    with temporary_folder("folio-plot-") as folder:
        before = os.environ.get("MPLCONFIGDIR")
        os.environ["MPLCONFIGDIR"] = before or str(folder)
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas

        if before is None:
            del os.environ["MPLCONFIGDIR"]

    # Ignore a matplotlibrc in the current folder: its text.usetex would run LaTeX.
    with matplotlib.rc_context(matplotlib.rcParamsDefault):
        points = refusal_curve(run.asked)
        canvas = Canvas(figsize=(WIDTH * (1.5 if points else 1), HEIGHT), dpi=DPI, layout="constrained")
        FigureCanvasAgg(canvas)
        axes: Any = canvas.subplots(1, 2 if points else 1, squeeze=False, width_ratios=[2, 1] if points else [1])[0]
        _draw_stages(axes[0], run)
        if points:
            _draw_curve(axes[1], run)
        out = io.BytesIO()
        canvas.savefig(out, format="png")
        return out.getvalue()


def _draw_stages(axes: Axes, run: Run) -> None:
    """A group of bars per metric, one bar per stage; the last stage with its confidence interval."""
    by_stage = {stage: figures(run.asked, stage) for stage in run.stages}
    last = by_stage[run.stages[-1]] if run.stages else {}
    unit = finest_unit(last)
    if unit is None:
        axes.set_title(f"{run.name}, {run.made:%Y-%m-%d}: no question has gold that could be found")
        return
    subject = f"gold {unit_name(run, unit)}s found by each stage, 95 % interval of the last"
    axes.set_title(f"{run.name}, {run.made:%Y-%m-%d}: {subject}")
    width = 0.84 / len(run.stages)
    for number, (stage, metrics) in enumerate(by_stage.items()):
        is_last = stage == run.stages[-1]
        ranking = [metrics[figure_name(unit, name)] for name in RANKING]
        values = [figure.value or 0.0 for figure in ranking]
        places = np.arange(len(RANKING)) - 0.42 + (number + 0.5) * width
        colour = _LAST_COLOUR if is_last else _EARLIER_COLOURS[number % len(_EARLIER_COLOURS)]
        axes.bar(places, values, 0.94 * width, label=stage_name(stage), color=colour)
        if is_last:
            ends = [interval(figure) for figure in ranking]
            low = [max(0.0, value - end.low) for value, end in zip(values, ends, strict=True)]
            high = [max(0.0, end.high - value) for value, end in zip(values, ends, strict=True)]
            axes.errorbar(places, values, [low, high], fmt="none", ecolor="black", capsize=3, linewidth=1)
        for place, value in zip(places, values, strict=True):
            value_text = f"{value:.2f}".removeprefix("0")
            axes.text(
                place, 0.012, value_text, ha="center", va="bottom", fontsize=8, color="white" if is_last else "black"
            )
    axes.set_xticks(np.arange(len(RANKING)), [figure_label(name) for name in RANKING])
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("mean over the questions")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=len(run.stages), frameon=False)


def _draw_curve(axes: Axes, run: Run) -> None:
    points = refusal_curve(run.asked)
    axes.step([p.answerable for p in points], [p.unanswerable for p in points], where="post", color=_LAST_COLOUR)
    answers = [(question.answerable, question.answer.refused) for question in run.asked if question.answer]
    current = [
        np.mean([refused for answerable, refused in answers if answerable is is_answerable])
        for is_answerable in (True, False)
    ]
    axes.plot(*current, "o", color=_CURRENT_COLOUR, markersize=9, label="as it answers now")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), title="Refusals at each threshold")
    axes.set(xlabel="share of answerable questions refused", ylabel="share of unanswerable questions refused")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", frameon=False)
