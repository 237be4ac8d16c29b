"""The signs that glyphs show, in fonts that do not name them or give them another name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pymupdf
import pytest

from folio.ingest.cleaning import clean
from folio.pdf.reader import read_pdf
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

CASES = ROOT / "tests" / "data" / "cases"


def text_of(path: Path) -> str:
    return clean(read_pdf(path).pages)[0]


@pytest.mark.parametrize("kind", ["c1", "etx", "softhyphen", "zwsp"])
def test_a_minus_sign_with_another_name_is_a_minus_sign(kind: str) -> None:
    text = text_of(CASES / "minus" / f"{kind}.pdf").replace("−", "-")
    assert "The net balance was -4684 units and the trend was -0.7 per year." in text


def test_hyphens_that_are_called_soft_are_kept() -> None:
    soft, plain = (text_of(CASES / "shy" / f"{name}.pdf") for name in ("shy", "plain"))
    assert "COVID-19 cohort (2010-2015) gave a slope of -0.35 and a t-test of -2.1." in soft
    assert soft == plain


@pytest.mark.parametrize("names", ["names", "std_names"])
def test_signs_of_a_pi_font_are_no_digits(names: str) -> None:
    text = text_of(CASES / "pifont" / f"{names}.pdf")
    assert "The mean length was 12.4 ± 0.8 mm and the slope was −0.35 (n = 48, P < 0.01)." in text
    assert "Doses of 3 × 10 μg of α-tocopherol were given on day one." in text


@pytest.mark.parametrize("kind", ["base14", "nomap", "pua"])
def test_symbol(kind: str) -> None:
    text = text_of(CASES / "symbol" / f"{kind}.pdf").replace("µ", "μ")
    assert "The slope was −0.35 ± 0.04 and p ≤ 0.05 for α-amylase at 37 °C." in text
    assert "Grains of ≥ 20 μm were kept and β was 3 × 10 in each run." in text


@pytest.mark.parametrize("kind", ["digit", "nul", "ot1", "ot1_anames", "parts"])
def test_ligatures(kind: str) -> None:
    text = text_of(CASES / "ligatures" / f"{kind}.pdf")
    assert "The efficient filter gave different findings and a significant effect on the flow." in text
    assert "Specific offers of affected offices were first refined by the final staff." in text


def test_glyphs_without_a_name_are_marked() -> None:
    text = text_of(CASES / "ligatures" / "missing.pdf")
    assert "The e\ufffdcient \ufffdlter gave di\ufffderent \ufffdndings" in text


def test_raised_digits_that_a_font_draws_smaller_itself() -> None:
    text = text_of(CASES / "typst" / "a.pdf")
    assert "within 2¹⁰ seconds ¹ while" in text
    assert "The coefficient was 0.92 ³ and the area was 14 m²." in text


def with_names(path: Path, names: Mapping[int, str], content: bytes, font: str = "Times-Roman") -> Path:
    """A page in two fonts: /Own, of which these codes have other names, and /Plain."""
    document = pymupdf.open()
    page = document.new_page()
    page.insert_font("tiro")
    made = document.get_new_xref()
    differences = " ".join(f"{code} /{name}" for code, name in names.items())
    document.update_object(
        made,
        f"<</Type/Font/Subtype/Type1/BaseFont/{font}/Encoding<</Type/Encoding/Differences[{differences}]>>>>",
    )
    kind, resources = document.xref_get_key(page.xref, "Resources")
    place, under = (int(resources.split()[0]), "") if kind == "xref" else (page.xref, "Resources/")
    document.xref_set_key(place, f"{under}Font/Own", f"{made} 0 R")
    stream = document.get_new_xref()
    document.update_object(stream, "<<>>")
    document.update_stream(stream, content)
    page.set_contents(stream)
    document.save(path)
    return path


def test_a_glyph_named_as_raised_is_raised(tmp_path: Path) -> None:
    names = {50: "two.superior", 52: "four.sups"}
    content = b"BT 72 700 Td /tiro 12 Tf (It has 10) Tj /Own 12 Tf (42) Tj /tiro 12 Tf ( places and H) Tj ET"
    path = with_names(tmp_path / "a.pdf", names, content)
    assert text_of(path) == "It has 10⁴² places and H"
