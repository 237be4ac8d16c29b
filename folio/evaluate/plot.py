"""Plots a run: the metrics of each stage, and the refusal curve over confidence thresholds."""

from __future__ import annotations

import io
import logging
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from folio.evaluate.metrics import RANKING, figure_name, figures, finest_unit, interval, refusal_curve
from folio.evaluate.runner import Run
from folio.temporary import temporary_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT, DPI = 12.0, 5.0, 120  # inches, inches, dots per inch; 1.5 times as wide with a curve
_NAMES = {"bm25": "BM25 alone", "dense": "dense alone"}
# For the earlier stages in order, for the last, and for the current point on the curve.
_COLOURS, _LAST, _NOW = ("#d9d9d9", "#b5b5b5", "#a9c8e6", "#b9dcc0", "#e8cfa8"), "#1f5fa6", "#c46210"


def stage_name(stage: str) -> str:
    """A stage's display name: "BM25 alone", "fused"."""
    return _NAMES.get(stage, stage)


def unit_name(run: Run, unit: str) -> str:
    """A unit's display name: "passage", "page", "paper" or "document"."""
    return "document" if run.is_text and unit == "paper" else "passage" if unit == "chunk" else unit


def figure_label(figure: str) -> str:
    """A ranking metric's display name: "Recall@5", "MRR"."""
    return "MRR" if figure == "mrr" else figure.replace("recall", "Recall").replace("ndcg", "nDCG")


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
        from matplotlib.figure import Figure

        if before is None:
            del os.environ["MPLCONFIGDIR"]

    # Ignore a matplotlibrc in the current folder: its text.usetex would run LaTeX.
    with matplotlib.rc_context(matplotlib.rcParamsDefault):
        points = refusal_curve(run.asked)
        drawn = Figure(figsize=(WIDTH * (1.5 if points else 1), HEIGHT), dpi=DPI, layout="constrained")
        FigureCanvasAgg(drawn)
        axes: Any = drawn.subplots(1, 2 if points else 1, squeeze=False, width_ratios=[2, 1] if points else [1])[0]
        _draw_stages(axes[0], run)
        if points:
            _draw_curve(axes[1], run)
        out = io.BytesIO()
        drawn.savefig(out, format="png")
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
        axes.bar(
            places, values, 0.94 * width, label=stage_name(stage), color=_LAST if is_last else _COLOURS[number % 5]
        )
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
    axes.step([p.answerable for p in points], [p.unanswerable for p in points], where="post", color=_LAST)
    answers = [(question.answerable, question.answer.refused) for question in run.asked if question.answer]
    now = [
        np.mean([refused for answerable, refused in answers if answerable is is_answerable])
        for is_answerable in (True, False)
    ]
    axes.plot(*now, "o", color=_NOW, markersize=9, label="as it answers now")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), title="Refusals at each threshold")
    axes.set(xlabel="share of answerable questions refused", ylabel="share of unanswerable questions refused")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", frameon=False)
