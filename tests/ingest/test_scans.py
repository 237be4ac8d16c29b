"""A long scan: its pages are read under limits of their own, and a stopped ingest goes on where it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pymupdf
import pytest

from folio.ingest.pipeline import Limits, Part, Scanning, Unscanned
from folio.ingest.scanned_pages import ScannedPages
from folio.papers.model import SourceFile
from folio.pdf.ocr import Scan
from folio.pdf.order import Box
from folio.store.fingerprint import Reading
from tests.helpers.cli_runner import CliRunner
from tests.helpers.paths import ROOT
from tests.helpers.pdfs import image_page
from tests.helpers.slow_ocr import page_words

READING, LIMITS = Reading(1000, 100, ocr=True), Limits(1, 60.0, 1000, 100)
PAGES = 25
PAGE = Scan([[Box(1.5, 2.0, 3.25, 4.0, "A line"), Box(1.5, 5.0, 3.25, 7.0, "up the page", False)], []])


@dataclass
class Desk:
    """A folder with a scan in it, and an ingest in processes of its own with an engine that hangs as it is told."""

    runner: CliRunner
    pages: int
    jobs: int = 2

    def __post_init__(self) -> None:
        self.runner.settings["EMBEDDER"] = "builtin"
        self.hangs, self.log = self.runner.folder / "hangs.json", self.runner.folder / "ocr.log"
        self.scans = self.runner.store / "scans"
        document = pymupdf.open()
        for _ in range(self.pages):
            image_page(document)
        document.save(self.runner.papers / "waders.pdf")
        document.close()

    def hang(self, pages: Sequence[int]) -> None:
        self.hangs.write_text(json.dumps(list(pages)))

    @property
    def read(self) -> list[int]:
        """The pages that the engine has finished, sorted."""
        return sorted(map(int, self.log.read_text().split())) if self.log.exists() else []

    def start(self, **settings: str) -> subprocess.Popen[str]:
        places = {"OCR_HANGS": str(self.hangs), "OCR_LOG": str(self.log), "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.slow_ocr", "--jobs", str(self.jobs)],
            env={**self.runner.environment(), **places, **settings},
            cwd=self.runner.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kept(self) -> int:
        return len(list(self.scans.rglob("*.json")))


def test_the_progress_of_ocr_counts_the_pages_of_the_file() -> None:
    """Of five pages, the third and the fifth are scans."""
    said: list[tuple[int, int]] = []
    scanning = Scanning(ScannedPages(None), lambda file, pages, of: said.append((pages, of)), READING, LIMITS)
    file = SourceFile("/papers/a.pdf", "a.pdf", "0" * 64)
    scanning.take(Part(file), Unscanned((2, 4), 5))
    for part in (next(scanning), next(scanning)):
        scanning.take(part, PAGE)
    assert said == [(3, 5), (4, 5), (5, 5)]
    assert list(next(scanning).scans) == [2, 4]


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.slow
def test_a_scan_stopped_twice_reads_each_page_once(desk: CliRunner) -> None:
    waders = Desk(desk, PAGES)
    for until, stop in ((9, signal.SIGINT), (17, signal.SIGKILL)):
        waders.hang(range(until, PAGES))
        with waders.start() as running:
            wait_until(lambda until=until: waders.kept() == until)  # type: ignore[misc]
            running.send_signal(stop)
            _, said = running.communicate(timeout=60)
        assert waders.read == list(range(until))
        if stop == signal.SIGINT:
            assert "OCR has read page 9 of 25 of waders.pdf. They are kept;" in " ".join(said.split())
    waders.hang([])
    with waders.start() as running:
        out, said = running.communicate(timeout=60)
    assert (running.returncode, f"pp. 1-{PAGES}: read by OCR (Slow)" in " ".join(out.split())) == (0, True), out + said
    assert waders.read == list(range(PAGES))
    assert not waders.scans.exists()
    [paper] = waders.runner.record()
    assert (paper["pages"], paper["problems"]) == (PAGES, [f"pp. 1-{PAGES}: read by OCR (Slow)"])
    asked = waders.runner.query(f"How often was the {page_words(20).split()[4]} counted on plot 21?", "--no-log")
    assert "waders.pdf, p. 21" in asked.out


@pytest.mark.slow
def test_an_unfinished_page_is_tried_again_and_costs_no_other(desk: CliRunner) -> None:
    waders = Desk(desk, 6)
    waders.hang([3])
    with waders.start(PARSE_TIMEOUT_S="1.2") as running:  # 6 s by the clock
        out, _ = running.communicate(timeout=60)
    shown = " ".join(out.split())
    assert running.returncode == 0
    assert "p. 4: no text (image only), and Slow did not finish (" in shown
    assert "to read the pages that OCR did not finish, run `python ingest.py` again" in shown
    assert waders.read == [page for page in range(6) if page != 3]
    [paper] = waders.runner.record()
    assert paper["problems"][0].startswith("p. 4: no text (image only), and Slow did not finish (")
    assert paper["problems"][0].endswith("tried again by the next ingest")
    waders.hang([])
    with waders.start() as running:  # the file is not named
        running.communicate(timeout=60)
    assert waders.read == list(range(6))
    [paper] = waders.runner.record()
    assert paper["problems"] == ["pp. 1-6: read by OCR (Slow)"]
    assert not waders.scans.exists()  # so no later ingest reads it again


@pytest.mark.slow
@pytest.mark.parametrize("too_large", [[1], [0, 1, 2]], ids=["one page", "all pages"])
def test_a_page_over_a_limit_is_retried_after_a_change(desk: CliRunner, too_large: list[int]) -> None:
    waders = Desk(desk, 3, jobs=1)
    waders.hang([])

    def ingest(**settings: str) -> str:
        with waders.start(**settings) as running:
            out, said = running.communicate(timeout=60)
        return " ".join((out + said).split())

    large = {"OCR_TOO_LARGE": ",".join(map(str, too_large))}
    first = ingest(**large)
    assert "OCR did not finish" in first
    assert "PARSE_TIMEOUT_S or PARSE_MEMORY_MB, and run `python ingest.py` again" in first
    assert waders.read == [0, 1, 2]
    ingest(**large)
    assert waders.read == [0, 1, 2]
    ingest(**large, PARSE_MEMORY_MB="1100")
    assert waders.read == sorted([0, 1, 2, *too_large])
    ingest(PARSE_MEMORY_MB="1200")
    assert waders.read == sorted([0, 1, 2, *too_large, *too_large])
    [paper] = waders.runner.record()
    assert paper["problems"] == ["pp. 1-3: read by OCR (Slow)"]
    assert not waders.scans.exists()


def test_a_kept_page_is_read_as_it_was_written(tmp_path: Path) -> None:
    pages = ScannedPages(tmp_path / "scans")
    pages.begin("ab" * 32, "Engine 1")
    pages.keep("ab" * 32, "Engine 1", 4, PAGE, "as now")
    limited = Scan([], "did not finish (it took too long)", "limit")
    pages.keep("ab" * 32, "Engine 1", 5, limited, "as now")
    assert pages.read("ab" * 32, "Engine 1", "as now") == {4: PAGE, 5: limited}
    assert pages.read("ab" * 32, "Engine 1", "with more time") == {4: PAGE}
    assert pages.read("ab" * 32, "Engine 2", "as now") == {}  # another language, another version
    assert pages.read("cd" * 32, "Engine 1", "as now") == {}


def test_a_paper_with_missing_pages_is_unfinished_while_settings_change(tmp_path: Path) -> None:
    pages = ScannedPages(tmp_path / "scans")
    pages.begin("ab" * 32, "Engine")
    assert pages.unfinished("as now") == {"ab" * 32}
    pages.note_unfinished("ab" * 32, "as now")
    assert not pages.unfinished("as now")
    assert pages.unfinished("with more time") == {"ab" * 32}
    pages.note_unfinished("ab" * 32, "")
    assert pages.unfinished("as now") == {"ab" * 32}
    pages.note_unfinished("cd" * 32, "as now")  # whose pages other computers have read
    assert pages.unfinished("with more time") == {"ab" * 32, "cd" * 32}
    pages.forget("cd" * 32)
    pages.forget("ab" * 32)
    assert not (tmp_path / "scans").exists()


@pytest.mark.parametrize("damage", ["cut", "changed", "no JSON", "other JSON", "moved"])
def test_a_damaged_page_counts_as_not_read(tmp_path: Path, damage: str) -> None:
    pages = ScannedPages(tmp_path / "scans")
    pages.keep("ab" * 32, "Engine", 0, PAGE, "")
    pages.keep("ab" * 32, "Engine", 1, PAGE, "")
    path = sorted(tmp_path.rglob("*.json"))[1]
    written = path.read_bytes()
    path.write_bytes(
        {
            "cut": written[:100],
            "changed": written.replace(b"A line", b"A lime"),
            "no JSON": b"\xff{",
            "other JSON": b"[1]",
            "moved": written.replace(b'"page": 1', b'"page": 7'),
        }[damage]
    )
    assert pages.read("ab" * 32, "Engine", "") == {0: PAGE}


def test_pages_are_deleted_with_their_paper_or_after_weeks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = ScannedPages(tmp_path / "scans")
    for paper in ("ab" * 32, "cd" * 32):
        pages.begin(paper, "Engine")
        pages.keep(paper, "Engine", 0, PAGE, "")
    pages.forget("ab" * 32)
    assert [path.name for path in (tmp_path / "scans").iterdir()] == ["cd" * 32]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 70 * 24 * 3600)
    pages.begin("ef" * 32, "Engine")
    assert pages.unfinished("as now") == {"ef" * 32}
    pages.forget("ef" * 32)
    assert not (tmp_path / "scans").exists()


def test_pages_that_cannot_be_saved_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "scans").write_text("a file")
    pages = ScannedPages(tmp_path / "scans")
    pages.begin("ab" * 32, "Engine")
    pages.keep("ab" * 32, "Engine", 0, PAGE, "")
    pages.forget("ab" * 32)
    assert (pages.read("ab" * 32, "Engine", ""), pages.unfinished("as now")) == ({}, frozenset())
    assert (tmp_path / "scans").read_text() == "a file"
