"""A table's files: what papers and people wrote is only text in them."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from pathlib import Path

import docx
import pytest
from markdown_it import MarkdownIt

from folio.store import tables
from folio.store.table_places import placed, row_of, stored_finding
from folio.store.tables import Counts, Fill, TableCell, TableColumn
from folio.table import export
from folio.table.shown import ShownTable
from tests.helpers.engines import add, on_disk, paper

PAGE = "http://127.0.0.1:8420/"
HOSTILE = (
    "=HYPERLINK(\"http://evil\",\"x\")",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "  =cmd|' /C calc'!A0",
    "＝1+1",
    "<script>alert(1)</script> [x](javascript:x) | ]]> &amp; `c` \u202eABC\x1b[31m <img src=x onerror=y>",
    "{{=1}} ${x} INCLUDETEXT \"c:\\\\x\" \u0000",
)


@pytest.fixture
def shown(tmp_path: Path) -> ShownTable:
    """A table whose paper, headings and cells have hostile words, with a cell in each state."""
    library = on_disk(tmp_path / "library.sqlite").library(create=True)
    library.set_fingerprint({"embedder": "test", "dimension": "4"})
    text = "\n".join(each.strip() for each in HOSTILE)
    add(library, "=a.pdf", paper("a", text.ljust(80, ".")))
    (stored,) = library.papers()
    whole = library.text(stored.id, 0, stored.length)
    columns = [TableColumn(f"c{at}", words or "x", words) for at, words in enumerate(HOSTILE)]
    columns += [TableColumn("c97", "Length", "length", "number", "km"), TableColumn("c98", "Is it?", "", "yes_no")]
    columns += [TableColumn("c99", "None")]
    id = tables.add(library.database, HOSTILE[0], {}, columns, [row_of(stored)])
    fill = Fill(id)
    tables.begin(library.database, fill, "here")
    for column, words in zip(columns, HOSTILE, strict=False):
        line = words.strip()
        start = whole.index(line[:8])
        finding = stored_finding(stored, whole, (start, start + 8), words, None, by_model=True)
        tables.land(library.database, fill, "here", column, stored.id, TableCell("found", (finding,)))
    number = stored_finding(stored, whole, (0, 9), "−5.5 km", -5.5, by_model=False)
    for name, cell in (
        ("c97", TableCell("found", (number, number))),
        ("c98", TableCell("found", (stored_finding(stored, whole, (0, 9), "yes", None, by_model=False),))),
        ("c99", TableCell("not_found", closest=stored_finding(stored, whole, (0, 9), "", None, by_model=False))),
    ):
        (wanted,) = [each for each in columns if each.id == name]
        tables.land(library.database, fill, "here", wanted, stored.id, cell)
    tables.edit_cell(library.database, id, "c1", stored.id, "=1+1\n@x")
    keys = library.citation_keys()
    made = ShownTable(placed(library, id), Counts(), keys)
    library.close()
    return made


def test_no_cell_of_a_csv_is_a_formula(shown: ShownTable) -> None:
    text = export.csv_text(shown)
    assert text.startswith("\ufeffKey,")
    headings, row = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    number = headings.index("Length (km)")
    assert row[number] == "-5.5"
    assert float(row.pop(number)) == -5.5  # a number of ours, which is no formula
    for cell in (*headings, *row):
        assert not re.match(r"\s*[=+\-@\t\r＝＋－＠]", cell), cell
        assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", cell), cell
    assert row[headings.index("'+1+1")] == "'=1+1 @x (edited by hand)"
    assert row[-1] == "not found"
    assert row[headings.index("Is it?") - 1] == "yes"
    key = next(iter(shown.keys.values()))
    assert row[number].startswith("−5.5 km “=HYPERLIN” [")
    assert row[number].count(f"[{key}, p. i]") == 2


def test_the_closest_place_of_what_was_not_found_is_said_to_be_that(shown: ShownTable) -> None:
    (row,), column = shown.table.rows, shown.table.columns[-1]
    key = next(iter(shown.keys.values()))
    says = f"not found; closest place: “=HYPERLIN” [{key}, p. i]"
    assert export.said(shown, row, column) == [says]
    assert export.found_lines(shown.cell(row, column), key) == [says]


def test_markdown_has_text_and_links_of_its_own_alone(shown: ShownTable) -> None:
    text = export.markdown(shown, PAGE)
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert "<script" not in html
    assert "<img" not in html
    links = re.findall(r'href="([^"]*)"', html)
    assert links
    assert all(link.startswith(f"{PAGE}#paper/{'a' * 64}/p/") for link in links)
    assert "not found; closest place: “=HYPERLIN” " in re.sub(r"</?a[^>]*>", "", html)
    cells = html.count("<td")
    assert cells == len(shown.table.columns) + 1
    assert html.count("<th") - html.count("<thead") == cells


def test_a_word_document_has_no_fields_and_links_of_its_own_alone(shown: ShownTable) -> None:
    content = export.word(shown, PAGE)
    document = docx.Document(io.BytesIO(content))
    (made,) = document.tables
    assert len(made.rows) == 2
    assert made.rows[1].cells[2].text == "=1+1 @x (edited by hand)"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        body = archive.read("word/document.xml").decode()
        links = re.findall(r'Target="(http[^"]*)"', archive.read("word/_rels/document.xml.rels").decode())
        assert not [name for name in archive.namelist() if "vba" in name.lower() or "embed" in name.lower()]
    assert "<w:fldSimple" not in body
    assert "<w:instrText" not in body
    assert all(link.startswith(f"{PAGE}#paper/{'a' * 64}/p/") for link in links if "schemas" not in link)


def test_bibtex_has_the_papers_of_the_rows(shown: ShownTable) -> None:
    key = next(iter(shown.keys.values()))
    assert f"@misc{{{key}," in export.bibtex(shown, {})
