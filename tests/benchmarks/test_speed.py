"""The speed benchmark: its table, its chart, and how much a question reads. Nothing depends on timing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import curve, speed, synthetic
from folio.papers.model import Chunk, Paper
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever
from folio.store import indexes
from folio.store.library import Library

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_table_says_which_targets_are_met() -> None:
    rows = [
        speed.Row("a", "1 s", "20 s", "20.0", "ratio 15", True),
        speed.Row("b", "1 s", "2 s", "2.0", "ratio 3", False),
        speed.Row("c", "1 s", "", "", "", None),
    ]
    head, rule, *body = speed.markdown_table(rows).splitlines()
    assert head == "| what | Folio | plain design | ratio | target | met |"
    assert rule == "| --- | --- | --- | --- | --- | --- |"
    assert [row.split(" | ")[-1] for row in body] == ["yes |", "no |", " |"]


def test_the_chart_is_a_png_of_the_given_size() -> None:
    points = [curve.Point(1_000, 0.5, 10.0, 200.0, 900.0), curve.Point(12_000, 0.6, 12.0, 210.0, 1_000.0)]
    png = curve.draw_chart(points)
    assert png.startswith(PNG)
    assert int.from_bytes(png[16:20]) == round(curve.WIDTH * curve.DPI)
    assert int.from_bytes(png[20:24]) == round(curve.HEIGHT * curve.DPI)


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory comes from wait4")
def test_a_process_is_measured_and_a_failure_raises() -> None:
    usage = speed.run_python(["-c", "import os; assert os.environ['OTTERS'] == 'float'"], {"OTTERS": "float"})
    assert usage.seconds > 0
    assert 1 < usage.peak_mb < 200  # not this process's peak
    with pytest.raises(RuntimeError, match="no otters"):
        speed.run_python(["-c", "raise SystemExit('no otters')"], {})


@pytest.mark.parametrize("chunks", [600, 3000])
def test_a_question_reads_only_its_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int) -> None:
    library = synthetic.make_library(tmp_path, synthetic.random_template(64), chunks, 64, chunks // 60)
    indexes.update_indexes(tmp_path, library, "tantivy")
    (question,) = synthetic.make_questions(library, 1)
    read: list[int] = []  # passages at a time
    read_chunks = Library.read_chunks

    def counted(self: Library, ids: Sequence[int]) -> list[tuple[Chunk, Paper, str]]:
        read.append(len(ids))
        return read_chunks(self, ids)

    monkeypatch.setattr(Library, "read_chunks", counted)

    def opened() -> indexes.Indexes:
        return indexes.open_indexes(tmp_path, library, "tantivy", pytest.fail)

    retriever = Retriever(library, opened, synthetic.LookupEmbedder([question]), None, FusionSettings(0.7, 0.3, 20))
    found = retriever.search(question.text, 4)
    assert found.hits[0].chunk.id == question.chunk
    assert read == [4]
    library.close()
