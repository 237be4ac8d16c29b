"""The tables of a run, in the terminal, in Markdown and as a picture."""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pytest
from rich.console import Console

from folio.errors import UsageError
from folio.evaluate.metrics import AnswerResult, CitationResult, QuestionResult
from folio.evaluate.relevance import GoldProblem
from folio.evaluate.report import DPI, HEIGHT, WIDTH, changes, comparison, picture, tables, write
from folio.evaluate.runner import FailedQuestion, Run
from folio.evaluate.tables import Table, as_markdown, print_tables
from tests.helpers.golden import check_golden

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
UNITS = ("chunk", "page", "paper")
Pixels = npt.NDArray[np.uint8]


def asked(
    id: str, bm25: int | None, last: int | None, type: str = "factual", answer: AnswerResult | None = None
) -> QuestionResult:
    """A question found by each stage at this rank, in every unit."""
    ranks = {"bm25": dict.fromkeys(UNITS, (bm25,)), "reranked": dict.fromkeys(UNITS, (last,))}
    gains, timings = dict.fromkeys(UNITS, (1.0,)), {"embed": 10.0, "bm25": 2.0}
    return QuestionResult(id, type, True, False, gains, ranks, timings, answer)


def unanswerable(id: str, answer: AnswerResult | None = None) -> QuestionResult:
    ranks: dict[str, dict[str, tuple[int | None, ...]]] = {"bm25": {}, "reranked": {}}
    return QuestionResult(id, "none", False, False, {}, ranks, {"embed": 20.0, "bm25": 2.0}, answer)


def small_run(*questions: QuestionResult, **more: object) -> Run:
    run = Run(
        name="small",
        made=NOON,
        source="sets/small.jsonl",
        is_text=False,
        models={"embedder": "all-MiniLM-L6-v2 (built in)", "reranker": "built in"},
        store={"papers": "2"},
        settings={"TOP_K": "4"},
        stages=("bm25", "reranked"),
        asked=questions,
        faults=(),
        notes=(),
        seconds=3.2,
    )
    return replace(run, **more)  # type: ignore[arg-type]


def ranked_run() -> Run:
    return small_run(asked("a", 2, 1), asked("b", None, 4, "number"), asked("c", 1, 1), unanswerable("d"))


def answered_run(confidence: bool = False) -> Run:
    def if_wanted(value: float) -> float | None:
        return value if confidence else None

    right, wrong = CitationResult(True, True), CitationResult(False, True)
    return small_run(
        asked("a", 2, 1, answer=AnswerResult(False, 2, 2, (right, wrong), if_wanted(0.8))),
        asked("b", 1, 1, answer=AnswerResult(False, 1, 1, (right,), if_wanted(0.4))),
        unanswerable("c", AnswerResult(True, confidence=if_wanted(0.2))),
        unanswerable("d", AnswerResult(False, 1, 1, (wrong,), if_wanted(0.5))),
    )


def report_of(run: Run, beginning: str = "") -> str:
    """The tables of a run whose titles begin so."""
    return "\n\n".join(as_markdown(table) for table in tables(run) if table.title.startswith(beginning))


ANSWERED = answered_run(confidence=True)
REFUSED = asked("e", 1, 1, answer=AnswerResult(True))  # at every threshold
IN_TEXTS = small_run(
    QuestionResult("1", "", True, False, {"paper": (1.0,)}, {"bm25": {"paper": (1,)}, "dense": {"paper": (2,)}}),
    name="scifact", is_text=True, stages=("bm25", "dense"),
)  # fmt: skip
FAULT = GoldProblem("b", "The quote is on no page of a.pdf: 'x'.", counted=False)
DOWN = FailedQuestion("b", "No Ollama server answers at http://x.", "Start it.")
REPORTS = {
    "rankings": (ranked_run(), ""),
    "answers": (answered_run(), ""),
    "answers with confidence": (ANSWERED, "Refusals"),
    "more refused than any threshold": (
        replace(ANSWERED, asked=(*ANSWERED.asked, *(replace(REFUSED, id=id) for id in "efgh"))),
        "Refusals",
    ),
    "fewer thresholds": (replace(ANSWERED, asked=(*ANSWERED.asked, *ANSWERED.asked, REFUSED)), "Refusals"),
    "texts with published values": (IN_TEXTS, ""),
    "texts with another model": (replace(IN_TEXTS, models={"embedder": "nomic-embed-text (Ollama)"}), "nDCG@10"),
    "texts without published values": (replace(IN_TEXTS, name="mine"), "nDCG@10"),
    "faults": (replace(ranked_run(), faults=(FAULT,)), "Wrong gold"),
    "failures": (replace(ranked_run(), failed=(DOWN,)), "Questions on which"),
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_tables_of_a_run(name: str) -> None:
    check_golden("evaluation_report.txt", name, report_of(*REPORTS[name]))


def test_the_written_report(tmp_path: Path) -> None:
    run = replace(answered_run(), notes=("A note.",), name="my set/1", models={"embedder": "a|b"}, failed=(DOWN,))
    report, drawn = write(tmp_path / "new", run, [Table("T", ("a", "b"), (("x", "1"), ("line\nend", "2.5")))])
    assert (report.name, drawn.name) == ("2026-11-21-120000-my-set-1.md", "2026-11-21-120000-my-set-1.png")
    written, _, _ = report.read_text(encoding="utf-8").partition("## How the metrics are defined")
    check_golden("evaluation_report.txt", "the file", written)


def test_runs_are_compared_on_their_common_questions() -> None:
    before = small_run(asked("a", 1, 2), asked("b", 1, 2), asked("x", 1, 1))
    after = small_run(asked("b", 1, 1), asked("a", 1, 1), asked("y", 1, 9))
    answering = small_run(*(asked(id, 1, 1, answer=AnswerResult(False, 1, 1)) for id in "ab"))
    refusing = small_run(*(asked(id, 1, 1, answer=AnswerResult(True)) for id in "ab"))
    compared = (comparison(before, after), comparison(after, before), comparison(answering, refusing))
    check_golden("evaluation_report.txt", "comparisons", "\n\n".join(map(as_markdown, compared)))
    with pytest.raises(UsageError, match="no question in common"):
        comparison(before, small_run(asked("z", 1, 1)))


def test_changes_name_what_differs() -> None:
    before, after = ranked_run(), replace(ranked_run(), settings={"TOP_K": "6", "NEW": "1"})
    assert changes(before, after) == ["TOP_K: 4 -> 6", "NEW: - -> 1"]
    assert changes(before, before) == []


def test_run_without_a_ranking_still_has_a_report(tmp_path: Path) -> None:
    run = small_run(unanswerable("d", AnswerResult(True)))
    report, drawn = write(tmp_path, run, tables(run))
    assert "unanswerable questions that were refused | 1.000" in report.read_text(encoding="utf-8")
    assert drawn.stat().st_size > 1000


def test_terminal_shows_every_table_and_no_control_characters() -> None:
    out = io.StringIO()
    print_tables(Console(file=out, width=100), [Table("Title", ("a", "b"), (("x\x1b[31m", "1"), ("y", "22")))])
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines == ["", "Title", "a        b", "x\ufffd[31m   1", "y       22"]


def pixels(png: bytes) -> Pixels:
    """Shape (height, width, 3)."""
    import pymupdf

    drawn = pymupdf.Pixmap(png)
    seen: Pixels = np.frombuffer(drawn.samples, np.uint8).reshape(drawn.height, drawn.width, drawn.n)[:, :, :3]
    return seen


def coloured(seen: Pixels, *colour: int) -> npt.NDArray[np.bool_]:
    """Shape (height, width): where a picture has this colour."""
    near: npt.NDArray[np.bool_] = np.abs(seen.astype(int) - np.array(colour)) < 3
    return near[:, :, 0] & near[:, :, 1] & near[:, :, 2]


def test_a_picture_has_bars_as_high_as_the_figures() -> None:
    png = picture(ranked_run())
    assert struct.unpack(">II", png[16:24]) == (WIDTH * DPI, HEIGHT * DPI)
    seen = pixels(png)
    blue = coloured(seen, 0x1F, 0x5F, 0xA6)
    columns = np.flatnonzero(blue[: int(0.85 * len(blue))].sum(axis=0) > 100)
    bars = np.split(columns, np.flatnonzero(np.diff(columns) > 20) + 1)
    assert len(bars) == 6  # one for each figure of the last stage
    heights = [float(np.median(blue[:, bar[:5]].sum(axis=0))) for bar in bars]
    whole = heights[1]  # Recall@5 is 1
    assert [height / whole for height in heights] == pytest.approx([2 / 3, 1, 1, 1, 0.75, 0.81], abs=0.02)


def test_picture_is_half_as_wide_again_with_the_curve() -> None:
    png = picture(answered_run(confidence=True))
    assert struct.unpack(">II", png[16:24]) == (1.5 * WIDTH * DPI, HEIGHT * DPI)
    assert coloured(pixels(png), 0xC4, 0x62, 0x10).sum() > 50  # the point where it answers now


def test_a_picture_is_the_same_whatever_a_matplotlibrc_has(monkeypatch: pytest.MonkeyPatch) -> None:
    first = picture(ranked_run())
    # The current folder's is read too, and this would run LaTeX.
    monkeypatch.setitem(mpl.rcParams, "text.usetex", True)
    assert zlib.crc32(picture(ranked_run())) == zlib.crc32(first)
