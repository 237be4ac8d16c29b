"""OCR of scanned pages: which engine, which messages, and what happens without an engine or without time."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from folio.errors import PaperBusy, PaperError, PaperLimit
from folio.pdf import limits, ocr, reader
from folio.pdf.order import Box, page_text
from folio.pdf.reader import read_pdf
from folio.store.fingerprint import reading_fingerprint
from tests.helpers.cli_runner import CliRunner
from tests.helpers.fakes import hashing_app
from tests.helpers.pdfs import image_page, scan

pytestmark = pytest.mark.environment

MOORS = [
    "The curlew breeds on wet moors and in hay meadows.",
    "The bill has a length of 15 centimetres and is bent down.",
    "A pair raises one brood of four chicks each year.",
]
MARSHES = ["Snipe drum with their outer tail feathers in flight.", "The sound carries over 800 metres of open marsh."]
TYPED = "Waders of the uplands were counted on 40 plots in two seasons, at dawn and in calm weather."


class Written:
    """An engine with a given text for each page number from 0, which records the pages it was asked for."""

    def __init__(self, pages: dict[int, list[str]]) -> None:
        self.pages = pages
        self.asked: list[int] = []

    def read(self, page: Any) -> ocr.Blocks:
        self.asked.append(page.number)
        lines = self.pages[page.number]
        return [[Box(60, 80.0 + 20 * n, 400, 92.0 + 20 * n, line) for n, line in enumerate(lines)]]


def use(monkeypatch: pytest.MonkeyPatch, engine: Written | None) -> None:
    found = engine and ocr.Engine("Stand-in", engine.read)
    monkeypatch.setattr(ocr, "engine", lambda: found)


@pytest.fixture
def engine() -> ocr.Engine:
    found = ocr.engine()
    if found is None:
        pytest.skip("no OCR engine is installed")
    return found


def mixed(path: Path) -> Path:
    """A page of text and two scanned pages."""
    document = pymupdf.open()
    document.new_page().insert_text((60, 90), TYPED, fontsize=10)
    for lines in (MOORS, MARSHES):
        scan(document, lines)
    document.save(path)
    document.close()
    return path


def scanned(path: Path, rotation: int = 0) -> Path:
    document = pymupdf.open()
    scan(document, MOORS, rotation)
    document.save(path)
    document.close()
    return path


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


# With an engine that is installed


@pytest.mark.parametrize("rotation", [0, 90, 180])
def test_a_scanned_page_is_read_as_shown(tmp_path: Path, engine: ocr.Engine, rotation: int) -> None:
    page = read_pdf(scanned(tmp_path / "a.pdf", rotation), ocr=True).pages[0]
    assert words(page.text) == words(" ".join(MOORS))
    assert page.problem == f"read by OCR ({engine.name})"


def test_a_picture_without_text_gives_no_text(tmp_path: Path, engine: ocr.Engine) -> None:
    document = pymupdf.open()
    image_page(document)
    document.save(tmp_path / "a.pdf")
    with pytest.raises(PaperError, match="The file is scanned: no text layer, and OCR finds no text in it") as raised:
        read_pdf(tmp_path / "a.pdf", ocr=True)
    assert not isinstance(raised.value, PaperLimit)


def test_nothing_is_printed_by_an_engine(tmp_path: Path, engine: ocr.Engine, capfd: pytest.CaptureFixture[str]) -> None:
    document = pymupdf.open()
    page = scan(document, MOORS)
    for n in range(40):  # specks
        page.draw_line((50 + 12 * n, 600), (51 + 12 * n, 630), width=0.4)
    engine.read(page)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("installed", [True, False], ids=["an engine", "a stand-in"])
def test_a_question_is_answered_from_a_scanned_page(
    desk: CliRunner, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, installed: bool
) -> None:
    if installed:
        name = request.getfixturevalue("engine").name
    else:
        name = "Stand-in"
        use(monkeypatch, Written({1: MOORS, 2: MARSHES}))
    mixed(desk.papers / "waders.pdf")
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    ran = desk.ingest()
    assert ran.code == 0
    assert f"pp. 2-3: read by OCR ({name})" in " ".join(ran.out.split())
    ran = desk.query("How long is the bill of the curlew?", "--verify")
    assert "[waders.pdf p.2]" in ran.out
    assert "15 centimetres" in ran.out
    [drawn] = re.findall(r"/\S+-p2\.png", ran.out)
    assert Path(drawn).read_bytes().startswith(b"\x89PNG")
    assert "Some quotes could not be marked on p. 2 of waders.pdf." in " ".join(ran.err.split())


# What is said, and what happens the next time


def test_pages_with_text_are_not_given_to_ocr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written({1: MOORS, 2: MARSHES})
    use(monkeypatch, written)
    parsed = read_pdf(mixed(tmp_path / "a.pdf"), ocr=True)
    assert written.asked == [1, 2]
    assert [page.text for page in parsed.pages] == [TYPED, "\n".join(MOORS), "\n".join(MARSHES)]
    assert [page.problem for page in parsed.pages] == ["", "read by OCR (Stand-in)", "read by OCR (Stand-in)"]
    assert parsed.problems == ()


@pytest.mark.parametrize(
    ("wanted", "said", "problems", "remedy"),
    [
        (False, "The file is scanned: no text layer", (), "Set OCR=auto, or run OCR, for example `ocrmypdf"),
        (
            True,
            r"no text layer, and no OCR engine is installed\.",
            (
                "to read its pages without text, install Tesseract (`apt install tesseract-ocr`, `brew install"
                " tesseract`) or `pip install rapidocr`, then run `python ingest.py` with its path",
            ),
            "Install Tesseract (`apt install tesseract-ocr`",
        ),
    ],
    ids=["OCR is off", "no engine"],
)
def test_scanned_pages_that_are_not_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool, said: str, problems: tuple[str, ...], remedy: str
) -> None:
    use(monkeypatch, None)
    parsed = read_pdf(mixed(tmp_path / "a.pdf"), ocr=wanted)
    assert [page.problem for page in parsed.pages] == ["", "no text (image only)", "no text (image only)"]
    assert parsed.problems == problems
    with pytest.raises(PaperLimit, match=said) as raised:
        read_pdf(scanned(tmp_path / "b.pdf"), ocr=wanted)
    assert raised.value.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        ({1: ["| . oe", "ens r -"]}, "no text (image only, in which Stand-in finds none)"),
        ({}, "no text (image only), and Stand-in failed: 1"),  # page 1 raises KeyError
    ],
    ids=["specks", "a failure"],
)
def test_a_page_without_text_for_ocr_loses_only_that_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: dict[int, list[str]], problem: str
) -> None:
    use(monkeypatch, Written({**pages, 2: MARSHES}))
    parsed = read_pdf(mixed(tmp_path / "a.pdf"), ocr=True)
    assert [page.text for page in parsed.pages] == [TYPED, "", "\n".join(MARSHES)]
    assert parsed.pages[1].problem == problem


def test_scanned_pages_are_all_named_before_any_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written({1: MOORS, 2: MARSHES})
    use(monkeypatch, written)
    path = mixed(tmp_path / "a.pdf")
    with pytest.raises(ocr.NotScannedYet) as missing:
        read_pdf(path, ocr=True, scans={})
    assert (missing.value.pages, missing.value.of, written.asked) == ((1, 2), 3, [])
    scans = {page: reader.scan(path.read_bytes(), page) for page in missing.value.pages}
    assert read_pdf(path, ocr=True, scans=scans) == read_pdf(path, ocr=True)
    assert written.asked == [1, 2, 1, 2]


def test_pages_that_ocr_did_not_finish_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Written({}))
    stopped = ocr.Scan([], "did not finish (it hung)", "computer")
    read = ocr.Scan(Written({2: MARSHES}).read(pymupdf.open(mixed(tmp_path / "a.pdf"))[2]))
    parsed = read_pdf(tmp_path / "a.pdf", ocr=True, scans={1: stopped, 2: read})
    assert [page.text for page in parsed.pages] == [TYPED, "", "\n".join(MARSHES)]
    assert parsed.pages[1].problem == (
        "no text (image only), and Stand-in did not finish (it hung); tried again by the next ingest"
    )
    assert parsed.problems == (
        "to read the pages that OCR did not finish, run `python ingest.py` again, or raise PARSE_TIMEOUT_S",
    )
    with pytest.raises(PaperBusy, match="no text layer, and OCR did not finish") as raised:
        read_pdf(scanned(tmp_path / "b.pdf"), ocr=True, scans={0: stopped})
    assert "raise PARSE_TIMEOUT_S" in raised.value.remedy


def test_pages_over_a_limit_of_ocr_say_what_to_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Written({}))
    limited, stopped = ocr.Scan([], "did not finish (of late)", "limit"), ocr.Scan([], "did not finish", "computer")
    path = mixed(tmp_path / "a.pdf")
    parsed = read_pdf(path, ocr=True, scans={1: limited, 2: limited})
    assert [page.problem for page in parsed.pages] == [
        "",
        *["no text (image only), and Stand-in did not finish (of late); tried again with other limits or another OCR"
          " engine"] * 2,
    ]  # fmt: skip
    (both,) = read_pdf(path, ocr=True, scans={1: limited, 2: stopped}).problems
    assert both.endswith("run `python ingest.py` again, or raise PARSE_TIMEOUT_S")
    with pytest.raises(PaperLimit, match="no text layer, and OCR did not finish") as raised:
        read_pdf(scanned(tmp_path / "b.pdf"), ocr=True, scans={0: limited})
    assert not isinstance(raised.value, PaperBusy)
    assert raised.value.remedy.startswith("Raise PARSE_TIMEOUT_S or PARSE_MEMORY_MB, and run")


def test_pages_beyond_the_most_that_ocr_reads_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OCR_PAGES", 1)
    written = Written({1: MOORS, 2: MARSHES})
    use(monkeypatch, written)
    parsed = read_pdf(mixed(tmp_path / "a.pdf"), ocr=True)
    assert ([bool(page.text) for page in parsed.pages], written.asked) == ([True, True, False], [1])
    assert parsed.pages[2].problem.startswith("no text (image only), and ")
    assert parsed.problems == ("to read all of its pages, split the file: OCR reads 1 pages of one",)


def test_a_scan_is_tried_again_once_an_engine_is_installed(desk: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned(desk.papers / "curlews.pdf")
    desk.settings["EMBEDDER"] = "builtin"
    use(monkeypatch, None)
    ran = desk.ingest()
    assert (ran.code, "no OCR engine is installed" in ran.out) == (1, True)
    use(monkeypatch, Written({0: MOORS}))
    ran = desk.ingest()
    assert (ran.code, "p. 1: read by OCR (Stand-in)" in ran.out) == (0, True)
    assert [(paper["pages"], paper["problems"]) for paper in desk.record()] == [(1, ["p. 1: read by OCR (Stand-in)"])]


def test_a_named_paper_with_unread_pages_is_read_again(desk: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    path = mixed(desk.papers / "waders.pdf")
    desk.settings |= {"EMBEDDER": "builtin", "OCR": "off"}
    assert "pp. 2-3: no text (image only)" in desk.ingest().out
    written = Written({1: MOORS, 2: MARSHES})
    use(monkeypatch, written)
    desk.settings["OCR"] = "auto"
    assert desk.ingest().out.startswith("Nothing new")  # not named
    assert written.asked == []
    ran = desk.ingest(str(path))
    assert (ran.code, written.asked) == (0, [1, 2])
    assert "pp. 2-3: read by OCR (Stand-in)" in ran.out
    assert [paper["problems"] for paper in desk.record()] == [["pp. 2-3: read by OCR (Stand-in)"]]
    assert desk.ingest("--verify").code == 0
    assert desk.ingest(str(path)).out.startswith("Nothing new")
    assert written.asked == [1, 2]
    assert "[waders.pdf p.3]" in desk.query("How far does the sound of the snipe carry?", "--no-log").out


def test_the_ocr_engine_is_not_in_the_fingerprint(tmp_path: Path) -> None:
    off, auto = (hashing_app(tmp_path, OCR=setting).reading for setting in ("off", "auto"))
    assert (off.ocr, auto.ocr) == (False, True)
    assert reading_fingerprint(off) == reading_fingerprint(auto)


# Lines and engines


def test_lines_of_two_columns_in_rows_become_paragraphs_in_order() -> None:
    left = [Box(60, 100.0 + 14 * n, 280, 111.0 + 14 * n, f"Left column line {n} of the text") for n in range(8)]
    right = [Box(310, 100.0 + 14 * n, 530, 111.0 + 14 * n, f"Right column line {n} of the text") for n in range(8)]
    rows = [line for pair in zip(left, right, strict=True) for line in pair]
    blocks = ocr.paragraphs([*rows, Box(60, 240, 280, 251, "apart")])
    assert blocks == [left, right, [Box(60, 240, 280, 251, "apart")]]
    text = page_text(blocks[:2])
    assert text.split("\n\n") == ["\n".join(line.text for line in column) for column in (left, right)]


@pytest.mark.parametrize(
    ("names", "read"),
    [
        ([], None),
        (["osd"], None),
        (["osd", "eng"], "eng"),
        (["deu", "eng"], "eng+deu"),
        (["deu", "fra"], "deu+fra"),
        (["deu", "eng", "fra", "spa"], "eng"),
    ],
)
def test_tesseract_reads_the_languages_that_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], read: str | None
) -> None:
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))
    for name in names:
        (tmp_path / f"{name}.traineddata").touch()
    assert ocr._tesseract_languages() == (read and (str(tmp_path), read))


def test_rapidocr_is_used_only_with_models_in_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = tmp_path / "rapidocr" / "models"
    models.mkdir(parents=True)
    (models.parent / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rapidocr", raising=False)
    for name in ("a_det_small.onnx", "a_cls_mobile.onnx"):
        (models / name).touch()
    assert ocr._rapidocr_models() == {}  # it would download the third
    (models / "a_rec_small.onnx").touch()
    assert ocr._rapidocr_models() == {
        "Det.model_path": str(models / "a_det_small.onnx"),
        "Cls.model_path": str(models / "a_cls_mobile.onnx"),
        "Rec.model_path": str(models / "a_rec_small.onnx"),
    }


def test_rapidocr_reads_a_scanned_page(tmp_path: Path) -> None:
    models = ocr._rapidocr_models()
    if not models:
        pytest.skip("RapidOCR is not installed")
    document = pymupdf.open(scanned(tmp_path / "a.pdf"))
    assert words(page_text(ocr._read_rapidocr(models, document[0]))) == words(" ".join(MOORS))
