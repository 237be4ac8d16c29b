"""The chart of one-shot latency against index size."""

from __future__ import annotations

import io
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT, DPI = 8.0, 4.5, 120  # inches, inches, dots per inch
FOLIO_COLOUR, PLAIN_COLOUR = "#1f5fa6", "#c46210"


@dataclass(frozen=True, slots=True)
class Point:
    """Whole processes at one index size: seconds and peak megabytes."""

    chunks: int
    folio_s: float
    plain_s: float
    folio_mb: float
    plain_mb: float


def draw_chart(points: Sequence[Point]) -> bytes:
    """A PNG of WIDTH x HEIGHT inches at DPI; both axes are logarithmic."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:  # keeps matplotlib's font cache out of the home folder
        os.environ.setdefault("MPLCONFIGDIR", folder)
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots()
    sizes = [point.chunks for point in points]
    series = (
        ("Folio", FOLIO_COLOUR, [p.folio_s for p in points], [p.folio_mb for p in points]),
        ("plain design", PLAIN_COLOUR, [p.plain_s for p in points], [p.plain_mb for p in points]),
    )
    for name, colour, seconds, megabytes in series:
        axes.plot(sizes, seconds, "o-", color=colour, label=name, linewidth=2)
        for size, second, megabyte in zip(sizes, seconds, megabytes, strict=True):
            label = f"{second:.1f} s, {megabyte:,.0f} MB"
            axes.annotate(label, (size, second), (-2, 7), textcoords="offset points", ha="right", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="passages in the index", ylabel="seconds, whole process")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
    axes.minorticks_off()
    all_seconds = [second for _, _, seconds, _ in series for second in seconds]
    axes.set_ylim(min(all_seconds) / 2, max(all_seconds) * 2.5)
    axes.set_xlim(min(sizes) / 4, max(sizes) * 2)
    axes.set_title("One question, from the command to the passages")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", frameon=False)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()
