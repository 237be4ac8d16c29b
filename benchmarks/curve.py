"""One-shot latency against the size of the collection, as a picture."""

from __future__ import annotations

import io
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT, DPI = 8.0, 4.5, 120  # inches, inches, dots an inch
FOLIO, PLAIN = "#1f5fa6", "#c46210"


@dataclass(frozen=True, slots=True)
class Point:
    """Whole processes at one size: seconds and peak megabytes."""

    chunks: int
    folio_s: float
    plain_s: float
    folio_mb: float
    plain_mb: float


def picture(points: Sequence[Point]) -> bytes:
    """A PNG of 8 x 4.5 inches at 120 dots an inch; both axes are logarithmic."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:  # its list of fonts is not for the home folder
        os.environ.setdefault("MPLCONFIGDIR", folder)
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    drawn = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, layout="constrained")
    FigureCanvasAgg(drawn)
    axes: Any = drawn.subplots()
    sizes = [point.chunks for point in points]
    series = (
        ("Folio", FOLIO, [p.folio_s for p in points], [p.folio_mb for p in points]),
        ("plain design", PLAIN, [p.plain_s for p in points], [p.plain_mb for p in points]),
    )
    for name, colour, seconds, megabytes in series:
        axes.plot(sizes, seconds, "o-", color=colour, label=name, linewidth=2)
        for size, second, megabyte in zip(sizes, seconds, megabytes, strict=True):
            shown = f"{second:.1f} s, {megabyte:,.0f} MB"
            axes.annotate(shown, (size, second), (-2, 7), textcoords="offset points", ha="right", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="passages in the index", ylabel="seconds, whole process")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
    axes.minorticks_off()
    low, high = min(seconds for _, _, own, _ in series for seconds in own), max(max(own) for _, _, own, _ in series)
    axes.set_ylim(low / 2, high * 2.5)
    axes.set_xlim(min(sizes) / 4, max(sizes) * 2)
    axes.set_title("One question, from the command to the passages")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", frameon=False)
    out = io.BytesIO()
    drawn.savefig(out, format="png")
    return out.getvalue()
