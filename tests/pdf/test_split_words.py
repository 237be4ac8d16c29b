"""Words that a font's widths tear apart are joined; code, formulas and sound pages stay as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pymupdf
import pytest

from folio.pdf import legible
from folio.pdf.reader import read_pdf
from tests.helpers.exhaustive import sample
from tests.helpers.paths import SHARED
from tests.helpers.real_papers import read_real

PROSE = """can be viewed as a way to view the algorithm we describe in
the previous section and it follows that the system is known
to work well whenever we view the event as a whole because
the new value below is viewed by every server in the group
which we now describe in the way that the viewed event shows
a process may be asked to view a value twice before it knows
that the vote below was kept by every known server in the view
and the whole group can be viewed as one server by the way"""
LISTING = """for ( int k = 0 ; k < size ( ) ; k ++) { k b e way ( view ) ;
b = view ( k ) ; we < be ; w = be ( vote ) ; k = view ( b ) ;"""


def torn(text: str) -> str:
    """The text with a ~ at each pair of letters that TeX kerns apart."""
    return re.sub(r"(b|w|k|v)(?=[aeio])", r"\1~", re.sub(r"([a-z])(?=ed\b)", r"\1~", text))


def paper(path: Path, text: str, pages: int = 3, kern: int = 200) -> Path:
    """A PDF in which the letters at each ~ stand so many thousandths of an em apart; a space is 278 wide."""
    document = pymupdf.open()
    for _ in range(pages):
        page = document.new_page()
        page.insert_font("helv")
        lines = (f" -{kern} ".join(f"({part})" for part in _escaped(line).split("~")) for line in text.split("\n"))
        content = "BT /helv 10 Tf 72 760 Td 12 TL " + "".join(f"[{line}] TJ T* " for line in lines) + "ET"
        stream = document.get_new_xref()
        document.update_object(stream, "<<>>")
        document.update_stream(stream, content.encode())
        page.set_contents(stream)
    document.save(path)
    document.close()
    return path


def _escaped(text: str) -> str:
    return re.sub(r"([()\\])", r"\\\1", text)


def test_torn_words_are_joined(tmp_path: Path) -> None:
    path = paper(tmp_path / "a.pdf", torn(PROSE))
    with pymupdf.open(path) as document:
        assert document[0].get_text().startswith("can b e v iew ed as a w ay to v iew the algorithm w e describ e in")
    assert read_pdf(path).pages[0].text == PROSE


def test_words_that_are_not_torn_stay_apart(tmp_path: Path) -> None:
    variables = PROSE.replace(" a ", " b ").replace(" the ", " k ")
    assert read_pdf(paper(tmp_path / "a.pdf", variables)).pages[0].text == variables


def test_two_words_close_together_stay_two_words(tmp_path: Path) -> None:
    close = torn(PROSE) + "\nwe place~holder and so the holder is in place for the event"
    text = read_pdf(paper(tmp_path / "a.pdf", close)).pages[0].text
    assert text.split("\n")[-1] == "we place holder and so the holder is in place for the event"


def test_code_stays_as_it_is(tmp_path: Path) -> None:
    text = read_pdf(paper(tmp_path / "a.pdf", torn(PROSE + "\n" + LISTING))).pages[0].text
    assert text.startswith(PROSE)
    assert "k b e w ay ( v iew ) ;" in text


def test_a_page_in_which_all_letters_stand_alone_is_put_into_words_by_its_gaps(tmp_path: Path) -> None:
    spaced = "\n".join(" ".join("vectorforce=0;") for _ in range(20))
    text = read_pdf(paper(tmp_path / "b.pdf", spaced.replace(" ", "~"))).pages[0].text
    assert text == "\n".join(["vectorforce=0;"] * 20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROSE * 3, False),
        (torn(PROSE).replace("~", " "), True),
        ("where b and k are the keys of node v, and w is its value " + "as in the text above " * 20, False),
    ],
)
def test_a_page_is_looked_at_if_many_letters_stand_alone(text: str, expected: bool) -> None:
    assert legible.may_be_split(text) is expected


def test_no_word_of_real_papers_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    papers = sorted((SHARED / "papers").glob("*.pdf"))
    if not papers:
        pytest.skip("the papers ../shared/papers are not here")
    for path in sample(papers, every=8):
        with monkeypatch.context() as without:
            without.setattr(legible, "may_be_split", lambda _: False)
            expected = read_pdf(path).pages
        assert read_real(path).pages == expected, path.name
