"""The numbers in a text, with their units as parsed by Pint (https://pint.readthedocs.io). Pure."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from folio.text import one_line, tokenize

if TYPE_CHECKING:
    import pint


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text. "1.2 million" is the number 1.2 and the value 1,200,000; 5 km are the value 5,000."""

    number: float
    step: float  # the value of one unit in its last digit
    scale: float  # 1e6 for "million"
    value: float  # with its scale, in base units; not finite if a float cannot hold it
    value_step: float  # the step with its scale, in base units
    unit: str  # the base unit, such as "meter"; "%" or a currency's sign; "" for none or an unknown one
    written: str  # the number as the text has it
    with_unit: str  # the number and its unit as the text has them
    counted: frozenset[str]  # the tokens of the next two words, if they are not a unit: "12 short exercises"
    is_spelled: bool  # "twelve"
    is_reference: bool  # "Table 3", "[12]"

    def is_among(self, others: Iterable[Quantity]) -> bool:
        """Whether one of the others is this number, or rounds to it, and has no other unit.

        A table may give a number without its unit or scale, and a share as a percentage or as a fraction of 1.
        """
        return any(self._is(other) for other in others)

    def _is(self, other: Quantity) -> bool:
        if not (math.isfinite(self.value) and math.isfinite(other.value)):
            return self.written == other.written
        if self.unit == other.unit and _is_near(abs(self.value), self.value_step, abs(other.value), other.value_step):
            return True
        if {self.unit, other.unit} == {"%", ""}:
            times = 0.01 if self.unit else 100.0
            if _is_near(self.value * times, self.value_step * times, other.value, other.value_step):
                return True
        elif (self.unit and other.unit) or (self.unit and other.counted) or (self.counted and other.unit):
            return False
        return not (1 != self.scale != other.scale != 1) and _is_near(self.number, self.step, other.number, other.step)


def _is_near(value: float, step: float, other: float, other_step: float) -> bool:
    """Whether two values are equal, or the first is the other one rounded to its last digit."""
    difference = abs(value - other)
    return difference <= 1e-9 * abs(value) or (other_step < step and difference <= 0.501 * step)


_ONES = "one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SPELLED = {word: number for number, word in enumerate(f"{_ONES} {_TEENS}".split(), 1)}
_SPELLED |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6}
_SCALES |= {"billion": 1e9, "bn": 1e9, "b": 1e9, "trillion": 1e12}
_NUMBER = re.compile(
    rf"""
    (?: (?P<currency> [$€£¥] ) [ ]? | (?<![\w/^]) (?<![A-Z_]-) (?<!\d\.) )  # not within a word, date, name: GPT-5, v1.2
    (?P<sign> (?<![\d)%][ ]) - (?=[\d.]) )?
    (?: (?P<digits> \d{{1,3}} (?:,\d{{3}}){{1,9}} (?:\.\d+)? (?!,?\d)    # 155,000
                  | \d{{1,3}} (?:[ ]\d{{3}}){{1,9}} (?!\d)               # 155 000
                  | \d+ (?:\.\d+)? | \.\d+ )
      | (?P<word> (?:{_TENS.replace(" ", "|")}) [- ] (?:{_ONES.replace(" ", "|")}) \b | (?:{"|".join(_SPELLED)}) \b ) )
    (?: [ ]? [×x·*⋅] [ ]? 10 [ ]? \^? [ ]? [({{]? (?P<power> -?\d{{1,9}} ) [)}}]?    # 5 × 10^3
      | e (?P<e> [-+]?\d{{1,9}} ) (?!\w)                                           # 5e3
      | \^ [({{]? (?P<raised> -?\d{{1,9}} ) [)}}]? )?                               # 2^128
    (?: [ -]? (?P<scale> hundred | thousand | million | billion | trillion | bn\b
      | (?: (?<=\d) (?-i:[kKMbB]) | (?(currency) m | (?!) ) ) (?=[ .,;:)]|$) ) )?    # 110M, but 5 m are metres
    """,
    re.I | re.X,
)
_UNIT = re.compile(
    r"[ -]?(?P<unit>° ?[CF]\b|[%‰$€£¥°℃℉]|[A-Za-zμΩ]+(?:\^?-?[123])?(?:(?: ?/ ?| per )[A-Za-zμ]+(?:\^?[23])?)?)"
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th|s)\b")
_COUNTED = re.compile(
    r"[ -](?!and|or|to|in|of|for|with|per|by|is|was|from|on|at|as|points?\b)[^\W\d_]{3,}(?:[ -][^\W\d_]+)?"
)
_REFERENCE = re.compile(
    r"(?i:\[|§ ?|\b(?:tab(le)?|fig(ure)?|sec(tion)?|eq(uation)?|chapter|appendix|theorem|lemma|algorithm|page|pp?|ref)"
    r"s?\.? ?\(?)$"
)
_SUPERSCRIPT = re.compile(r"[⁻⁺]?[⁰¹²³⁴-⁹]+")
_AREA = re.compile(r"\b(square|cubic) ([a-z]*(?:met|inch|foot|feet|mile|yard)[a-z]*)")
_SIGNS = str.maketrans("−–—‐‑µ\xa0\u202f\u2009", "-----μ   ")
# The single letters that count as units
_LETTERS = "KVWJhsmgLΩ"
# Units of Pint that are hardly ever units after a number in a paper
_NO_UNITS = frozenset(
    "are as at bar bars barn barns bit count counts cycle cycles degree dot dots fps hand hands in link links perch"
    " pica point points pole poles rad rod rods slug stone turn turns us".split()
)
_SYMBOLS = "% percent pct percentage percentages|‰|$ dollar dollars usd|€ euro euros eur|£ pounds gbp|¥ yen"
_SIGN_OF = {word: forms.split()[0] for forms in _SYMBOLS.split("|") for word in forms.split()}


@lru_cache(maxsize=4096)
def quantities(text: str, *, units: bool = True) -> tuple[Quantity, ...]:
    """The numbers of a text, in order, except "one" and "2nd". units: False recognises only signs, without Pint."""
    return tuple(_read(normal(text), units=units))


@lru_cache(maxsize=1024)
def normal(text: str) -> str:
    """The text on one line with one form of dashes, digits and exponents."""
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda match: f"^{unicodedata.normalize('NFKC', match.group())}", text)
        text = re.sub(r"[^\D0-9]", lambda digit: str(unicodedata.decimal(digit[0])), text.translate(_SIGNS))
    text = one_line(text).replace("per cent", "percent")
    return _AREA.sub(lambda match: f"{match[2]}^{2 if match[1] == 'square' else 3}", text)


def _read(text: str, *, units: bool) -> Iterator[Quantity]:
    for match in _NUMBER.finditer(text):
        word, start, end = (match["word"] or "").lower(), match.start(), match.end()
        if word == "one" or _ORDINAL.match(text, end):
            continue
        number, step, scale = _number(match)
        unit_match = None if match["currency"] else _UNIT.match(text, end)
        if unit_match and not units and unit_match["unit"].lower() not in _SIGN_OF:
            unit_match = None
        unit, factor, offset = _base_unit(unit_match["unit"]) if unit_match else (match["currency"] or "", 1.0, 0.0)
        counted = None if unit else _COUNTED.match(text, end)
        yield Quantity(
            number,
            step,
            scale,
            value=number * scale * factor + offset,
            value_step=step * scale * factor,
            unit=unit,
            written=match.group().strip(),
            with_unit=text[start : unit_match.end() if unit_match and unit else end].strip(),
            counted=frozenset(tokenize(counted.group())) if counted else frozenset(),
            is_spelled=bool(word),
            is_reference=bool(_REFERENCE.search(text, max(0, start - 14), start)),
        )


def _number(match: re.Match[str]) -> tuple[float, float, float]:
    """The number, its step and its scale; the number is infinite if a float cannot hold it."""
    digits = (match["digits"] or "").replace(",", "").replace(" ", "")
    words = re.split("[- ]", (match["word"] or "").lower())
    significant = digits.rstrip("0")  # 155,000 may be rounded, 10 is not
    zeros = len(digits) - len(significant) if len(significant) > 1 else 0
    try:
        number = (float(digits) if digits else float(sum(map(_SPELLED.__getitem__, words)))) ** int(
            match["raised"] or 1
        )
        step = 10.0 ** (-len(digits.partition(".")[2]) if "." in digits else zeros)
        scale = 10.0 ** int(match["power"] or match["e"] or 0) * _SCALES.get((match["scale"] or "").lower(), 1.0)
    except (OverflowError, ZeroDivisionError):  # 10^999, 0^-1
        return math.inf, 0.0, 1.0
    return -number if match["sign"] else number, step, scale


@lru_cache(maxsize=4096)
def _base_unit(form: str) -> tuple[str, float, float]:
    """The base unit of a unit in a text, and the factor and offset for conversion. "km/mouse" counts as km."""
    if sign := _SIGN_OF.get(form.lower()):
        return sign, 1.0, 0.0
    if form.lower() in _NO_UNITS or (len(form) == 1 and form.isalpha() and form not in _LETTERS):
        return "", 1.0, 0.0
    try:
        in_pint_syntax = re.sub(r"(?<=[a-zμΩ])\^?(?=-?\d)", "**", form.replace(" per ", "/").replace("° ", "°"))
        unit = _registry().Quantity(1.0, in_pint_syntax)
        at_zero, at_one = _registry().Quantity(0.0, unit.units).to_base_units(), unit.to_base_units()
    except Exception:  # Pint raises a different error for each kind of invalid unit
        first = re.split(r"[ /]", form)[0]
        return _base_unit(first) if first != form else ("", 1.0, 0.0)
    return str(at_one.units), float(at_one.magnitude - at_zero.magnitude), float(at_zero.magnitude)


@cache
def _registry() -> pint.UnitRegistry[float]:
    import pint  # 0.25 s

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)
