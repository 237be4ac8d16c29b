"""The benchmark of speed, short: its table, its picture, and counts of what a question reads. No clock decides."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import curve, speed, synthetic
from folio.search.retriever import FusionSettings, Retriever
from folio.store import indexes
from folio.store.library import Library

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_table_says_what_is_reached_and_what_is_not() -> None:
    lines = [
        speed.Line("a", "1 s", "20 s", "20.0", "15 times", True),
        speed.Line("b", "1 s", "2 s", "2.0", "3 times", False),
        speed.Line("c", "1 s", "", "", "", None),
    ]
    head, rule, *rows = speed.table(lines).splitlines()
    assert head == "| what | Folio | plain design | ratio | to reach | reached |"
    assert rule == "| --- | --- | --- | --- | --- | --- |"
    assert [row.split(" | ")[-1] for row in rows] == ["yes |", "no |", " |"]


def test_the_picture_is_one() -> None:
    points = [curve.Point(1_000, 0.5, 10.0, 200.0, 900.0), curve.Point(12_000, 0.6, 12.0, 210.0, 1_000.0)]
    drawn = curve.picture(points)
    assert drawn.startswith(PNG)
    assert int.from_bytes(drawn[16:20]) == round(curve.WIDTH * curve.DPI)
    assert int.from_bytes(drawn[20:24]) == round(curve.HEIGHT * curve.DPI)


@pytest.mark.skipif(sys.platform == "win32", reason="a process's peak memory is told by wait4")
def test_a_process_is_timed_and_a_failure_is_told() -> None:
    took = speed.process(["-c", "import os; assert os.environ['OTTERS'] == 'float'"], {"OTTERS": "float"})
    assert took.seconds > 0
    assert 1 < took.peak_mb < 200  # and not what this process has
    with pytest.raises(RuntimeError, match="no otters"):
        speed.process(["-c", "raise SystemExit('no otters')"], {})


def test_every_part_is_measured() -> None:
    assert tuple(speed.MEASURES) == speed.PARTS


@pytest.mark.parametrize("chunks", [600, 3000])
def test_a_question_reads_its_candidates_and_no_more_however_large_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    library = synthetic.make(tmp_path, synthetic.model_of_nothing(64), chunks, 64, chunks // 60)
    indexes.update_indexes(tmp_path, library, "tantivy")
    (asked,) = synthetic.questions(library, 1)
    read: list[int] = []
    text = Library.text

    def counted(self: Library, paper: str, start: int, end: int) -> str:
        read.append(end - start)
        return text(self, paper, start, end)

    monkeypatch.setattr(Library, "text", counted)

    def opened() -> indexes.Indexes:
        return indexes.open_indexes(tmp_path, library, "tantivy", pytest.fail)

    retriever = Retriever(library, opened, synthetic.Lookup([asked]), None, FusionSettings(0.7, 0.3, 20))
    found = retriever.search(asked.text, 4)
    assert found.hits[0].chunk.id == asked.chunk
    assert len(read) == 4
    assert sum(read) < 4 * 2 * synthetic.PASSAGE
    library.close()
