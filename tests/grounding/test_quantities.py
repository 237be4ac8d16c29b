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
        ("−5 and –6 and -7", [(-5, ""), (-6, ""), (-7, "")]),
        ("1,2,3 and 1,234,56", [(1, ""), (2, ""), (3, ""), (1, ""), (234, ""), (56, "")]),
        ("10k images, 110M weights, 8B", [(1e4, ""), (1.1e8, ""), (8e9, "")]),
        ("one of the 2nd, in the 1980s, GPT-4, x_1, v1.2", []),
        ("10-20 km", [(10, ""), (20_000, "meter")]),
        ("5 km, 5-km, 5km, 5 kilometres, 5-kilometer", [(5000, "meter")] * 5),
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
        ("12.4 km", "Gorner  12.4  53.1", True),  # a table's row
        ("5 million dollars", "$5,000,000", True), ("20 °C", "20.4", True),
        # Rounded, but never more exact than the source
        ("78 %", "78.4 %", True), ("78.4 %", "78 %", False), ("about 155,000", "154,987", True), ("23", "23.6", False),
        # Other numbers and units
        ("15,500", "155,000", False), ("2.5", "25", False), ("5 miles", "5 km", False), ("5 m", "5 km", False),
        ("20 g", "20 mg", False), ("-5 °C", "-5 °F", False), ("5 million", "5 billion dollars", False),
        ("23 million people", "23 billion people", False), ("23 million people", "People (millions)  23", True),
        ("2^128", "2^127", False), ("12 kg", "12 exercises", False),
        # Beyond a float: equal where it is written the same
        ("10^999", "10^999", True), ("10^999", "10^998", False), ("9" * 400, "9" * 400, True),
        ("9" * 400, "9" * 399, False),
    ],
)  # fmt: skip
def test_is_among(number: str, source: str, expected: bool) -> None:
    (found,) = quantities(number)
    assert found.is_among(quantities(source)) is expected


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


_PARTS = st.sampled_from(
    "9 , . - – ^ e × 10 % $ ° °C km / per m^2 ½ ⁻³ ٢ ( [ million dozen delta_degF \ud800 \x00 \u202e x".split()
)


@given(st.lists(_PARTS, max_size=25).flatmap(lambda parts: st.sampled_from(["".join(parts), " ".join(parts)])))
def test_every_number_is_among_itself(text: str) -> None:
    found = quantities(text)
    assert all(number.is_among(found) for number in found)
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
