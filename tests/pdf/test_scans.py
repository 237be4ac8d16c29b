"""Pages that are pictures of print with a line of text over them are scans; pages with a figure are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
import pytest

from folio.errors import PaperLimit
from folio.pdf import ocr
from folio.pdf.order import Box
from folio.pdf.reader import READ_BY_OCR, SCANNED, read_pdf
from folio.pdf.scans import Scans, covers, lines_of_print
from tests.helpers.paths import SHARED

STAMP = "Authorized licensed use limited to: University of Corwick. Downloaded on May 4, 2020. Restrictions apply."
PROSE = "The survey of the harbour began in spring and was repeated by two crews of the station in four years. " * 44
SIZE = (0, 0, 595, 842)
Draw = Callable[[Any], None]


def prose(count: int = 45, columns: int = 1, size: float = 10) -> Draw:
    """Print on a page: lines in columns."""

    def draw(page: Any) -> None:
        width = 490 / columns
        for n in range(columns):
            words = PROSE[: round(min(count, 680 / (1.4 * size)) * width / (0.5 * size))]
            left = 52 + n * width
            assert page.insert_textbox((left, 60, left + width - 14, 800), words, fontsize=size) >= 0

    return draw


def picture(draw: Draw, dpi: int = 110, turned: int = 0, dim: float = 1.0) -> Any:
    """What a scanner makes of a page: a picture in levels of grey, a little turned, darker towards its right edge."""
    printed = pymupdf.open()
    page = printed.new_page(width=595, height=842)
    draw(page)
    page.set_rotation(turned)
    pixmap = page.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY, alpha=False)
    grey = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width)
    rows = np.arange(pixmap.height)[:, None]
    columns = np.arange(pixmap.width)[None, :]
    skewed = grey[np.clip(rows + columns // 60, 0, pixmap.height - 1), columns]
    shade = np.linspace(1, dim, pixmap.width)[None, :]
    noise = np.random.default_rng(1).normal(0, 5, grey.shape)
    levels = np.clip(skewed * shade + noise, 0, 255).astype(np.uint8)
    return pymupdf.Pixmap(pymupdf.csGRAY, pixmap.width, pixmap.height, levels.tobytes(), False)


def photograph(page: Any) -> None:
    """A picture without paper or print: clouds."""
    random = np.random.default_rng(2)
    hills = np.cumsum(np.cumsum(random.normal(size=(200, 150)), 0), 1)
    levels = ((hills - hills.min()) / np.ptp(hills) * 255).astype(np.uint8)
    page.insert_image(page.rect, pixmap=pymupdf.Pixmap(pymupdf.csGRAY, 150, 200, levels.tobytes(), False))


def diagram(page: Any) -> None:
    """Bars with axes and a few labels."""
    for n in range(12):
        page.draw_rect((90 + 40 * n, 700 - 37 * (n % 7) - 80, 120 + 40 * n, 700), fill=(0.2, 0.4, 0.8))
        page.insert_text((90 + 40 * n, 715), f"W{n}", fontsize=9)
    page.draw_line((80, 100), (80, 700))
    page.draw_line((80, 700), (560, 700))


class File:
    """A PDF that is made page by page."""

    def __init__(self) -> None:
        self.document = pymupdf.open()

    def scan(self, draw: Draw, text: str = STAMP, area: Any = SIZE, **scanned: Any) -> Any:
        page = self.document.new_page(width=595, height=842)
        page.insert_image(area, pixmap=picture(draw, **scanned), keep_proportion=False)
        if text:
            page.insert_textbox((60, 812, 560, 840), text, fontsize=7)
        return page

    def print(self, draw: Draw) -> Any:
        page = self.document.new_page(width=595, height=842)
        draw(page)
        return page

    def read(self, path: Path, **options: Any) -> list[tuple[str, str]]:
        """Text and problem of each page."""
        self.document.save(path / "a.pdf")
        return [(page.text, page.problem) for page in read_pdf(path / "a.pdf", **options).pages]


@pytest.mark.parametrize(
    "scanned",
    [
        {"draw": prose()}, {"draw": prose(columns=2)}, {"draw": prose(size=16)}, {"draw": prose(), "turned": 90},
        {"draw": prose(), "dpi": 60}, {"draw": prose(), "dim": 0.5}, {"draw": prose(), "area": (60, 60, 535, 780)},
        {"draw": prose(), "text": "ABC-0001234567"}, {"draw": prose(), "text": "\n".join([STAMP, STAMP[:60]])},
    ],
)  # fmt: skip
@pytest.mark.fast
def test_a_file_of_stamped_scans_is_scanned(tmp_path: Path, scanned: dict[str, Any]) -> None:
    file = File()
    for _ in range(2):
        file.scan(**scanned)
    with pytest.raises(PaperLimit, match="The file is scanned: no text layer"):
        file.read(tmp_path)


@pytest.mark.parametrize("name", ["scan_stamp", "scan_bates", "scan_numbers"])
def test_reported_files_are_scanned(name: str) -> None:
    path = SHARED / "cases" / "pdf" / "only" / f"{name}.pdf"
    if not path.exists():
        pytest.skip("the reported files are not here")
    with pytest.raises(PaperLimit, match="The file is scanned: no text layer"):
        read_pdf(path)


def test_scans_after_a_cover_sheet_are_named_with_their_short_last_page(tmp_path: Path) -> None:
    file = File()
    file.print(prose(20))
    for _ in range(4):
        file.scan(prose())
    file.scan(prose(2))
    cover, *scans = file.read(tmp_path)
    assert cover[0].startswith("The survey of the harbour")
    assert cover[1] == ""
    assert [problem for _, problem in scans] == [SCANNED] * 5
    assert all(text.startswith("Authorized licensed use") for text, _ in scans)


def test_a_stamp_is_no_title(tmp_path: Path) -> None:
    file = File()
    file.scan(prose())
    file.print(prose())
    file.document.save(tmp_path / "a.pdf")
    assert "licensed" not in read_pdf(tmp_path / "a.pdf").metadata.title.value


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (photograph, "Figure 3: The harbour at low tide, seen from the north. Photograph of the station, in May."),
        (diagram, "Figure 3: The mean salinity of the harbour in each week of the survey, in practical units."),
        (photograph, "Results of the second survey"),
        (diagram, "Results of the second survey"),
    ],
)
def test_a_page_with_a_figure_is_read(tmp_path: Path, draw: Draw, text: str) -> None:
    file = File()
    for _ in range(3):
        file.scan(draw, text)
    assert [(" ".join(read.split()), problem) for read, problem in file.read(tmp_path)] == [(text, "")] * 3


def test_text_over_a_background_picture_is_read(tmp_path: Path) -> None:
    file = File()
    page = file.print(photograph)
    for n in range(6):
        page.insert_text((60, 120 + 90 * n), "A point on the salinity of the harbour", fontsize=24, color=(1, 1, 1))
    [(text, problem)] = file.read(tmp_path)
    assert text.count("A point on the salinity") == 6
    assert problem == ""


@pytest.mark.parametrize("count", [45, 4])
def test_the_text_layer_of_a_scan_is_read(tmp_path: Path, count: int) -> None:
    file = File()
    page = file.scan(prose(count), STAMP)
    left, top, right, bottom = 52, 60, 52 + 490 - 14, 800
    page.insert_textbox((left, top, right, bottom), PROSE[: round(count * 490 / 5)], fontsize=10, render_mode=3)
    [(text, problem)] = file.read(tmp_path)
    assert "The survey of the harbour" in text
    assert problem == ""


def test_ocr_reads_the_picture_and_the_text_over_it_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(page: Any) -> ocr.Blocks:
        lines = [Box(60, 80.0 + 20 * n, 500, 92.0 + 20 * n, f"Line {n} of the scanned page.") for n in range(3)]
        return [[*lines, Box(60, 812, 500, 822, "Authorizod liconsed uso limitod")]]

    monkeypatch.setattr(ocr, "engine", lambda: ocr.Engine("Stand-in", read))
    file = File()
    file.scan(prose())
    file.scan(prose(2))  # known for a scan by the page before
    pages = file.read(tmp_path, ocr=True)
    for text, problem in pages:
        assert problem == f"{READ_BY_OCR} (Stand-in)"
        assert text.startswith("Line 0 of the scanned page.\nLine 1")
        assert " ".join(STAMP.split()) in " ".join(text.split())
        assert "liconsed" not in text


def test_pages_with_more_text_are_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("folio.pdf.scans.draw_page", lambda *_: pytest.fail("drawn"))
    file = File()
    file.print(prose())
    page = file.print(prose())
    photograph(page)
    file.print(prose(3))
    assert all(problem == "" for _, problem in file.read(tmp_path))


@pytest.mark.fast
def test_the_share_that_pictures_cover() -> None:
    assert covers([], SIZE) == 0
    assert covers([SIZE, (-50, -50, 900, 900)], SIZE) == 1
    assert covers([(0, 0, 595, 421)], SIZE) == pytest.approx(0.5, abs=0.02)
    strips = [(0.0, 10.0 * n, 595.0, 10.0 * n + 10) for n in range(84)]
    assert covers(strips, SIZE) > 0.97


@pytest.mark.fast
def test_lines_of_print() -> None:
    blank = np.full((900, 640), 250, np.uint8)
    assert lines_of_print(blank) == 0
    printed = blank.copy()
    for n in range(20):  # letters of three pixels with gaps of two
        printed[50 + 40 * n : 60 + 40 * n, 40:600] = np.where(np.arange(560) % 5 < 3, 20, 250)
    assert lines_of_print(printed) == pytest.approx(20)
    assert lines_of_print(printed, [(0, 0, 640, 450)]) == pytest.approx(10)
    assert lines_of_print(255 - printed) == 0
    assert lines_of_print(np.full((1, 1), 9, np.uint8)) == 0


def test_many_scans_are_not_all_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr("folio.pdf.scans._MOST_DRAWN", 3)
    real = Scans.add_page

    def add_page(self: Any, page: Any, index: int, *rest: Any) -> bool:
        drawn.append(self._drawn)
        return real(self, page, index, *rest)

    monkeypatch.setattr(Scans, "add_page", add_page)
    file = File()
    file.print(prose(20))
    scanned = picture(prose())
    for _ in range(6):
        page = file.document.new_page(width=595, height=842)
        page.insert_image(page.rect, pixmap=scanned)
        page.insert_textbox((60, 812, 560, 840), STAMP, fontsize=7)
    assert [problem for _, problem in file.read(tmp_path)] == ["", *[SCANNED] * 6]
    assert max(drawn) == 3
