"""The numbers in a text, with their signs, and their units as parsed by Pint (https://pint.readthedocs.io). Pure."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from folio.text import NOTATION, as_typed, rewritten, tokenize

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
    span: tuple[int, int]  # of the number in the text
    negated: Quantity | None = None  # if its sign is open ("fell by 5", "± 5"): the number with the other sign
    bound: str = ""  # "most" for "< 5" and "up to 5"; the names of the groups of _BOUND
    role: str = ""  # the word before it if this is "by", "to" or "from"

    def is_among(self, others: Iterable[Quantity]) -> bool:
        """Whether one of the others is this number, or rounds to it, and has the same sign and no other unit.

        A table may give a number without its unit or scale, and a share as a percentage or as a fraction of 1.
        """
        return any(self._matches(other) for other in others)

    def is_bounded_as(self, other: Quantity) -> bool:
        """Whether this number may be said of the other, which it is: 5 not of "up to 5", and "by 5" not of "to 5"."""
        if other.bound == "either" and self.number < 0:
            return False
        has_other_role = self.role and other.role and self.role != other.role
        return not has_other_role and (self.bound, other.bound) not in _OTHER_BOUNDS

    def _matches(self, other: Quantity) -> bool:
        if self._is(other):
            return True
        return bool((self.negated and self.negated._is(other)) or (other.negated and self._is(other.negated)))

    def _is(self, other: Quantity) -> bool:
        if not (math.isfinite(self.value) and math.isfinite(other.value)):
            return self.written == other.written
        if self.unit == other.unit and _is_near(self.value, self.value_step, other.value, other.value_step):
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
_FRACTION = r"(?: 1/2 | [12]/3 | [1-3]/4 | [1-7]/8 | (?:[1-9]|1[0-5])/16 )"
# A number does not begin within a word, a date, or a name: GPT-5, v1.2
_BEGINS = r"(?<![\w/^]) (?<![A-Z_^-]-) (?<!\d\.)"
_NUMBER = re.compile(
    rf"""
    (?: (?P<minus> {_BEGINS} (?<![)\]%]) - )? (?P<currency> [$€£¥] ) [ ]? | {_BEGINS} )
    (?P<sign> (?<![)\]%]) - (?=[\d.]) | (?:minus|negative) [ ] (?=[\d.]) )?
    (?: (?P<digits> \d{{1,3}} (?:,\d{{3}}){{1,9}} (?:\.\d+)? (?!,?\d)    # 155,000
                  | \d{{1,3}} (?:[ ]\d{{3}}){{1,9}} (?!\d)               # 155 000
                  | (?P<simple> (?= {_FRACTION} (?![\d/]) ) ) \d{{1,2}}  # 3/16
                  | \d+ (?:\.\d+)? | \.\d+ )
      | (?P<word> (?:{_TENS.replace(" ", "|")}) [- ] (?:{_ONES.replace(" ", "|")}) \b | (?:{"|".join(_SPELLED)}) \b ) )
    (?: [ ]? [×x·*⋅] [ ]? 10 (?:[ ]? \^ [ ]? [({{]? (?P<power> -?\d{{1,9}} ) [)}}]?    # 5 × 10^3
                                     | (?P<flat> -\d{{1,2}} ) (?![\d.]) )           # 5 × 10-4, read by OCR
      | e (?P<e> [-+]?\d{{1,9}} ) (?!\w)                                           # 5e3
      | \^ [({{]? (?P<raised> -?\d{{1,9}} ) [)}}]?                                 # 2^128
      | (?: ⁄ | (?(simple) / | (?!) ) ) (?P<parts> \d{{1,9}} )                     # 1⁄4
      | [ -] (?P<mixed> \d{{1,2}}⁄\d{{1,2}} | {_FRACTION} ) (?![\d/]) )?            # 5 1/4
    (?: [ -]? (?P<scale> hundred | thousand | million | billion | trillion | bn\b
      | (?: (?<=\d) (?-i:[kKMbB]) | (?(currency) m | (?!) ) ) (?=[ .,;:)]|$) ) )?    # 110M, but 5 m are metres
    """,
    re.I | re.X,
)
# A unit with its power, and more of them: km/h, W m^-2 K^-1
_POWERED = r"[A-Za-zμΩ]{1,5}\^?-[1-4]"
_UNIT = re.compile(
    rf"[ -]?(?P<unit>° ?[CF]\b|[%‰$€£¥°℃℉]|(?:{_POWERED}|[A-Za-zμΩ]+(?:\^?[1-4])?)"
    rf"(?:(?: ?/ ?| per )[A-Za-zμ]+(?:\^?[234])?|[ ·⋅*]{_POWERED}){{0,3}})"
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th|s)\b")
_COUNTED = re.compile(
    r"[ -](?!and|or|to|in|of|for|with|per|by|is|was|from|on|at|as|points?\b)[^\W\d_]{3,}(?:[ -][^\W\d_]+)?"
)
_REFERENCE = re.compile(
    r"(?i:\[|§ ?|\b(?:tab(le)?|fig(ure)?|sec(tion)?|eq(uation)?|chapter|appendix|theorem|lemma|algorithm|page|pp?|ref)"
    r"s?\.? ?\(?)$"
)
# A loss: before its number ("fell by 5", "a loss of about 5"), and directly after it ("5 points lower")
_LOSES = (
    r"\b(?:(?:decreas|declin|diminish|reduc|drop|shr[aiu]nk|contract|worsen|shorten|deficit|shortfall|negativ)\w*"
    r"|lower(?:ed|s|ing)|f[ae]ll(?:s|en|ing)?|los(?:s|ses|t|e|es|ing)|down|cuts?|s[aiu]nk|cool(?:s|ed|ing)?)\b"
)
_LOST = (
    r"\b(?:lower|less|fewer|smaller|shorter|worse|colder|below|decreases?|reductions?|declines?|drops?|loss(?:es)?"
    r"|falls?|deficits?|down)\b"
)
_LOSS_REACH = 80  # characters
_LOSS_BEFORE = re.compile(
    rf"{_LOSES}(?:[ ](?!(?:to|than|under|below|was|is|from|at|between)\b)[^\s.,;:!?]+){{0,6}}?[ ][(]?$", re.I
)
_LOSS_AFTER = re.compile(
    rf"[ -]?(?!(?:was|is|were|are|and|or|but)\b)(?:[^\s.,;:!?]{{1,20}}[ -])?{_LOST}(?! than\b)", re.I
)
POINTS, TIMES = "% points", "×"  # the units of a difference of percentages, and of a factor
_POINTS = re.compile(r"[ -]points?\b", re.I)
_FACTOR = re.compile(r"\bfactor of $", re.I)
_TIMES = re.compile(r"[ -]?fold\b", re.I)
# What bounds a number, before it and after it. "Over" and "under" may also mean something else.
_BOUND = re.compile(
    r"""
    (?: (?P<most> [<≤⩽] | \b(?:up[ ]to|at[ ]most|(?:fewer|less|lower|smaller|shorter)[ ]than)\b
                 | \b(?:not?|never|cannot)(?:[ ]\w+){0,3}?[ ](?:more|greater|higher|larger|longer)[ ]than\b )
      | (?P<least> [>≥⩾] | \b(?:at[ ]least|(?:more|greater|higher|larger|longer)[ ]than)\b
                 | \b(?:not?|never|cannot)(?:[ ]\w+){0,3}?[ ](?:fewer|less|lower|smaller|shorter)[ ]than\b )
      | (?P<exact> = | \b(?:exactly|precisely)\b)
      | (?P<about> [~∼≈≃] | \b(?:about|approximately|around|roughly)\b)
      | (?P<either> [±∓] | \+/- | \+- )
      | (?P<minus> [\d)%][ ]- )
      | (?P<under> \b(?:under|below)\b) | (?P<over> \b(?:over|above)\b) )
    [ ]? (?:(?:the|an?)[ ])? $
    """,
    re.I | re.X,
)
_BOUND_AFTER = re.compile(
    r"(?: [\w/]+){0,2},? (?:(?P<most>or (?:less|fewer|lower|below)|at (?:the )?most)"
    r"|(?P<least>or (?:more|higher|above)|at (?:the )?least))\b",
    re.I,
)
_BOUND_REACH = 40  # characters
_ROLE = re.compile(r"\b(?:(?P<role>by|from) $|from [^.;:]{1,20} (?P<end>to) $|(?<![\d%] )(?<!up )(?P<to>to) $)", re.I)
# The bounds that a statement may not give for those that its source gives
_OTHER_BOUNDS = frozenset(
    (stated, given)
    for given, others in (
        ("most", ("", "exact", "least", "over")),
        ("least", ("", "exact", "most", "under")),
        ("under", ("least", "over")),
        ("over", ("most", "under")),
        ("about", ("exact",)),
        ("either", ("minus",)),
    )
    for stated in others
)
_EITHER_SIGN = re.compile(r"(?:[±∓]|\+/-|\+-) ?$")
_OPEN = re.compile(rf"[±∓]|\+/?-|{_LOSES}|{_LOST}", re.I)
_AFTER_A_NUMBER = re.compile(r"[\d)%] $")
_DASHES = r"[-−–‐‑﹣－]"
_FORMS = re.compile(
    rf"""
    (?= [^\S ] | [ ]\s | [^\x00-\x7f] | [-\\^] | square\s | cubic\s | per\s )
    (?: (?P<degree> [⁰ᵒº˚] (?=\s?[CF]\b) | \^\(?[o°]\)? (?=\s?[CF]\b) )   # set as a raised o
    | (?P<cells> [ ]{{2,}} (?=\S) ) | (?P<space> [^\S ]\s* | [ ]\s+ )
    | (?P<range> (?<=\d) {_DASHES}{{2}} (?=\d) )                           # LaTeX's dash
    | (?P<minus> (?<![\d)\]%]) (?<![\d)\]%]\s) (?<!\b[^\W\d_]\s) − \s (?=[\d.]) )  # "of − 5", but not "x − 5"
    | (?P<dash> [–‐‑﹣－] (?! \s ) | − )
    | (?P<digit> [^\D0-9] ) | µ | \\times\b | \\c?dot\b | \bper\s+cent\b
    | \b (?P<area> square | cubic ) \s+ (?P<length> [a-z]*(?:met|inch|foot|feet|mile|yard)[a-z]* ) )
    """,
    re.X,
)
_FORM = {"µ": "μ", "\\times": "×", "\\cdot": "·", "\\dot": "·", "per cent": "percent"}
# The single letters that count as units
_LETTERS = "KVWJhsmgLΩ"
# Units of Pint that are hardly ever units after a number in a paper
_NO_UNITS = frozenset(
    "are as at bar bars barn barns bit count counts cycle cycles degree dot dots fps hand hands in link links perch"
    " pica point points pole poles rad rod rods slug stone turn turns unit units us".split()
)
_SYMBOLS = "% percent pct percentage percentages|‰|$ dollar dollars usd|€ euro euros eur|£ pounds gbp|¥ yen"
_SIGN_OF = {word: forms.split()[0] for forms in _SYMBOLS.split("|") for word in forms.split()}


@lru_cache(maxsize=4096)
def quantities(text: str, *, units: bool = True) -> tuple[Quantity, ...]:
    """The numbers of a text, in order, except "one" and "2nd". units: False recognises only signs, without Pint."""
    return tuple(_read(*_normal(text), units=units))


def _normal(text: str) -> tuple[str, list[int]]:
    """The text on one line with one form of dashes, digits, powers and fractions, and the offset of each character.

    Cells of a table stay two spaces apart. Note marks are left out.
    """
    places = list(range(len(text) + 1))
    return rewritten(*rewritten(text, places, _FORMS, _form), NOTATION, as_typed)


def _form(match: re.Match[str]) -> str:
    """The one form of a match of _FORMS."""
    kind, found = match.lastgroup, match.group()
    if kind == "length":
        return f"{match['length']}^{2 if match['area'] == 'square' else 3}"
    if kind == "digit":
        return str(unicodedata.decimal(found))
    if kind == "space":
        return " "
    if kind in ("range", "minus", "dash"):
        return "-"
    return {"degree": "°", "cells": "  "}.get(kind or "") or _FORM[" ".join(found.split())]


def _read(text: str, offsets: list[int], *, units: bool) -> Iterator[Quantity]:
    has_words: bool | None = None
    for match in _NUMBER.finditer(text):
        has_words = bool(_OPEN.search(text)) if has_words is None else has_words
        word, start, end = (match["word"] or "").lower(), match.start(), match.end()
        if word == "one" or _ORDINAL.match(text, end):
            continue
        number, step, scale = _number(match)
        unit_match = None if match["currency"] else _UNIT.match(text, end)
        if unit_match and not units and unit_match["unit"].lower() not in _SIGN_OF:
            unit_match = None
        unit, factor, offset = _base_unit(unit_match["unit"]) if unit_match else (match["currency"] or "", 1.0, 0.0)
        after = unit_match.end() if unit_match and unit else end
        if unit == "%" and (points := _POINTS.match(text, after)):
            unit, after = POINTS, points.end()
        elif not unit and (_FACTOR.search(text, max(0, start - 10), start) or _TIMES.match(text, end)):
            unit = TIMES
        counted = None if unit else _COUNTED.match(text, end)
        quantity = Quantity(
            number,
            step,
            scale,
            value=number * scale * factor + offset,
            value_step=step * scale * factor,
            unit=unit,
            written=match.group().strip(),
            with_unit=text[start:after].strip(),
            counted=frozenset(tokenize(counted.group())) if counted else frozenset(),
            is_spelled=bool(word),
            is_reference=bool(_REFERENCE.search(text, max(0, start - 14), start)),
            span=(offsets[start], offsets[end]),
            bound=_bound(text, start, after),
            role=_role(text, start),
        )
        if (match["sign"] or match["minus"] or has_words) and _has_open_sign(text, start, after, match):
            negated = replace(quantity, number=-number, value=offset - number * scale * factor)
            quantity = replace(quantity, negated=negated)
        yield quantity


def _has_open_sign(text: str, start: int, after: int, match: re.Match[str]) -> bool:
    """Whether the sign of a number is open: "± 5", "fell by 5", "5 % less"; "10 -5" may be a range without a space."""
    before = text[max(0, start - _LOSS_REACH) : start]
    if (match["sign"] or match["minus"]) and _AFTER_A_NUMBER.search(before):
        return True
    return bool(_EITHER_SIGN.search(before) or _LOSS_BEFORE.search(before) or _LOSS_AFTER.match(text, after))


def _bound(text: str, start: int, after: int) -> str:
    """What bounds the number [start, after) of a text: a group of _BOUND, or ""."""
    found = _BOUND_AFTER.match(text, after) or _BOUND.search(text, max(0, start - _BOUND_REACH), start)
    return (found.lastgroup if found else None) or ""


def _role(text: str, start: int) -> str:
    """The "by", "to" or "from" before a number; the "to" of a range is none."""
    found = _ROLE.search(text, max(0, start - _BOUND_REACH), start)
    return (found["role"] or found["end"] or found["to"]).casefold() if found else ""


def _number(match: re.Match[str]) -> tuple[float, float, float]:
    """The number, its step and its scale; the number is infinite if a float cannot hold it."""
    digits = (match["digits"] or "").replace(",", "").replace(" ", "")
    words = re.split("[- ]", (match["word"] or "").lower())
    significant = digits.rstrip("0")  # 155,000 may be rounded, 10 is not
    zeros = len(digits) - len(significant) if len(significant) > 1 else 0
    try:
        number = float(digits) if digits else float(sum(map(_SPELLED.__getitem__, words)))
        step = 10.0 ** (-len(digits.partition(".")[2]) if "." in digits else zeros)
        if match["raised"]:
            number, step = number ** int(match["raised"]), 0.0
        elif match["parts"]:
            number, step = number / int(match["parts"]), 0.0
        elif match["mixed"]:
            over, under = re.split("[⁄/]", match["mixed"])
            number, step = number + int(over) / int(under), 0.0
        scale = 10.0 ** int(match["power"] or match["flat"] or match["e"] or 0)
        scale *= _SCALES.get((match["scale"] or "").lower(), 1.0)
    except (OverflowError, ZeroDivisionError):  # 10^999, 0^-1, 1⁄0
        return math.inf, 0.0, 1.0
    return -number if match["sign"] or match["minus"] else number, step, scale


@lru_cache(maxsize=4096)
def _base_unit(form: str) -> tuple[str, float, float]:
    """The base unit of a unit in a text, and the factor and offset for conversion. "km/mouse" counts as km."""
    if sign := _SIGN_OF.get(form.lower()):
        return sign, 1.0, 0.0
    if form.lower() in _NO_UNITS or (len(form) == 1 and form.isalpha() and form not in _LETTERS):
        return "", 1.0, 0.0
    try:
        plain = re.sub(r"(?<=[A-Za-zμΩ])\^?(?=-?\d)", "**", form.replace(" per ", "/").replace("° ", "°"))
        in_pint_syntax = re.sub(r"(?<=[\w)])[ ·⋅](?=[A-Za-zμΩ])", "*", plain)
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


def is_unit(form: str) -> bool:
    """Whether these words are a unit that numbers can be converted to, such as "mg", "km/h", "%" or "weeks"."""
    return bool(_base_unit(form)[0])


def converted(quantity: Quantity, unit: str) -> float | None:
    """A quantity in another unit, as from `is_unit`; None if it measures something else, or has no unit.

    >>> converted(quantities("1.5 g of salt")[0], "mg")
    1500.0
    """
    base, factor, offset = _base_unit(unit)
    is_same = bool(base) and quantity.unit == base and math.isfinite(quantity.value)
    return float(f"{(quantity.value - offset) / factor:.12g}") if is_same else None
