"""The numbers in a text, with their units as Pint reads them (https://pint.readthedocs.io). Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from folio.text import tokenize

if TYPE_CHECKING:
    import pint


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text.

    number: the digits alone. value: with its scale ("1.2 million" is 1,200,000), in base units: 5 km are 5,000. unit:
    the base unit,
    such as "meter"; "%" or a currency's sign; "" for none or an unknown one. step: what one more in its last digit
    would add to the value.
    """

    number: float
    value: float
    unit: str = ""
    step: float = 0.0
    of: frozenset[str] = frozenset()  # the next two words, if they are no unit: "12 short exercises"
    is_spelled: bool = False  # "twelve"
    written: str = ""  # as it stands in the text
    with_unit: str = ""  # the same with its unit
    refers: bool = False  # "Table 3", "[12]"

    def is_among(self, others: Iterable[Quantity]) -> bool:
        """Whether one of the others is this number, or this number rounded, and has no other unit.

        A table may give a number without its unit or scale, and a share as a percentage or as a fraction of 1.
        """
        return any(self._is(other) for other in others)

    def _is(self, other: Quantity) -> bool:
        if self.unit == other.unit and _near(abs(self.value), self.step, abs(other.value), other.step):
            return True
        if self.unit == "%" and not other.unit:
            return self._is_bare(other) or _near(self.value / 100, self.step / 100, other.value, other.step)
        if other.unit == "%" and not self.unit:
            return self._is_bare(other) or _near(self.value * 100, self.step * 100, other.value, other.step)
        counts = (self.of and other.unit) or (other.of and self.unit)
        return not ((self.unit and other.unit) or counts) and self._is_bare(other)

    def _is_bare(self, other: Quantity) -> bool:
        scale = self.number / self.value if self.value else 1.0
        return self.number == other.number or _near(self.number, self.step * scale, other.number, other.step)


def _near(value: float, step: float, other: float, other_step: float) -> bool:
    """Whether two values are equal, or the first is the other one rounded to its last digit."""
    apart = abs(value - other)
    return apart <= 1e-9 * abs(value) or (other_step < step and apart <= 0.501 * step)


_ONES = "one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SPELLED = {word: number for number, word in enumerate(f"{_ONES} {_TEENS}".split(), 1)} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), 2)
}
_ANY = "|".join(_SPELLED)
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6}
_SCALES |= {"b": 1e9, "bn": 1e9}
_NUMBER = re.compile(
    r"(?<![\w/])(?<![A-Z_]-)(?P<sign>(?<![\w)%] )-(?=[\d.]))?"
    rf"(?:(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![\d,]*\d)|\d{{1,3}}(?: \d{{3}})+(?!\d)|\d+(?:\.\d+)?|\.\d+)"
    rf"|(?P<word>(?:{_TENS.replace(' ', '|')})[- ](?:{_ONES.replace(' ', '|')})\b|(?:{_ANY})\b))"
    r"(?: ?[×x·*⋅] ?10 ?\^? ?[({]?(?P<power>-?\d{1,3})[)}]?|e(?P<e>[-+]?\d{1,3})(?!\w)|\^[({]?(?P<raised>-?\d{1,2})[)}]?)?"
    r"(?:[ -]?(?P<scale>hundred|thousand|million|billion|trillion|bn\b|[kmb](?=[ .,;:)]|$)))?",
    re.I,
)
_UNIT = re.compile(
    r"[ -]?(?P<unit>[%‰$€£¥°℃℉]|° ?[CF]\b|[A-Za-zμΩ]+(?:\^?-?[123])?(?:(?: ?/ ?| per )[A-Za-zμ]+(?:\^?[23])?)?)"
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th|s)\b")
_COUNTED = re.compile(
    r"[ -](?!and|or|to|in|of|for|with|per|by|is|was|from|on|at|as|points?\b)[^\W\d_]{3,}(?:[ -][^\W\d_]+)?"
)
_REFERS = re.compile(
    r"(?:\[|§ ?|\b(?:table|tab|figure|fig|section|sec|equation|eq|chapter|appendix|theorem|lemma|algorithm|page|pp?|ref)"
    r"s?\.? ?\(?)$",
    re.I,
)
_CURRENCY = re.compile(r"(?:US)?([$€£¥]) ?$")
_SUPERSCRIPT = re.compile(r"[⁻⁺]?[⁰¹²³⁴-⁹]+")
_SIGNS = str.maketrans(
    {"−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "µ": "μ", "\xa0": " ", "\u202f": " ", "\u2009": " "}
)
# Words that Pint takes for units, but that are hardly ever one behind a number in a paper.
_NO_UNITS = frozenset(
    "a are as at bar bars barn barns beat beats bit count counts cycle cycles degree dot dots drop drops h hand hands"
    " in last link links m pace per perch pica point points pole poles rad rod rods scaled slug stone t table us x d b k"
    " turn turns fps tokens u f e n s c l j g v w y z q p o i r".split()
)
_WORDS = {"percent": "%", "pct": "%", "percentage": "%", "percentages": "%", "euro": "€", "euros": "€", "eur": "€",
          "dollar": "$", "dollars": "$", "usd": "$", "pounds": "£", "gbp": "£", "yen": "¥", "℃": "°C", "℉": "°F"}  # fmt: skip


@lru_cache(maxsize=4096)
def quantities(text: str) -> tuple[Quantity, ...]:
    """The numbers of a text, in order. Words such as "one" and ordinals such as "2nd" are none."""
    return tuple(_read(normal(text)))


@lru_cache(maxsize=1024)
def normal(text: str) -> str:
    """The text on one line with one form of dashes, digits and exponents."""
    if not text.isascii():
        text = _SUPERSCRIPT.sub(
            lambda found: "^" + unicodedata.normalize("NFKC", found.group()).replace("−", "-"), text
        )
        text = re.sub(r"[^\D0-9]", lambda digit: str(unicodedata.decimal(digit.group())), text.translate(_SIGNS))
    return " ".join(text.split()).replace("per cent", "percent")


def _read(text: str) -> Iterator[Quantity]:
    for match in _NUMBER.finditer(text):
        word = (match["word"] or "").lower()
        if word == "one" or _ORDINAL.match(text, match.end()):
            continue
        digits = (match["digits"] or "").replace(",", "").replace(" ", "")
        value = float(digits) if digits else float(sum(_SPELLED[part] for part in re.split("[- ]", word)))
        if match["raised"]:
            value **= int(match["raised"])
        scale = 10.0 ** int(match["power"] or match["e"] or 0) * _SCALES.get((match["scale"] or "").lower(), 1.0)
        if match["sign"]:
            value = -value
        unit, factor, offset, end = "", 1.0, 0.0, match.end()
        if before := _CURRENCY.search(text, max(0, match.start() - 4), match.start()):
            unit = before[1]
        elif found := _UNIT.match(text, match.end()):
            alone = len(found["unit"]) == 1 and found["unit"].isalpha() and text[match.end()].isspace()
            if not (alone and re.match(r" \w", text[found.end() :])):  # "in 2019 A model"
                unit, factor, offset = _base(found["unit"])
                end = found.end() if unit else end
        step = scale * factor * 10.0 ** -len(digits.partition(".")[2])
        if "." not in digits and len(significant := digits.rstrip("0")) > 1:  # 155,000 may be rounded, 10 is not
            step *= 10.0 ** (len(digits) - len(significant))
        behind = _COUNTED.match(text, match.end()) if not unit else None
        of = frozenset(tokenize(behind.group())) if behind else frozenset[str]()
        refers = bool(_REFERS.search(text, max(0, match.start() - 14), match.start()))
        whole, written = value * scale * factor + offset, match.group().strip()
        yield Quantity(value, whole, unit, step, of, bool(word), written, text[match.start() : end].strip(), refers)


@lru_cache(maxsize=4096)
def _base(form: str) -> tuple[str, float, float]:
    """The base unit of a written unit, and what turns a value into it; "" for a word that is no unit."""
    if (sign := _WORDS.get(form.lower(), form)) in ("%", "‰", "$", "€", "£", "¥"):
        return sign, 1.0, 0.0
    if form.lower() in _NO_UNITS and form not in ("K", "V", "W", "J", "h", "s", "m", "g", "L", "A"):
        return "", 1.0, 0.0
    try:
        unit = _registry().Quantity(1.0, sign.replace(" per ", "/").replace("° ", "°"))
        zero = _registry().Quantity(0.0, unit.units).to_base_units()
        one = unit.to_base_units()
    except Exception:  # whatever Pint does not know is no unit; each kind of nonsense has its own error
        return ("", 1.0, 0.0) if "/" not in form and " " not in form else _base(re.split(r"[ /]", form)[0])
    return str(one.units), one.magnitude - zero.magnitude, zero.magnitude


@cache
def _registry() -> pint.UnitRegistry[float]:
    import pint

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)
