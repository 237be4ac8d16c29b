"""Awkward and real PDFs, if the data is there: ../shared/nasty and ../shared/papers."""

from __future__ import annotations

import csv
import os
from typing import NamedTuple

import pytest

from folio.errors import PaperError
from folio.ingest.cleaning import clean
from folio.papers.model import ParsedPdf
from folio.pdf.reader import read_pdf
from folio.system.workers import run_guarded
from tests.helpers.paths import SHARED
from tests.helpers.real_papers import read_real
from tests.helpers.workers import made_once

_NASTY, _PAPERS = SHARED / "nasty", SHARED / "papers"
needs_nasty = pytest.mark.skipif(not _NASTY.is_dir(), reason="no ../shared/nasty with the awkward PDFs")
needs_papers = pytest.mark.skipif(not _PAPERS.is_dir(), reason="no ../shared/papers with the real papers")


class Awkward(NamedTuple):
    results: dict[str, ParsedPdf | PaperError]
    seconds: float  # of CPU time


def _read() -> Awkward:
    """The result for every awkward file, all read in one run as in ingest."""
    files = sorted(_NASTY.rglob("*.pdf"))
    before = os.times()
    results = run_guarded(read_pdf, files, jobs=2, timeout_s=240, memory_mb=2048)
    named = {path.relative_to(_NASTY).as_posix(): result for path, result in results}
    return Awkward(named, sum(os.times()[2:4]) - sum(before[2:4]))


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Awkward:
    return made_once(tmp_path_factory, "awkward", _read)


@needs_nasty
def test_every_awkward_file_gives_text_or_a_reason(awkward: Awkward) -> None:
    assert awkward.seconds < 60
    assert len(awkward.results) == 78
    for name, result in awkward.results.items():
        if isinstance(result, PaperError):
            assert result.happened.endswith("."), name
            assert result.remedy.endswith("."), name
            assert "PARSE_" not in result.remedy, name  # none is slow, large or deadly
        else:
            assert any(page.text for page in result.pages), name
            text, page_map = clean(result.pages)
            text.encode()
            assert text, name
            assert len(page_map.starts) == len(result.pages), name


# Only their attachments need a password.
ONLY_ATTACHMENTS = {"encrypted/auth-event-ef-open.pdf", "encrypted/encrypted-attachment.pdf"}


@needs_nasty
def test_an_unreadable_file_has_its_reason(awkward: Awkward) -> None:
    with (_NASTY / "expected.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for row in rows:
        name, result = row["file"], awkward.results[row["file"]]
        happened = result.happened if isinstance(result, PaperError) else ""
        if name in ONLY_ATTACHMENTS:
            assert not happened
        elif row["password_used"] or row["mupdf_status"] == "locked":
            assert "encrypted" in happened, name
        elif row["category"] == "scanned":
            assert "scanned: no text layer" in happened, name
        elif "lfs_pointer" in name:
            assert "Git LFS pointer" in happened, name
        elif "truncated" in name:
            assert "damaged or cut short" in happened, name
        elif name == "scripts/type3font.pdf":  # its font maps every glyph to a control character
            assert "no text" in happened
        elif name == "scripts/issue5874.pdf":  # Arabic that comes out as Chinese, Lao and Latin letters
            assert "encoded" in happened
        elif int(row["mupdf_chars"] or 0) > 0:
            assert not happened, f"{name}: {happened}"


@needs_nasty
def test_big_files_are_read_whole(awkward: Awkward) -> None:
    for name, count in (("freeculture", 352), ("test-3820", 155), ("mmdetection-readthedocs-io-en-v2.18.0", 468)):
        result = awkward.results[f"big/{name}.pdf"]
        assert isinstance(result, ParsedPdf)
        assert [page.number for page in result.pages] == list(range(1, count + 1))


@needs_papers
@pytest.mark.parametrize(
    ("name", "title", "authors", "year"),
    [
        ("jose.00059", "mLEARn: An Implementation of Multi-layer Perceptron in C++", "Kalu U. Ogbureke", 2021),
        ("jose.00115", "Take a moderndive into introductory linear regression with R",
         "Albert Y. Kim, Chester Ismay, Max Kuhn", 2021),
        ("rescience-zenodo.3763416", "[Rp] Reproducing and replicating the OCamlP3l experiment",
         "Roberto Di Cosmo, Marco Danelutto", 2020),
        ("NIST.SP.800-207", "Zero Trust Architecture",
         "Scott Rose, Oliver Borchert, Stu Mitchell, Sean Connelly", 2020),
    ],
)  # fmt: skip
def test_front_matter_of_real_papers(name: str, title: str, authors: str, year: int) -> None:
    parsed = read_real(_PAPERS / f"{name}.pdf")
    assert (parsed.title, ", ".join(parsed.authors), parsed.year) == (title, authors, year)


@needs_papers
def test_running_lines_of_a_real_paper_are_removed() -> None:
    text, page_map = clean(read_real(_PAPERS / "NIST.SP.800-207.pdf").pages)
    assert "This publication is available free of charge from: https" not in text[page_map.starts[12] :]
    assert "\nZERO TRUST ARCHITECTURE\n" not in text[page_map.starts[12] :]
    page = text[slice(*page_map.bounds(13, len(text)))]
    assert "To lessen uncertainties (as they cannot be eliminated), the focus is on authentication," in page


@needs_papers
def test_a_real_paper_reads_in_order_with_its_words_whole() -> None:
    text, _ = clean(read_real(_PAPERS / "jose.00059.pdf").pages)
    flat = " ".join(text.split())
    landmarks = [
        "mLEARn: An Implementation of Multi-layer Perceptron in C++",
        "Kalu U. Ogbureke",
        "Currently, the functions implemented are sigmoid, tanh, rectified linear unit (ReLU), leaky ReLU, identity,",
        "CostFunction class is responsible for objective/loss functions.",
        "This will involve extending the DataReader class in data_reader.cpp to read a custom data set.",
        "Neural networks for pattern recognition. Oxford University Press.",
    ]
    places = [flat.find(landmark) for landmark in landmarks]
    assert -1 not in places
    assert places == sorted(places)
    assert "Journal of Open Source Education, 4(41), 59." not in flat
