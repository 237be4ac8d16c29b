"""Numbers and units in a text, and whether a statement's number is among a source's."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.grounding.quantities import quantities

pytestmark = pytest.mark.fast


def read(text: str) -> list[tuple[object, str]]:
    return [(pytest.approx(number.value), number.unit) for number in quantities(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("155,000 and 155000 and 155 000 and 155\u2009000", [(155_000, "")] * 4),
        ("0.50 or .5 or 0.5", [(0.5, "")] * 3),
        ("1e-3 or 1×10^-3 or 1 × 10⁻³ or 10⁻³ or 0.001", [(0.001, "")] * 5),
        ("2^10 and 2^128, a key of 2^{3}", [(1024, ""), (2.0**128, ""), (8, "")]),
        ("−5 and –6 and -7 and ‑8 and －9", [(-5, ""), (-6, ""), (-7, ""), (-8, ""), (-9, "")]),
        # A minus, a range, a dash, a subtraction, a name
        ("a slope of − 0.35, minus 0.35", [(-0.35, "")] * 2), ("(−3), =-3, −.3", [(-3, ""), (-3, ""), (-0.3, "")]),
        ("10–20, pp. 3-4, 2010--2015", [(10, ""), (20, ""), (3, ""), (4, ""), (2010, ""), (2015, "")]),
        ("the rest — 5 of them – 6 were—7 not", [(5, ""), (6, ""), (7, "")]), ("x − 5, 8 - 3", [(5, ""), (8, ""),
        (3, "")]),
        ("COVID-19, n−1", []), ("Slope  12.4  −5.3", [(12.4, ""), (-5.3, "")]), ("−$5, −5 %", [(-5, "$"), (-5, "%")]),
        # Powers, which no other digits are
        ("10⁹ = 10^9 = 10**9 = 10^{9} = 1e9", [(1e9, "")] * 5),
        ("5 × 10⁻⁴, 5 × 10^(−4), 5 \\times 10^{-4}, 5x10-4, 0.0005", [(0.0005, "")] * 5),
        ("1,010 records, 10¹⁰, 10 10", [(1010, ""), (1e10, ""), (10, ""), (10, "")]), ("3 × 100", [(3, ""), (100, "")]),
        ("CO₂, x₁, x_1, x², Ca²⁺, SO₄²⁻, 1010₂, 19^(th), 2ⁿ", [(1010, ""), (2, "")]),
        # Marks of notes, apart from what they stand on
        ("92.4 ³ by the method ³, 230 ¹² in all. ³", [(92.4, ""), (230, "")]),
        ("92.4 ³ percent, 5 ² m", [(92.4, "%"), (5, "meter")]), ("¹The clock of ⁸⁷Sr", []), ("-5 units", [(-5, "")]),
        ("as shown ¹,², and ¹⁻³ too", []),
        ("5¼, 5 1/4, 5 1⁄4", [(5.25, "")] * 3), ("½ and 3³⁄₁₆", [(0.5, ""), (3.1875, "")]),
        ("3/16, 1/2 and 5 3/16", [(0.1875, ""), (0.5, ""), (5.1875, "")]),
        ("24/7, 1/2/2020, and/or 7/9", [(24, ""), (1, ""), (7, "")]),
        ("Table 5 1/7", [(5, ""), (1, "")]),
        ("1,2,3 and 1,234,56", [(1, ""), (2, ""), (3, ""), (1, ""), (234, ""), (56, "")]),
        ("10k images, 110M weights, 8B", [(1e4, ""), (1.1e8, ""), (8e9, "")]),
        ("one of the 2nd, in the 1980s, GPT-4, x_1, v1.2", []),
        ("10-20 km", [(10, ""), (20_000, "meter")]),
        ("5 km, 5-km, 5km, 5 kilometres, 5-kilometer", [(5000, "meter")] * 5),
        ("5 s⁻¹, 5 s^-1, 5 s-1, 5 s^{-1}", [(5, "1 / second")] * 4),
        ("5 kg m⁻³, 5 kg m^-3, 5 kg·m⁻³, 5 kg/m³, 5 kg per m^3", [(5, "kilogram / meter ** 3")] * 5),
        ("36 km²/h", [(10_000, "meter ** 2 / second")]), ("5 W m⁻² K⁻¹", [(5, "kilogram / kelvin / second ** 3")]),
        ("37⁰C, 37 ºC, 37^oC, 37^(o)C", [(310.15, "kelvin")] * 4),
        ("5 km², 5 km2, 5 km^2, 5 square kilometres, 5 square kilometers", [(5e6, "meter ** 2")] * 5),
        ("5 m, 5 m long, 5m", [(5, "meter")] * 3),
        ("5 %, 5 percent, 5 per cent, 5%", [(5, "%")] * 4),
        ("$5, 5 USD, 5 dollars, US$5", [(5, "$")] * 4),
        ("$5m, $5 m, $5 million, 5 million dollars", [(5e6, "$")] * 4),
        ("5 µs, 5 us, 5 μs, 5 microseconds", [(5e-6, "second"), (5, ""), (5e-6, "second"), (5e-6, "second")]),
        ("60 km/h, 60 km per hour, 60 kilometers per hour", [(60 / 3.6, "meter / second")] * 3),
        ("25 °C, 25°C, 298.15 K", [(298.15, "kelvin")] * 3),
        ("5 dozen; 5 points; 5 bits; 32-bit; 300 K", [(5, ""), (5, ""), (5, "bit"), (32, ""), (300, "kelvin")]),
        ("in 2019 A model", [(2019, "")]),
    ],
)  # fmt: skip
def test_quantities(text: str, expected: list[tuple[float, str]]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("number", "source", "expected"),
    [
        # Other spellings
        ("155000 hairs", "155,000 hairs", True), ("5 kilometres", "5,000 m", True), ("two hours", "120 minutes", True),
        ("0.784", "78.4 %", True),
        ("5 percent", "5 percentage points", False), ("5 points", "5 percentage points", True),
        ("4 %", "a factor of 4", False), ("a factor of 4", "4-fold", True), ("4", "a factor of 4", True),
        ("12.4 km", "Gorner  12.4  53.1", True),  # a table's row
        ("5 million dollars", "$5,000,000", True), ("20 °C", "20.4", True),
        # Rounded, but never more exact than the source
        ("78 %", "78.4 %", True), ("78.4 %", "78 %", False), ("about 155,000", "154,987", True), ("23", "23.6", False),
        # Other numbers and units
        ("15,500", "155,000", False), ("2.5", "25", False), ("5 miles", "5 km", False), ("5 m", "5 km", False),
        ("20 g", "20 mg", False), ("-5 °C", "-5 °F", False), ("5 million", "5 billion dollars", False),
        ("23 million people", "23 billion people", False), ("23 million people", "People (millions)  23", True),
        ("2^128", "2^127", False), ("12 kg", "12 exercises", False),
        ("10^-4", "0.3", False), ("10⁻⁴", "0.0001", True), ("1,010 records", "10¹⁰ records", False),
        ("10^10 records", "10¹⁰ records", True), ("2^64", "264", False), ("264", "2⁶⁴", False),
        ("92.43", "92.4 ³", False), ("92.4", "92.4 ³", True), ("5.25", "5¼", True), ("10 to", "[formula] steps", False),
        # Signs, unless they are open
        ("a slope of 0.35", "a slope of −0.35", False), ("a slope of -0.35", "a slope of −0.35", True),
        ("a slope of −0.35", "a slope of 0.35", False), ("12 %", "a change of −12 %", False),
        ("it fell by 12 %", "a change of −12 %", True), ("a change of −12 %", "decreased by about 12 %", True),
        ("a loss of 3 dB", "a gain of −3 dB", True), ("12 % lower", "−12 %", True),
        ("it fell to 5", "it is at −5", False),
        ("it fell from 5", "it is at −5", False),
        ("it rose by 12 %", "a change of −12 %", False), ("0.35 was lower", "−0.35", False),
        ("cooled by 5 K", "−5 K", True),
        ("5 °C", "−5 °C", False), ("−5 °C", "23 °F", True), ("cooled by 5 °C", "a change of −5 °C", True),
        ("−0.8", "12.4 ± 0.8", True), ("0.8", "12.4 ± 0.8", True), ("0.8", "12.4 +/- 0.8", True), ("5", "10 -5", True),
        ("−5", "10 -5", True), ("5", "Corwick  10  −5", False), ("−5", "Corwick  10  −5", True),
        ("17250", "Corwick  17  250", False),
        # Beyond a float: equal where it is written the same
        ("10^999", "10^999", True), ("10^999", "10^998", False), ("9" * 400, "9" * 400, True),
        ("9" * 400, "9" * 399, False),
    ],
)  # fmt: skip
def test_is_among(number: str, source: str, expected: bool) -> None:
    found = quantities(number)[0]
    assert found.is_among(quantities(source)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("< 5, ≤5, up to 5, at most 5, fewer than 5, no more than 5, may not be more than 5, 5 or less", ["most"] * 8),
        ("> 5, ≥5, at least 5, more than 5, not less than 5, 5 kg or more", ["least"] * 6),
        ("= 5, exactly 5, ~5, about 5, ± 5", ["exact", "exact", "about", "about", "either"]), ("8 - 5", ["", "minus"]),
        ("under 5, above 5, 5 and 8-5", ["under", "over", "", "", ""]), ("Table < 5  5", ["most", ""]),
    ],
)  # fmt: skip
def test_bounds(text: str, expected: list[str]) -> None:
    assert [number.bound for number in quantities(text)] == expected


@pytest.mark.parametrize(
    ("number", "source", "expected"),
    [
        ("5 %", "fewer than 5 %", False), ("exactly 5", "at least 5", False), ("at least 5", "up to 5", False),
        ("p = 0.05", "p < 0.05", False), ("p ≤ 0.05", "p < 0.05", True), ("less than 5", "< 5", True),
        ("5", "about 5", True), ("exactly 5", "about 5", False), ("5", "exactly 5", True), ("at least 5", "5", True),
        ("over 14 °C", "under 14 °C", False), ("for 12 weeks", "over 12 weeks", True), ("more than 5", "over 5", True),
        ("-0.3", "5.2 ± 0.3", False), ("0.3", "5.2 ± 0.3", True), ("± 0.3", "5.2 ± 0.3", True),
        ("rose by 9", "rose to 9", False), ("rose by 9", "a rise by 9", True), ("9 more", "rose by 9", True),
        ("from 9", "from 5 % to 9 %", False), ("to 9", "5 to 9", True),
    ],
)  # fmt: skip
def test_is_bounded_as(number: str, source: str, expected: bool) -> None:
    said, given = quantities(number)[0], quantities(source)[-1]
    assert said.is_among([given])
    assert said.is_bounded_as(given) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Table 3", True), ("Figs. 3", True), ("Eq. (3)", True), ("[3]", True), ("§ 3", True), ("the table has 3", False)],
)
def test_a_reference_is_no_measurement(text: str, expected: bool) -> None:
    assert [number.is_reference for number in quantities(text)] == [expected]


def test_the_next_words_are_counted() -> None:
    assert [number.counted for number in quantities("12 short exercises of 5 km")] == [
        {"short", "exercis"},
        frozenset(),
    ]


@pytest.mark.parametrize(
    "unit", "dozen delta_degC Δ°C degC dB pH lambda import None eval __class__ Quantity inf nan kg/0".split()
)
@pytest.mark.parametrize("number", ["5", "0", "5e999999", "1e308", "9" * 400, "0^-1", "99999^99", "5e-999999"])
def test_no_text_after_a_number_raises(number: str, unit: str) -> None:
    found = quantities(f"{number} {unit}")
    assert len(found) == 1
    assert found[0].is_among(found)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("about 10⁹\n cells", "10⁹"), ("of  5 × 10⁻⁴, ³", "5 × 10⁻⁴"), ("at 92.4 ³ now", "92.4"),
        ("was −0.35 (or", "−0.35"), ("is 5¼ in", "5¼"), ("\\times 155\u2009000 km", "155\u2009000"),
        ("to 10^{-4}.", "10^{-4}"),
    ],
)  # fmt: skip
def test_a_number_stands_at_its_span(text: str, number: str) -> None:
    (found,) = quantities(text)
    assert text[slice(*found.span)] == number


_PARTS = st.sampled_from(
    [
        *"9 , . - – − ^ _ ** e × 10 % $ ° °C km / per m^2 ½ ⁻³ ⁹ ₃ ⁄ ² fell ± ٢ ( [ million dozen delta_degF x".split(),
        *"\ud800 \x00 \u202e".split(),
    ]
)


@given(st.lists(_PARTS, max_size=25).flatmap(lambda parts: st.sampled_from(["".join(parts), " ".join(parts)])))
def test_every_number_is_among_itself(text: str) -> None:
    found = quantities(text)
    assert all(number.is_among(found) for number in found)
    assert all(0 <= number.span[0] < number.span[1] for number in found)
    assert not any(math.isnan(number.number) for number in found)


def test_pint_is_imported_with_the_first_unit_only() -> None:
    code = (
        "import sys\n"
        "import folio.app, folio.search.retriever, folio.grounding.grounder\n"
        "from folio.grounding.quantities import quantities\n"
        "quantities('In 2019, 12 % of 155,000 (Table 3) cost $5.')\n"
        "assert 'pint' not in sys.modules\n"
        "quantities('5 km')\n"
        "assert 'pint' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("text", ["82 square kilometres", "82 square\nkilometres", "82 per\ncent", "82 per cent"])
def test_a_unit_over_the_end_of_a_line_is_one(text: str) -> None:
    assert [(number.number, number.unit) for number in quantities(text)] == [
        (82.0, "%" if "cent" in text else "meter ** 2")
    ]
