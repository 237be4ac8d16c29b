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
from folio.evaluate.plot import DPI, HEIGHT, WIDTH, picture
from folio.evaluate.relevance import GoldProblem
from folio.evaluate.report import changes, comparison, markdown, tables, write
from folio.evaluate.runner import FailedQuestion, Run
from folio.evaluate.tables import Table, print_tables

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


def test_failed_questions_are_reported() -> None:
    down = FailedQuestion("b", "No Ollama server answers at http://x.", "Start it.")
    run = replace(ranked_run(), failed=(down,), notes=("Given up.",))
    (failures,) = [table for table in tables(run) if "failed" in table.title]
    assert failures.rows == (("b", "No Ollama server answers at http://x."),)
    assert "4 questions, 1 of them unanswerable, failed: 1; 3 s." in markdown(run, [], "p.png")
    assert "failed" not in markdown(ranked_run(), tables(ranked_run()), "p.png")


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


def named(run: Run, title: str) -> Table:
    (found,) = [table for table in tables(run) if table.title.startswith(title)]
    return found


def test_every_stage_has_a_row_and_the_last_its_interval() -> None:
    table = named(ranked_run(), "Found by passage")
    assert table.title == "Found by passage, questions: 3"
    assert table.head == ("stage", "Recall@1", "Recall@5", "Recall@10", "Recall@20", "MRR", "nDCG@10")
    assert table.rows[0] == ("BM25 alone", "0.333", "0.667", "0.667", "0.667", "0.500", "0.544")
    assert table.rows[1] == ("reranked", "0.667", "1.000", "1.000", "1.000", "0.750", "0.810")
    assert table.rows[2][:3] == ("95 % of the last", "0.000 to 1.000", "1.000 to 1.000")
    titles = [table.title for table in tables(ranked_run())]
    assert titles[1:3] == ["Found by page, questions: 3", "Found by paper, questions: 3"]


def test_the_last_stage_is_compared_with_the_earlier_ones() -> None:
    table = named(ranked_run(), "Reranked by passage, less an earlier stage")
    assert table.head == ("metric", "less BM25 alone")
    assert table.rows[1] == ("Recall@5", "+0.333 (+0.000 to +1.000)")


def test_types_of_question_have_rows() -> None:
    table = named(ranked_run(), "Reranked by passage, by type of question")
    assert [row[:4] for row in table.rows] == [("factual", "2", "1.000", "1.000"), ("number", "1", "0.000", "1.000")]


def test_answers_and_refusals() -> None:
    table = named(answered_run(), "Answers")
    rows = {row[0]: (row[1], row[3]) for row in table.rows}
    assert rows == {
        "sentences with a citation": ("1.000", "4 of 4"),
        "citations on a gold page": ("0.667", "2 of 3"),
        "first citation on a gold page": ("1.000", "2 of 2"),
        "any citation on a gold page": ("1.000", "2 of 2"),
        "quotes that are verbatim on their page": ("1.000", "4 of 4"),
        "unanswerable questions that were refused": ("0.500", "1 of 2"),
        "refusals of unanswerable questions": ("1.000", "1 of 1"),
        "answerable questions that were refused": ("0.000", "0 of 2"),
    }


def test_curve_has_a_table_where_there_are_confidences() -> None:
    title = "Refusals at other confidence thresholds"
    assert title not in [table.title for table in tables(answered_run())]
    rows = named(answered_run(confidence=True), title).rows
    assert rows[0] == ("0%", "0.400", "0.0%", "50.0%")
    assert rows[-1] == ("30%", "0.400", "0.0%", "50.0%")


def test_the_refusal_table_leaves_out_shares_that_no_threshold_reaches() -> None:
    run = answered_run(confidence=True)
    refused = asked("e", 1, 1, answer=AnswerResult(True))  # at every threshold
    more = replace(run, asked=(*run.asked, *(replace(refused, id=id) for id in "efgh")))
    assert "Refusals at other confidence thresholds" not in [table.title for table in tables(more)]
    two = replace(run, asked=(*run.asked, *run.asked, refused))
    assert [row[0] for row in named(two, "Refusals at other").rows] == ["20%", "30%"]


def test_latencies_and_faults() -> None:
    run = replace(ranked_run(), faults=(GoldProblem("b", "The quote is on no page of a.pdf: 'x'.", counted=False),))
    assert named(run, "Milliseconds").rows == (("embed", "10.0", "18.5"), ("bm25", "2.0", "2.0"))
    assert named(run, "Wrong gold").rows == (("b", "The quote is on no page of a.pdf: 'x'.", "not counted"),)


def test_published_values_are_shown_only_for_the_same_model() -> None:
    ranks = {"bm25": {"paper": (1,)}, "dense": {"paper": (2,)}}
    question = QuestionResult("1", "", True, False, {"paper": (1.0,)}, ranks)
    run = small_run(question, name="scifact", is_text=True, stages=("bm25", "dense"))
    table = named(run, "nDCG@10 by document, compared with published values")
    assert [row[:4] for row in table.rows] == [
        ("BM25 alone", "1.000", "0.679", "+0.321 (over 0.02)"),
        ("dense alone", "0.631", "0.645", "-0.014"),
    ]
    other = replace(run, models={"embedder": "nomic-embed-text (Ollama)"})
    assert [row[0] for row in named(other, "nDCG@10").rows] == ["BM25 alone"]
    assert named(run, "Found by document").rows[0][1] == "1.000"
    assert not [table for table in tables(replace(run, name="mine")) if "published" in table.title]


def test_runs_are_compared_on_their_common_questions() -> None:
    before = small_run(asked("a", 1, 2), asked("b", 1, 2), asked("x", 1, 1))
    after = small_run(asked("b", 1, 1), asked("a", 1, 1), asked("y", 1, 9))
    rows = {row[0]: row[1:] for row in comparison(before, after).rows}
    assert rows["MRR"] == ("2", "0.500", "1.000", "+0.500", "+0.500 to +0.500", "better")
    assert rows["Recall@5"] == ("2", "1.000", "1.000", "+0.000", "+0.000 to +0.000", "not significant")
    assert {row[0]: row[6] for row in comparison(after, before).rows}["MRR by page"] == "worse"
    with pytest.raises(UsageError, match="no question in common"):
        comparison(before, small_run(asked("z", 1, 1)))


def test_more_refusals_of_answerable_questions_are_worse() -> None:
    before = small_run(*(asked(id, 1, 1, answer=AnswerResult(False, 1, 1)) for id in "ab"))
    after = small_run(*(asked(id, 1, 1, answer=AnswerResult(True)) for id in "ab"))
    rows = {row[0]: row[1:] for row in comparison(before, after).rows}
    refused = "answerable questions that were refused"
    assert rows[refused] == ("2", "0.000", "1.000", "+1.000", "+1.000 to +1.000", "worse")


def test_changes_name_what_differs() -> None:
    before, after = ranked_run(), replace(ranked_run(), settings={"TOP_K": "6", "NEW": "1"})
    assert changes(before, after) == ["TOP_K: 4 -> 6", "NEW: - -> 1"]
    assert changes(before, before) == []


def test_run_without_a_ranking_still_has_a_report(tmp_path: Path) -> None:
    run = small_run(unanswerable("d", AnswerResult(True)))
    report, drawn = write(tmp_path, run, tables(run))
    assert "unanswerable questions that were refused | 1.000" in report.read_text(encoding="utf-8")
    assert drawn.stat().st_size > 1000


def test_report_is_dated_and_says_how_it_was_made(tmp_path: Path) -> None:
    run = replace(answered_run(), notes=("A note.",), name="my set/1", models={"embedder": "a|b"})
    report, drawn = write(tmp_path / "new", run, tables(run))
    assert (report.name, drawn.name) == ("2026-11-21-120000-my-set-1.md", "2026-11-21-120000-my-set-1.png")
    lines = report.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# my set/1, 2026-11-21 12:00 UTC"
    assert "`sets/small.jsonl`: 4 questions, 2 of them unanswerable; 3 s." in lines
    assert "A note." in lines
    assert f"![The metrics of each stage]({drawn.name})" in lines
    assert "| reranked | 1.000 | 1.000 | 1.000 | 1.000 | 1.000 | 1.000 |" in lines
    assert "| embedder | a\\|b |" in lines
    assert "| TOP_K | 4 |" in lines
    assert "## How the metrics are defined" in lines


def test_tables_in_markdown_are_whole() -> None:
    text = markdown(ranked_run(), [Table("T", ("a", "b"), (("x", "1"), ("line\nend", "2.5")))], "p.png")
    assert "## T\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n| line end | 2.5 |\n" in text


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


def test_picture_has_its_size_and_bars_as_high_as_the_figures() -> None:
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


def test_picture_comes_out_the_same_every_time_whatever_a_matplotlibrc_says(monkeypatch: pytest.MonkeyPatch) -> None:
    first = picture(ranked_run())
    # The current folder's is read too, and this would run LaTeX.
    monkeypatch.setitem(mpl.rcParams, "text.usetex", True)
    assert zlib.crc32(picture(ranked_run())) == zlib.crc32(first)
