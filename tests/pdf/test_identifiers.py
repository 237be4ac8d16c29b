"""The arXiv identifier of a paper: from the stamp, the metadata or the file name, and never another paper's."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from folio.ingest.pipeline import read_paper
from folio.papers.model import SourceFile
from folio.pdf.identifiers import arxiv_id, paper_doi
from folio.pdf.reader import read_pdf
from folio.store.fingerprint import Reading
from folio.system.files import sha256_file
from tests.helpers.paths import ROOT
from tests.helpers.pdfs import LEADING, column, save

pytestmark = pytest.mark.fast

STAMP = "arXiv:2301.01234v2  [cs.CL]  3 Jan 2023"
ABSTRACT = "We build on attention (see arXiv:1706.03762) and on pretraining, arXiv:1810.04805 [cs.CL]."


def _arxiv(*margin: str, file: str = "paper.pdf", **metadata: str) -> str:
    return arxiv_id(metadata, margin, file).value


def _stamped(path: Path, columns: int = 1, stamp: str = STAMP) -> Path:
    """A first page with a title, a body that cites other papers, and the stamp up its left margin."""
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((150, 80), "Words That Tell of Words", fontsize=18)
    bodies = [column(60 + 260 * number, 120, f"c{number}", 40) for number in range(columns)]
    for row in zip(*bodies, strict=True):  # row by row, so that the reader must reorder the columns
        for x, y, text in row:
            page.insert_text((x, y), text, fontsize=8)
    page.insert_text((60, 120 + 41 * LEADING), ABSTRACT, fontsize=8)
    page.insert_text((30, 560), stamp, fontsize=20, rotate=90)
    document.save(path)
    return path


@pytest.mark.parametrize(("columns", "name"), [(1, "a"), (2, "a"), (1, "1706.03762v5")])
def test_the_margin_stamp_takes_precedence_over_the_file_name(tmp_path: Path, columns: int, name: str) -> None:
    parsed = read_pdf(_stamped(tmp_path / f"{name}.pdf", columns))
    assert (parsed.arxiv, parsed.title) == ("2301.01234v2", "Words That Tell of Words")


def test_it_goes_into_the_library_with_the_paper(tmp_path: Path) -> None:
    path = _stamped(tmp_path / "a.pdf")
    paper = read_paper(SourceFile(str(path), "a.pdf", sha256_file(path)), Reading(300, 50), max_file_mb=10)
    assert (paper.id, paper.arxiv) == (sha256_file(path), "2301.01234v2")


def test_the_file_name_is_the_one_on_disk(tmp_path: Path) -> None:
    assert read_pdf(save(tmp_path / "2301.01234v1.pdf", [[(72, 72, "Hello World")]])).arxiv == "2301.01234v1"


@pytest.mark.parametrize(
    ("stamp", "found"),
    [
        ("arXiv:2301.01234v1 [cs.CL] 3 Jan 2023", "2301.01234v1"),
        ("arXiv:0704.0001v12  [astro-ph.CO]  31 Mar 2009", "0704.0001v12"),
        ("arXiv:1412.9999v1 [cond-mat.mes-hall] 30 Dec 2014", "1412.9999v1"),
        ("arXiv:hep-th/9901001v1  1 Jan 1999", "hep-th/9901001v1"),
        ("arXiv:hep-th/9711200 v3 22 Jan 1998", "hep-th/9711200v3"),
        ("arXiv:math.GT/0309136v1 7 Sep 2003", "math.GT/0309136v1"),
    ],
)
def test_stamps(stamp: str, found: str) -> None:
    assert _arxiv("Journal of Things 7 (2023)", stamp) == found


@pytest.mark.parametrize(
    "margin",
    [
        ["arXiv:2301.01234"],
        ["arXiv:2301.01234v1"],
        ["arXiv:2301.01234v1 [cs.CL]"],
        ["arXiv:2301.01234v1 3 Jan 2023"],
        ["[1] Devlin. BERT. arXiv:1810.04805v2 [cs.CL] 24 May 2019."],
        ["arXiv:1706.03762v5 [cs.CL] 6 Dec 2017", "arXiv:1810.04805v2 [cs.CL] 24 May 2019"],
        ["arXiv:2313.01234v1 [cs.CL] 3 Jan 2023"],
        ["arXiv:2301.0123v1 [cs.CL] 3 Jan 2023"],
        ["arXiv:1001.01234v1 [cs.CL] 3 Jan 2010"],
        ["arXiv:hep-th/9913001v1 1 Jan 1999"],
        ["arXiv:hep-th/0801001v1 1 Jan 2008"],
        ["arXiv:novels/9901001v1 1 Jan 1999"],
    ],
)
def test_incomplete_or_conflicting_stamps_do_not_count(margin: list[str]) -> None:
    assert _arxiv(*margin) == ""


@pytest.mark.parametrize(
    "lines",
    [
        [ABSTRACT],
        ["[1] Devlin. BERT: pre-training. 2018.", "arXiv:1810.04805v2"],
        ["[1] Devlin. BERT. arXiv:1810.04805v2 [cs.CL] 24 May 2019."],
        ["References", "Devlin. BERT.", "arXiv:1810.04805v2 [cs.CL] 24 May 2019"],
        ["On Otters", "", "", "arXiv:1810.04805", "", "", "Otters swim."],
    ],
)
def test_a_paper_that_only_cites_has_none(tmp_path: Path, lines: list[str]) -> None:
    spots = [(72.0, 100 + LEADING * row, line) for row, line in enumerate(lines)]
    path = save(tmp_path / "otters.pdf", [spots], metadata={"keywords": "otters, arXiv:1810.04805"})
    assert read_pdf(path).arxiv == ""


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"subject": "https://arxiv.org/abs/2301.01234v1"}, "2301.01234v1"),
        ({"subject": "http://arxiv.org/pdf/hep-th/9901001v1.pdf"}, "hep-th/9901001v1"),
        ({"subject": "https://doi.org/10.48550/arXiv.2301.01234"}, "2301.01234"),
        ({"keywords": "language, arXiv:2301.01234; models"}, ""),
        ({"keywords": "https://arxiv.org/abs/2301.01234, otters"}, ""),
        ({"keywords": "arXiv:2301.01234", "subject": "https://arxiv.org/abs/2301.01234v3"}, "2301.01234v3"),
        ({"title": "arXiv:2301.01234v1  [cs.CL]  3 Jan 2023"}, ""),
        ({"title": "Comment on arXiv:0705.1234"}, ""),
        ({"keywords": "arXiv:2301.01234, arXiv:2301.01235"}, ""),
        ({"author": "arXiv:2301.01234"}, ""),
    ],
)
def test_metadata(metadata: dict[str, str], found: str) -> None:
    assert _arxiv(**metadata) == found
    assert _arxiv(STAMP, **metadata) == "2301.01234v2"


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("2301.01234v2.pdf", "2301.01234v2"),
        ("/some/where/0704.0001.PDF", "0704.0001"),
        ("arXiv-2301.01234.pdf", "2301.01234"),
        ("arxiv_1412.9999v1.pdf", "1412.9999v1"),
        ("2313.01234.pdf", ""),
        ("2300.01234.pdf", ""),
        ("2012.1234.pdf", ""),
        ("1001.12345.pdf", ""),
        ("0612.1234.pdf", ""),
        ("10.1234.pdf", ""),
        ("2301.01234 notes.pdf", ""),
        ("vaswani-1706.03762.pdf", ""),
        ("2301.01234v2/paper.pdf", ""),
        ("20230101234.pdf", ""),
    ],
)
def test_names_of_files(file: str, found: str) -> None:
    assert _arxiv(file=file) == found


@pytest.mark.parametrize(
    ("text", "doi", "sure"),
    [
        ("https://doi.org/10.9999/s41598-\n020-01234-5", "10.9999/s41598-020-01234-5", True),
        ("https://doi.org/10.9999/s41598‐\n\n020‐01234‐5\nNext", "10.9999/s41598-020-01234-5", True),
        ("https://doi.org/10.9999/journal.pone.\n0263302", "10.9999/journal.pone.0263302", True),
        ("doi:10.9999/journal.pone\n.0263302\nNext", "10.9999/journal.pone.0263302", True),
        ("DOI 10.9999/j.tcs.2011.05.\n009", "10.9999/j.tcs.2011.05.009", True),
        ("https://doi.org/10.9999/\nloom.01234", "10.9999/loom.01234", True),
        ("https://doi.org/\n10.9999/loom.01234\nNext", "10.9999/loom.01234", True),
        ("https://doi.org/10.9999/loom.00075\n1", "10.9999/loom.00075", True),  # a page number
        ("https://doi.org/10.9999/loom.00075.\nThe 3 looms", "10.9999/loom.00075", True),
        ("https://doi.org/10.9999/loom.00075.\n1", "10.9999/loom.00075", False),  # either
        ("https://doi.org/10.9999/loom.02\n63302", "10.9999/loom.02", False),
        ("https://doi.org/10.9999/s41598-\nThe loom is", "", False),
        ("https://doi.org/10.9999/lo-\nom.0263302", "", False),  # the hyphen may be the line's
    ],
)
def test_a_doi_that_goes_on_in_the_next_line(text: str, doi: str, sure: bool) -> None:
    found = paper_doi({}, f"A Title\nWe weave.\n{text}")
    assert (found.value, found.sure) == (doi, sure)


def test_the_metadata_tells_where_a_broken_doi_ends() -> None:
    found = paper_doi({"doi": "10.9999/loom.0263302"}, "https://doi.org/10.9999/loom.02\n63302")
    assert (found.value, found.sure) == ("10.9999/loom.0263302", True)


@pytest.mark.parametrize(
    "notice",
    [
        "Correction to: https://doi.org/10.9999/loom.5",
        "Correction to: Looms (2018) 12:1-10\nhttps://doi.org/10.9999/loom.5",
        "Erratum to https://doi.org/10.9999/loom.5, published online 2 May 2018",
        "This corrects the article DOI: 10.9999/loom.5",
        "Refers to: doi:10.9999/loom.5",
        "Comment on: A. Lovelace, https://doi.org/10.9999/loom.5",
    ],
)
def test_a_notice_does_not_take_the_doi_of_its_article(notice: str) -> None:
    assert paper_doi({}, f"A Title\n{notice}").value == ""
    assert paper_doi({}, f"A Title\n{notice}\nhttps://doi.org/10.9999/loom.7").value == "10.9999/loom.7"


def test_a_notice_has_the_doi_above_its_heading() -> None:
    assert paper_doi({}, "https://doi.org/10.9999/loom.7\nErratum\nAda Lovelace").value == "10.9999/loom.7"


@pytest.mark.parametrize(
    ("case", "doi"),
    [
        ("dois_split/split_dash.pdf", "10.9999/s41598-020-01234-5"),
        ("dois_split/split_dot.pdf", "10.9999/journal.pone.0263302"),
        ("correction/a_original.pdf", "10.9999/coast.2018.500"),
        ("correction/b_correction.pdf", ""),
    ],
)
def test_the_doi_of_a_file(case: str, doi: str) -> None:
    assert read_pdf(ROOT / "tests" / "data" / "cases" / case).metadata.doi.value == doi
