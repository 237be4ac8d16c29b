"""Signs that a page shows and its text does not name: ticks, brackets, letters of fonts without a map to Unicode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pymupdf
import pytest

from folio.ingest.cleaning import clean
from folio.pdf.reader import read_pdf
from tests.helpers.pdfs import save

# What the glyphs of a font made here show
_BOX = b"1000 0 0 0 1000 1000 d1 60 w 100 100 800 800 re S"
_TICK = b"0 0 0 0 1000 1000 d1 100 400 m 400 100 l 900 900 l 850 950 l 400 250 l 150 450 l f"
_BLANK = b"500 0 d0"
_SAID = "The participant has given written consent before the first visit of the study."


def drawn(path: Path, lines: Sequence[bytes], font: str = "Forms", turned: bool = False) -> Path:
    """A page whose lines begin with these codes of a Type 3 font, which has no map to Unicode.

    The code 1 is an empty box that the font names, 7 a blank, and every other one a tick that takes no room.
    """
    document = pymupdf.open()
    page = document.new_page()
    page.insert_font("helv")

    def stream(content: bytes) -> int:
        xref: int = document.get_new_xref()
        document.update_object(xref, "<<>>")
        document.update_stream(xref, content)
        return xref

    names = [
        {1: "square", 7: "nothing"}.get(code, f"own{chr(97 + code // 16)}{chr(97 + code % 16)}") for code in range(256)
    ]
    widths = " ".join({1: "1000", 7: "500"}.get(code, "0") for code in range(256))
    procedures = {"square": stream(_BOX), "nothing": stream(_BLANK)}
    tick = stream(_TICK)
    glyphs = " ".join(f"/{name} {procedures.get(name, tick)} 0 R" for name in names)
    made = document.get_new_xref()
    document.update_object(
        made,
        f"<</Type/Font/Subtype/Type3/Name/{font}/FontBBox[0 0 1000 1000]/FontMatrix[.001 0 0 .001 0 0]"
        f"/FirstChar 0/LastChar 255/Widths[{widths}]/CharProcs<<{glyphs}>>/Resources<<>>"
        f"/Encoding<</Type/Encoding/Differences[0 {' '.join(f'/{name}' for name in names)}]>>>>",
    )
    kind, resources = document.xref_get_key(page.xref, "Resources")
    place, under = (int(resources.split()[0]), "") if kind == "xref" else (page.xref, "Resources/")
    document.xref_set_key(place, f"{under}Font/Own", f"{made} 0 R")
    shown = b"".join(
        b"BT 80 %d Td /Own 12 Tf <%s> Tj /helv 10 Tf ( Line %d: %s) Tj ET\n"
        % (740 - 30 * n, codes.hex().encode(), n, _SAID.encode())
        for n, codes in enumerate(lines)
    )
    page.set_contents(stream(shown))
    if turned:
        page.set_rotation(90)
    document.save(path)
    document.close()
    return path


def read(path: Path) -> list[str]:
    text, _ = clean(read_pdf(path).pages)
    return [line.split("Line")[0].strip() for line in text.splitlines() if "Line" in line]


@pytest.mark.parametrize("turned", [False, True])
def test_a_ticked_box_is_not_read_as_an_empty_one(tmp_path: Path, turned: bool) -> None:
    boxes = [b"\x14\x01", b"\x01", b"\x01\x14"]
    assert read(drawn(tmp_path / "a.pdf", boxes, turned=turned)) == ["\ufffd□", "□", "□\ufffd"]


@pytest.mark.parametrize("code", [0x00, 0x03, 0x09, 0x0A, 0x0C, 0x0D, 0x1F, 0x7F, 0x85, 0x9F])
def test_an_unnamed_sign_is_marked_if_it_leaves_ink(tmp_path: Path, code: int) -> None:
    lines = [bytes([code, 1]), b"\x07\x01\x07", b"\x07\x14"]  # 7 leaves none
    assert read(drawn(tmp_path / "a.pdf", lines)) == ["\ufffd□", "□", "\ufffd"]


@pytest.mark.parametrize(
    ("font", "codes", "signs"),
    [
        ("Wingdings-Regular", b"\xa8\xfe\xfd\xfb\xfc", "□☑☒✗✓"),
        ("ABCDEF+Wingdings2", b"\xa3RPO", "□☑✓✗"),
        ("ABCDEF+ZapfDingbats", b"3458ln", "✓✔✕✘●■"),
        ("ABCDEF+CMEX10", b"\x00\x02\x10\x0c\x0d\x11\x03", "([(|‖)]"),
        ("Helvetica", b"\xfe4", "\ufffd4"),
    ],
)
def test_signs_of_known_fonts_are_read(tmp_path: Path, font: str, codes: bytes, signs: str) -> None:
    assert read(drawn(tmp_path / "a.pdf", [codes], font)) == [signs]


def test_a_ticked_field_of_a_form_has_a_tick(tmp_path: Path) -> None:
    document = pymupdf.open(save(tmp_path / "a.pdf", [[(110, 100 + 30 * n, f"Line {n}: {_SAID}") for n in range(2)]]))
    page = document[0]
    for n, is_on in enumerate((True, False)):
        field = pymupdf.Widget()
        field.field_type, field.field_name = pymupdf.PDF_WIDGET_TYPE_CHECKBOX, f"consent {n}"
        field.rect, field.border_color = pymupdf.Rect(85, 90 + 30 * n, 99, 104 + 30 * n), (0, 0, 0)
        field.field_value = is_on
        page.add_widget(field)
    document.saveIncr()
    document.close()
    (page_read,) = read_pdf(tmp_path / "a.pdf").pages
    assert page_read.text.count("✓") == 1
    assert "3" not in page_read.text


def test_a_page_of_signs_alone_is_as_unreadable_as_before(tmp_path: Path) -> None:
    text = read_pdf(drawn(tmp_path / "a.pdf", [bytes(range(0x10, 0x20))] * 3)).pages[0].text
    assert text.count("\ufffd") == 3 * 16
    assert text.count(_SAID) == 3


@pytest.mark.parametrize("encoding", ["/WinAnsiEncoding", "<</Differences[48 /H11002]>>", "99999 0 R"])
def test_a_font_that_is_no_object_of_its_own_costs_no_page(tmp_path: Path, encoding: str) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((60, 80), "Herons nest in reeds.")
    font = f"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding {encoding}>>"
    document.xref_set_key(page.xref, "Resources", f"<</Font<</helv {font}>>>>")
    document.save(tmp_path / "a.pdf")
    [read] = read_pdf(tmp_path / "a.pdf").pages
    assert (read.text, read.problem) == ("Herons nest in reeds.", "")
