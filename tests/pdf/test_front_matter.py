"""Every field of the front matter: where it was read, and whether it is sure; on made papers and on real ones."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pymupdf
import pytest

from benchmarks.front_matter import Verdict, compare
from folio.papers.metadata import Field, Metadata, PersonName
from folio.pdf.front_matter import find_abstract
from folio.pdf.identifiers import paper_doi
from folio.pdf.reader import read_pdf
from tests.helpers.exhaustive import sample
from tests.helpers.paths import ROOT, SHARED
from tests.helpers.pdfs import Set, body, front
from tests.helpers.real_papers import read_real

TITLE = "Weaving Patterns on Distributed Looms"
HEAD = [Set(80, TITLE, 18, "hebo"), Set(105, "Ada Lovelace and Robbert van Babbage", 12)]
XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" prism:doi="10.1234/looms.5">'
    "<dc:title><rdf:Alt><rdf:li xml:lang='x-default'>{title}</rdf:li></rdf:Alt></dc:title>"
    "<dc:creator><rdf:Seq><rdf:li>Ada Lovelace</rdf:li><rdf:li>Charles Babbage</rdf:li></rdf:Seq></dc:creator>"
    "</rdf:Description></rdf:RDF></x:xmpmeta>"
)


def _read(path: Path, lines: list[Set], metadata: dict[str, str] | None = None) -> Metadata:
    return read_pdf(front(path / "a.pdf", [lines], metadata)).metadata


def test_everything_from_the_page(tmp_path: Path) -> None:
    lines = [
        *HEAD,
        Set(130, "SIGLOOM '14, June 5-8, 2014, London. https://doi.org/10.1234/looms.7", 8, "helv"),
        Set(160, "Abstract", 11, "tibo", 72),
        Set(175, "Looms weave patterns, and we show how they are dis-", x=72),
        Set(187, "tributed among many mills without a thread being lost or tangled on the way.", x=72),
    ]
    found = _read(tmp_path, [*lines, *body(215, 1, 10, "1 Introduction")])
    abstract = "Looms weave patterns, and we show how they are distributed among many mills without a thread being lost"
    assert (found.title, found.authors, found.year, found.doi, found.abstract, found.arxiv) == (
        Field(TITLE, "page", True),
        Field((PersonName("Lovelace", "Ada"), PersonName("van Babbage", "Robbert")), "page", True),
        Field(2014, "page", True),
        Field("10.1234/looms.7", "page", True),
        Field(f"{abstract} or tangled on the way.", "page", True),
        Field(""),
    )


def test_metadata_where_the_page_has_nothing(tmp_path: Path) -> None:
    found = _read(tmp_path, body(60), {"title": TITLE, "author": "Lovelace, Ada", "creationDate": "D:20140102"})
    assert found.title == Field(TITLE, "pdf metadata", False)
    assert found.authors == Field((PersonName("Lovelace", "Ada"),), "pdf metadata", False)
    assert found.year == Field(2014, "file date", False)


def test_metadata_that_names_a_line_of_the_page(tmp_path: Path) -> None:
    lines = [Set(60, "ENGINES QUARTERLY", 26, "hebo"), *HEAD, *body(150, 1, 10, "Abstract")]
    assert _read(tmp_path, lines, {"title": TITLE}).title == Field(TITLE, "page", True)


def test_nothing_is_found_on_an_empty_page(tmp_path: Path) -> None:
    found = read_pdf(front(tmp_path / "a.pdf", [[Set(400, "12", 9)], body(60)])).metadata
    assert (found.title, found.authors, found.doi, found.venue) == (Field(""), Field(()), Field(""), Field(""))


def test_an_xmp_packet(tmp_path: Path) -> None:
    front(tmp_path / "a.pdf", [body(60)])
    document = pymupdf.open(tmp_path / "a.pdf")
    document.set_xml_metadata(XMP.format(title=TITLE))
    document.save(tmp_path / "b.pdf")
    found = read_pdf(tmp_path / "b.pdf").metadata
    assert found.title == Field(TITLE, "pdf metadata", False)
    assert [str(name) for name in found.authors.value] == ["Ada Lovelace", "Charles Babbage"]
    assert found.doi == Field("10.1234/looms.5", "pdf metadata", True)


def test_it_can_be_sent_between_processes(tmp_path: Path) -> None:
    parsed = read_pdf(front(tmp_path / "a.pdf", [[*HEAD, *body(150)]]))
    assert pickle.loads(pickle.dumps(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "doi", "sure"),
    [
        ("DOI\n10.5281/zenodo.3160540", "10.5281/zenodo.3160540", True),
        ("doi:10.1145/2851141.2851168.", "10.1145/2851141.2851168", True),
        ("https://doi.org/10.1016/S0004-3702(97)00043-X)", "10.1016/S0004-3702(97)00043-X", True),
        ("DOI 10.1234/a.1\nCode is available at looms.org - DOI 10.1234/code.2", "10.1234/a.1", True),
        ("DOI 10.1234/a.1\nand DOI 10.1234/b.2", "10.1234/a.1", False),
        ("10.1234/a.1", "10.1234/a.1", False),
        ("No identifier.\nReferences\n[1] Mills. doi:10.1234/cited.9", "", False),
        ("http://dx.doi.org/doi-info-to-be-provided-later", "", False),
    ],
)
def test_dois(text: str, doi: str, sure: bool) -> None:
    found = paper_doi({}, text)
    assert (found.value, found.sure) == (doi, sure)


def test_a_doi_in_the_metadata_that_the_page_repeats() -> None:
    text = "DOI 10.1234/b.2 and DOI 10.1234/a.1"
    assert paper_doi({"doi": "10.1234/a.1"}, text) == Field("10.1234/a.1", "page", True)


@pytest.mark.parametrize("author", ["Ada Lovelace and Robbert van Babbage, Stanford University", "Stanford University"])
def test_an_institution_in_the_metadata_is_no_author(tmp_path: Path, author: str) -> None:
    found = _read(tmp_path, [*HEAD, *body(150, 1, 10, "Abstract")], {"title": TITLE, "author": author})
    assert [str(name) for name in found.authors.value] == ["Ada Lovelace", "Robbert van Babbage"]
    assert _read(tmp_path, body(60), {"title": TITLE, "author": "Stanford University"}).authors == Field(())


@pytest.mark.parametrize(
    ("lines", "title", "author"),
    [
        ([Set(80, "Loomworks", 24, "hebo"), Set(120, "Loomworks Authors", 14), Set(200, "Oct 28, 2021", 11)],
         "Loomworks", "Loomworks Authors"),  # called like the title
        ([Set(80, TITLE, 18, "hebo"), Set(105, "Ada Lovelace", 12), Set(120, "Tunes Entertainment, Ltd.", 10, "tiit"),
          *body(150, 1, 10, "Abstract")], TITLE, "Ada Lovelace, Tunes Entertainment"),  # not printed as an author
    ],
)  # fmt: skip
def test_doubtful_authors_are_not_sure(tmp_path: Path, lines: list[Set], title: str, author: str) -> None:
    assert not _read(tmp_path, lines, {"title": title, "author": author}).authors.sure


def test_an_abstract_without_an_end_is_ignored() -> None:
    assert find_abstract(["Abstract\n" + "words that never end " * 1000]) == Field("")


# The publisher's record that this label was taken from is another paper's: the page says 2021, and a DOI of its own.
WRONG_LABELS = ("rescience-zenodo.5657320.pdf",)


def _verdicts(labels: Path, folder: Path) -> list[Verdict]:
    found = [json.loads(line) for line in labels.read_text(encoding="utf-8").splitlines()]
    found = [label for label in found if label["file"] not in WRONG_LABELS]
    return [
        verdict for label in sample(found, every=6) for verdict in compare(label, read_real(folder / label["file"]))
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("labels", "folder"),
    [
        (ROOT / "benchmarks" / "mixed-front-matter.jsonl", SHARED / "mixed"),
        (SHARED / "metadata" / "dev.jsonl", SHARED / "papers"),
    ],
    ids=["mixed", "journals"],
)
def test_real_papers(labels: Path, folder: Path) -> None:
    if not folder.is_dir() or not labels.is_file():
        pytest.skip(f"the real papers are not here (../shared/{folder.name})")
    verdicts = _verdicts(labels, folder)
    for field, least in {"title": 0.93, "authors": 0.85, "year": 0.93}.items():
        right = [verdict.right for verdict in verdicts if verdict.field == field]
        assert sum(right) >= least * len(right) - 1, [verdict for verdict in verdicts if not verdict.right]
    sure = [verdict.right for verdict in verdicts if verdict.sure]
    assert sum(sure) >= 0.98 * len(sure)
