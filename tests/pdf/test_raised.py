"""Raised and lowered characters: an exponent can be seen to be one, and the mark of a note stands apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymupdf
import pytest

from folio.ingest.cleaning import clean
from folio.pdf.raised import write_notation
from folio.pdf.reader import read_pdf
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

CASES = ROOT / "tests" / "data" / "cases"


def line(text: str) -> dict[str, Any]:
    """A line in 10 points. ^{2} is smaller and raised, _{2} smaller and lowered, |2} small on the line, /x/ italic."""
    spans: list[dict[str, Any]] = []
    for part in text.replace("^{", "\0^").replace("_{", "\0_").replace("|{", "\0|").replace("}", "\0 ").split("\0"):
        kind, shown = (part[0], part[1:]) if part[:1] in "^_| " and spans else (" ", part)
        size, y = {" ": (10.0, 100.0), "^": (7.0, 96.4), "_": (7.0, 102.0), "|": (7.0, 100.0)}[kind]
        if shown:
            spans.append({"text": shown, "size": size, "flags": 0, "font": "Serif", "origin": (0.0, y)})
    return {"dir": (1.0, 0.0), "spans": spans}


def written(*texts: str) -> list[str]:
    lines = [line(text) for text in texts]
    write_notation([{"lines": lines}])
    return ["".join(span["text"] for span in one["spans"]) for one in lines]


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        ("a key of 2^{64} bits", "a key of 2⁶⁴ bits"),
        ("3.1 × 10^{-4} per second", "3.1 × 10⁻⁴ per second"),
        ("3.1 × 10 ^{−4} per second", "3.1 × 10⁻⁴ per second"),
        ("the inverse f ^{−1} of f|{ }^{2}", "the inverse f⁻¹ of f²"),
        ("10^{−}^{9} mol", "10⁻⁹ mol"),
        ("an area of 14 m^{2}, or 3 km^{2}", "an area of 14 m², or 3 km²"),
        ("at 5 cm s^{-1} of CO_{2}", "at 5 cm s⁻¹ of CO₂"),
        ("in time O(n^{2}) for 2^{n} strings, 2^{k} keys, x^{k+1}", "in time O(n²) for 2ⁿ strings, 2^k keys, x^(k+1)"),
        ("sin^{2} of it, and (a + b)^{2}", "sin² of it, and (a + b)²"),
        ("a slope (n = 48)^{3} of (2x + 1)^{2}, and E = mc^{2}", "a slope (n = 48) ³ of (2x + 1)², and E = mc²"),
        ("p^{3/2} and 2^{1/2}", "p^(3/2) and 2^(1/2)"),
        ("1/√_{2} of it, Edited _{Sinha}", "1/√2 of it, Edited Sinha"),
        ("T_{max} and x_{i} and y_{i,j}", "T_max and x_i and y_(i,j)"),
        ("w_{max}", "w_max"),
        ("2^{1000} 2^{1001}", "2¹⁰⁰⁰ 2¹⁰⁰¹"),
        ("x_{t}_{−1} is before", "x_(t−1) is before"),
        ("a key in B^{32⋅(1+bitlen}^{ }^{(n))}, and so.^{3}^{ }^{4}", "a key in B^(32⋅(1+bitlen(n))), and so. ³ ⁴"),
        ("Konrad Hinsen^{1,}^{ }^{ID} and", "Konrad Hinsen ¹, ID and"),
        ("A_{Min}_{ }_{Q,}_{ }_{Max}(x), and 4_{1}_{ }_{2}", "A_(Min Q, Max)(x), and 4₁ ₂"),
        ("Koustuv Hinsen|{ }^{ID}, and Serge Sinha^{ID}", "Koustuv Hinsen ID, and Serge SinhaID"),
        ("Ca^{2+} and Na^{+} and ^{18}O", "Ca²⁺ and Na⁺ and ¹⁸O"),
        ("5^{1}/|{4} inches, 5^{3}/|{16} inches", "5¼ inches, 5 3/16 inches"),
        ("the 21^{st} of May, 37 ^{o}C, 37^{o}C", "the 21st of May, 37 oC, 37°C"),
        ("The mean was 92.4^{3} percent", "The mean was 92.4 ³ percent"),
        ("as a method^{3} of Boeing^{1}, which", "as a method ³ of Boeing ¹, which"),
        ("it was so.^{3,4} Then", "it was so. ³,⁴ Then"),
        ("in all (as said before)^{12} and", "in all (as said before) ¹² and"),
        ("a yield of 31%^{a}, a dose of 12.5^{b}", "a yield of 31% ^a, a dose of 12.5 ^b"),
        ("SMALL CAPITALS A|{NE}", "SMALL CAPITALS ANE"),
        ("LaTeX is L^{A}TEX", "LaTeX is L^{A}TEX".replace("^{A}", "A")),
        ("Folio^{TM}, at 4 μm^{2} a cell", "FolioTM, at 4 μm² a cell"),
    ],
)
def test_notation(drawn: str, text: str) -> None:
    assert written(drawn) == [text]


def test_an_exponent_is_raised_above_what_it_stands_behind() -> None:
    factor = line("r^{3} ∂G")
    spans = factor["spans"]
    assert spans[2]["text"] == " ∂G"
    spans[2]["origin"] = (0.0, 93.0)  # the numerator of a fraction
    write_notation([{"lines": [factor]}])
    assert "".join(span["text"] for span in spans) == "r³ ∂G"


def test_a_whole_number_has_a_note_where_the_page_has_others() -> None:
    assert written("a total of 48^{5} nests") == ["a total of 48⁵ nests"]
    assert written("a total of 48^{5} nests", "by this method^{4} of ours") == [
        "a total of 48 ⁵ nests", "by this method ⁴ of ours",
    ]  # fmt: skip
    assert written("a total of 230^{12} nests") == ["a total of 230 ¹² nests"]
    assert written("a chance of 0.9^{127} ≈ 0") == ["a chance of 0.9¹²⁷ ≈ 0"]


def test_signs_that_the_file_names_are_treated_alike() -> None:
    assert written("was 92.4³ percent of 10⁹") == ["was 92.4 ³ percent of 10⁹"]


def test_the_text_layer_of_a_scan_has_no_heights() -> None:
    scanned = line("gallons _{of} water at 10^{5}")
    for span in scanned["spans"]:
        span["char_flags"] = 0
    write_notation([{"lines": [scanned]}])
    assert "".join(span["text"] for span in scanned["spans"]) == "gallons of water at 105"


def test_lines_that_wobble_are_level() -> None:
    wobbly = line("The first one of 64")
    wobbly["spans"] += [{**wobbly["spans"][0], "text": " and 12 more", "origin": (0.0, 101.0)}]
    write_notation([{"lines": [wobbly]}])
    assert "".join(span["text"] for span in wobbly["spans"]) == "The first one of 64 and 12 more"


def test_a_page() -> None:
    text = clean(read_pdf(CASES / "raised" / "a.pdf").pages)[0]
    for sentence in (
        "The rate constant was 3.1 x 10⁻⁴ per second in the cold bath.",
        "The mean yield was 92.4 ³ percent of the theoretical value.",
        "A total of 230 ¹² nests were found and 2³⁰ bytes were stored.",
        "The area was 14 m² and the gas was CO₂ at 5 kPa.",
    ):
        assert sentence in text


def test_type_raised_by_the_text_matrix_alone(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_font("helv")
    xref = document.get_new_xref()
    document.update_object(xref, "<<>>")
    document.update_stream(
        xref, b"BT 72 700 Td /helv 12 Tf (There are 2) Tj 5 Ts (64) Tj 0 Ts ( keys in all, and more of them) Tj ET"
    )
    page.set_contents(xref)
    document.save(tmp_path / "a.pdf")
    assert read_pdf(tmp_path / "a.pdf").pages[0].text == "There are 2⁶⁴ keys in all, and more of them"
