"""Numbers with their units, normalised to one form. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import product


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in its simplest form ("155000", "0.5") with its unit ("km", "%"; "" for none).

    For a reference, the unit says what it refers to: "ta" for Table 3, "[" for [12].
    """

    value: str
    unit: str = ""


_ONES = dict(zip("one two three four five six seven eight nine".split(), range(1, 10), strict=True))
_TEENS_WORDS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TEENS = dict(zip(_TEENS_WORDS.split(), range(10, 20), strict=True))
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_NUMBER_WORDS = _ONES | _TEENS | _TENS
_BELOW_100 = rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_ONES)}))?|{'|'.join(_TEENS)}|{'|'.join(_ONES)})"
_SPELLED = re.compile(
    rf"\b(?:(?:(?P<hundreds>{_BELOW_100}|a)[- ])hundred(?:(?: and)?[- ](?P<rest>{_BELOW_100}))?"
    rf"|(?P<small>{_BELOW_100}))(?=fold\b|\b)",
    re.I,
)
_EXACTLY = "".join(f"(?<!{word} )" for word in "about nearly almost roughly around over than approximately some first"
                   " second last other latter former and a one every".split())  # fmt: skip
_WORDING = (
    (re.compile(rf"\b{_EXACTLY}(?:(?:one|a) )?half of\b", re.I), "0.5 of"),
    (re.compile(rf"\b{_EXACTLY}(?:one|a) quarter of\b", re.I), "0.25 of"),
    (re.compile(rf"\b{_EXACTLY}3[ -]quarters of\b", re.I), "0.75 of"),
    (re.compile(r"\b(?:a|one)[ -](?=(?:thousand|million|billion|trillion)\b)", re.I), "1 "),
    (re.compile(r"\bper cent\b", re.I), "percent"),
    (re.compile(r"\bpercentage[- ]points?\b|\bpercent[- ]points?\b", re.I), "pp"),
    (re.compile(r"\bdegrees? (?:Celsius|centigrade)\b|℃", re.I), "°C"),
    (re.compile(r"\bdegrees? Fahrenheit\b|℉", re.I), "°F"),
    (re.compile(r"\bframes per second\b", re.I), "fps"),
    (re.compile(r"\b(?:square|sq\.?) (\w*(?:met(?:re|er)|mile)s?|[kc]?m)\b", re.I), r"\1^2"),
    (re.compile(r"\bcubic (\w*met(?:re|er)s?|[kc]?m)\b", re.I), r"\1^3"),
    (re.compile(r"(?<=\d)\s?x\s?(?=\d)"), "×"),
    (re.compile(r"\bminus (?=\d)", re.I), "-"),
    (re.compile(r"(?<=\d)·(?=\d)(?!10 ?\^)"), "."),
    (re.compile(r"(?<=\d), (?=0\d\d\b)"), ","),
)  # fmt: skip
_SUPERSCRIPT = re.compile(r"[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SIGNS = str.maketrans({"−": "-", "‐": "-", "‑": "-", "\xa0": " ", "\u2009": " ", "\u202f": " ", "\u2007": " "}
                       | {chr(0x2080 + digit): str(digit) for digit in range(10)})  # fmt: skip
_DASH_IN_WORD = re.compile(r"(?<=[^\W\d_])[–—](?=\w)")


@lru_cache(maxsize=256)
def plain_text(text: str) -> str:
    """The text with its numbers and units in a normal form."""
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda match: "^" + match.group().translate(_SUPERSCRIPTS), text).translate(_SIGNS)
        text = _DASH_IN_WORD.sub("-", text)
        text = re.sub(r"[^\D0-9]", lambda match: str(unicodedata.decimal(match.group())), text)
    text = _SPELLED.sub(_as_digits, " ".join(text.split()))
    for pattern, replacement in _WORDING:
        text = pattern.sub(replacement, text)
    return text


def _as_digits(match: re.Match[str]) -> str:
    """A number word as digits; "one" by itself stays, as it is often a pronoun."""

    def below_100(words: str | None) -> int:
        return sum(_NUMBER_WORDS.get(word, 0) for word in re.split("[- ]", (words or "").lower()))

    if match["small"]:
        return match.group() if match["small"].lower() == "one" else str(below_100(match["small"])) + _space(match)
    return str((below_100(match["hundreds"]) or 1) * 100 + below_100(match["rest"])) + _space(match)


def _space(match: re.Match[str]) -> str:
    return " " if match.string.startswith("fold", match.end()) else ""


@lru_cache(maxsize=256)
def key(text: str) -> str:
    """The words and numbers of a text in lower case, without accents and punctuation, each between spaces.

    >>> key("the ML-KEM-768, v1.2")
    ' the ml kem 768 v 1.2 '
    """
    folded = unicodedata.normalize("NFKD", text.casefold()).translate(_GREEK)
    return f" {' '.join(_PIECE.findall(_MARKS.sub('', folded)))} "


_PIECE = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)*")
# IFN-γ is also written IFN-gamma.
_GREEK = {ord(letter): f" {unicodedata.name(letter).split()[-1].lower()} " for letter in "αβγδεζηθικλμνξοπρστυφχψω"} | {
    ord("ς"): " sigma "
}
_MARKS = re.compile("[\u0300-\u036f\xad]")


_NUMBER = re.compile(
    r"(?:\b(?P<kind>tables?|tab|figures?|figs?|sections?|secs?|sects?|equations?|eqs?|chapters?|appendix|theorem|lemma"
    r"|algorithms?|listing|definition|refs?|pages?|pp?)(?:\.|\b)\s?\(?|§\s?)?"
    r"(?:(?P<sign>(?<![\w)\]%])[-–])|(?<!\w))"
    r"(?:(?P<grouped>[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)(?:\.\d+)?)"
    r"|(?P<spaced>[1-9]\d{0,2}(?: \d{3})+(?![\d]|[.,]\d{3})(?:[.,]\d+)?)"
    r"|(?P<comma>(?<!\d,)\d+,\d+(?!,?\d))|(?P<digits>\d+(?:\.\d+)?|(?<!\.)\.\d+))"
    r"(?:\s?[×*·⋅x]\s?10\s?(?=[\^–-])\^?[{(]?(?P<power>[-–+]?\d{1,3})[})]?|[eE](?P<e>[-–+]?\d{1,3})(?!\w)"
    r"|\^[{(]?(?P<raised>[-–+]?\d{1,3})[})]?)?"
    r"(?:[\s-]?(?P<times>hundred|thousand|million|billion|trillion|millionen|milliarden)\b|(?-i:(?P<short>[kKMBT]))(?!\w))?",
    re.I,
)
_TIMES = {"hundred": 2, "thousand": 3, "million": 6, "millionen": 6, "billion": 9, "milliarden": 9, "trillion": 12}
_SHORT = {"k": 3, "K": 3, "M": 6, "B": 9, "T": 12}
_KINDS = {"p": "pa", "pp": "pa"}
REFERRING = frozenset("ta fi se eq ch ap th le al li de re pa [".split())
_CITED = re.compile(r"\[[1-9]\d{0,2}(?:\s?[,;–-]\s?[1-9]\d{0,2})*\]")
_EACH = re.compile(r"\s(?:each|every)\s")
_RANGE = frozenset(("-", "–", "—", "to", "±", "+/-", "×", "through", "bis"))
_LIST = _RANGE | {"and", "or", ",", "&", ", and", "und"}
_CURRENCY_BEFORE = re.compile(r"(?:[$€£¥]|USD|EUR|GBP)\s?$")
_NAME_BEFORE = re.compile(r"[^\W\d_][\w+-]*[ -]$")
# Words that may mean a number in the evidence, but need not.
_LOOSE = {
    word: value
    for value, words in {
        "0.5": "half halves halved", "0.25": "quarter", "0.75": "quarters",
        "1": "one single first once", "2": "second twice double doubles doubled both pair",
        "3": "third triple tripled", "4": "fourth", "5": "fifth",
        "100": "hundred", "1000": "thousand", "1000000": "million",
    }.items()
    for word in words.split()
}  # fmt: skip
_LOOSE_WORD = re.compile(rf"\b(?:{'|'.join(_LOOSE)})\b", re.I)


def canonical(number: Decimal) -> str:
    if not number:
        return "0"
    if abs(number.adjusted()) > 1000 or abs(int(number.as_tuple().exponent)) > 1000:
        return str(number.normalize())
    digits = f"{number:f}"  # not normalize() for all: it rounds
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def numbers(text: str, whole: str) -> tuple[list[Quantity], set[Quantity], set[tuple[Quantity, str]]]:
    """The quantities of a plain text in order, their other possible readings, and those after a name.

    text: has the identifiers blanked out. whole: the same text with them.
    """
    cited = {place for match in _CITED.finditer(text) for place in range(match.start() + 1, match.end())}
    quantities: list[Quantity] = []
    loose = {_LOOSE[word.lower()] for word in _LOOSE_WORD.findall(text)}
    others = {Quantity(value, unit) for value in loose for unit in ("", "fold")}
    labelled: set[tuple[Quantity, str]] = set()
    last, plural, last_start, label = -1, False, 0, ""
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        if start < last:
            continue  # the power of a unit, km^2
        value, more = _value(match)
        unit, end = unit_at(text, end)
        gap = text[last:start].strip().lower() if 0 <= last <= start else "?"
        kind = re.sub(r"[^a-z§]", "", (match["kind"] or match.group()[:1]).lower())
        if start in cited:
            unit = "["
        elif match["kind"] or kind == "§":
            unit, plural = _KINDS.get(kind, "se" if kind == "§" else kind[:2]), kind.endswith("s")
        elif gap in _LIST and plural and quantities[-1].unit in REFERRING:
            unit = quantities[-1].unit
        elif not unit and (currency := _CURRENCY_BEFORE.search(text, max(0, start - 5), start)):
            unit = unit_of(currency.group().strip()) if text[end : end + 1] != "$" else ""
        elif unit and quantities and not quantities[-1].unit:
            between = gap == "and" and text[max(0, last_start - 9) : last_start].strip().lower().endswith("between")
            if gap in _RANGE or between:  # the unit after a range belongs to both ends
                others.add(quantities[-1])
                quantities[-1] = Quantity(quantities[-1].value, unit)
        if "/" in unit and _EACH.search(text, match.end(), end):  # 40 m each year are 40 m, and 40 m per year
            others.add(Quantity(canonical(value), unit))
            unit = unit.split("/")[0]
        quantity = Quantity(canonical(value), unit)
        others.update(Quantity(canonical(other), unit) for other in more)
        if match["short"] and not unit:
            others.add(Quantity(canonical(_decimal(match)), match["short"]))
        elif unit in _SHORT:
            others.add(Quantity(canonical(value.scaleb(_SHORT[unit]))))
        if quantities and gap in ("-", "–") and quantities[-1].value == "10" and abs(value) < 100:
            others.add(Quantity(canonical(Decimal(10) ** -int(value)), unit))
        elif quantities and gap == "×" and match["digits"] and re.fullmatch(r"10\d{1,2}", match["digits"]):
            others.add(Quantity(canonical(Decimal(quantities[-1].value).scaleb(int(match["digits"][2:]))), unit))
        if match["sign"] and re.search(r"\d\s$", text[max(0, start - 2) : start]):
            others.add(Quantity(canonical(value.copy_abs()), unit))
        if name := _NAME_BEFORE.search(whole, max(0, start - 40), start):
            label = name.group() + match.group()
        else:  # the 207 of SP 800-207
            label = f"{label}-{match.group()}" if label and gap == "-" else ""
        if label and not label.islower() and not unit:
            labelled.add((quantity, key(label)))
        quantities.append(quantity)
        last, last_start = end, start
    return quantities, others, labelled


def _decimal(match: re.Match[str]) -> Decimal:
    digits = match["grouped"] or match["spaced"] or match["comma"] or match["digits"]
    digits = digits.replace(" ", "")
    digits = digits.replace(",", "") if match["grouped"] else digits.replace(",", ".")
    return Decimal(f"-{digits}" if match["sign"] else digits)


def _value(match: re.Match[str]) -> tuple[Decimal, list[Decimal]]:
    """The value of a number, and other values it may have."""
    value, others = _decimal(match), list[Decimal]()
    power = (match["power"] or match["e"] or match["raised"] or "").replace("–", "-")
    if match["comma"] and not match["comma"].startswith("0"):
        others = [Decimal(part) for part in match["comma"].split(",")]
    elif match["spaced"]:
        others = [Decimal(part.replace(",", ".")) for part in match["spaced"].split(" ")]
    elif (digits := match["digits"]) and (lost := re.fullmatch(r"(10|2)(\d{1,3})", digits)):
        others = [Decimal(lost[1]) ** int(lost[2])]  # 10⁶ that lost its superscript: 106
    if match["raised"]:
        others = [abs(value), Decimal(power), Decimal(f"{abs(value)}{power.lstrip('+-')}")]
        if value and abs(value.adjusted() * int(power)) < 1000:
            value = Decimal(-1 if match["sign"] else 1) * abs(value) ** int(power)
    elif power:
        value = value.scaleb(int(power))
    scale = _TIMES[match["times"].lower()] if match["times"] else _SHORT.get(match["short"] or "", 0)
    return value.scaleb(scale) if scale else value, others


# Units


def _unit_names() -> dict[str, str]:
    """Symbols, and spelled-out forms in lower case, to the unit as this module writes it."""
    units: dict[str, str] = {}
    large, small = "kMGT", "nµmck"
    for symbols, prefixes in (
        ("m g", small), ("s M", "nµm"), ("V A W J L mol", "nµmkMG"), ("Pa eV", "mkMGT"), ("Hz W Wh B bit", large),
    ):  # fmt: skip
        for symbol in symbols.split():
            units.update((prefix + symbol, prefix + symbol) for prefix in ("", *prefixes))
    units.update({f"{p}b": f"{p}bit" for p in large} | {f"{p}bps": f"{p}bit/s" for p in ("", *large)})
    units.update({f"{p}l": f"{p}L" for p in ("m", "µ", "")} | {f"{p}iB": f"{p}iB" for p in "KMGT"})
    units.update({"KB": "kB", "Kb": "kbit", "Kbit": "kbit", "Kbps": "kbit/s"})
    spelled = dict(zip(
        "metre meter gram second hertz volt ampere watt joule pascal byte bit litre liter mole electronvolt".split(),
        "m m g s Hz V A W J Pa B bit L L mol eV".split(),
        strict=True,
    ))  # fmt: skip
    prefixes_spelled = {"": "", "nano": "n", "micro": "µ", "milli": "m", "centi": "c", "kilo": "k", "mega": "M",
                        "giga": "G", "tera": "T"}  # fmt: skip
    for (prefix, short), (word, symbol) in product(prefixes_spelled.items(), spelled.items()):
        units[prefix + word] = units[f"{prefix}{word}s"] = short + symbol
    for unit, forms in {
        "%": "% percent pct", "pp": "pp", "‰": "‰", "min": "min mins minute minutes", "h": "h hr hrs hour hours",
        "s": "sec secs", "d": "day days", "wk": "week weeks", "mo": "month months", "yr": "yr yrs year years",
        "°C": "°C", "°F": "°F", "°": "° degree degrees", "K": "K kelvin kelvins", "dB": "dB decibel decibels",
        "ppm": "ppm", "ppb": "ppb", "px": "px pixel pixels", "fps": "fps", "rpm": "rpm", "$": "$ USD dollar dollars",
        "€": "€ EUR euro euros", "£": "£ GBP", "¥": "¥ JPY yen", "fold": "x × fold times", "mi": "mile miles",
        "mph": "mph", "ft": "ft foot feet", "inch": "inch inches", "ha": "ha hectare hectares",
        "D": "D dimensional dimension dimensions", "km/h": "kmh kph",
    }.items():  # fmt: skip
        units.update(dict.fromkeys(forms.split(), unit))
    units.update({form.replace("µ", micro): unit for form, unit in tuple(units.items()) for micro in "uμ"})
    return units


UNITS = _unit_names()
# A unit in other capitals, "KM" or "hz", where that is unambiguous.
_FOLDED: dict[str, set[str]] = {}
for _form, _symbol in UNITS.items():
    _FOLDED.setdefault(_form.casefold(), set()).add(_symbol)
# A factor needs no "times" in the evidence.
SOFT_UNITS = frozenset({"fold", "D"})
_UNIT = re.compile(
    r"[\s-]?(?P<unit>%-points?|[%‰$€£¥]|×(?!\s?\d)|°\s?[CF]?|[A-Za-zµμ]+)(?P<power>\^?[23](?!\w|\.\d))?"
    r"(?:(?:\s?/\s?|\s+(?:per|an?|each|every)\s+)(?P<per>[A-Za-zµμ]+)(?P<per_power>\^?[23](?!\w|\.\d))?)?(?!\w)"
)
# A single capital after a space is an article or a label: "in 2019 A", "Table 5 B".
_AMBIGUOUS = frozenset("ABDVWJML")
_WORD_BEHIND = re.compile(r"\s+[a-z]")
UNIT_WORD = re.compile(
    r"[%‰$€£¥]|°\s?[CF]?|(?<![\w/])(?:[A-Za-zµμ]+\^?[23](?!\w|\.\d)|[A-Za-zµμ]{2,})(?:/[A-Za-z]+)?"
    r"|(?<=[\s(\[/,][(\[/,])[A-Za-z](?=[)\],])"
)


def unit_of(form: str) -> str:
    """The unit for a written form; "" if it is no unit."""
    form = form.replace(" ", "")
    if form.startswith("%-"):
        return "pp"
    folded = _FOLDED.get(form.casefold(), set()) if len(form) > 1 else set()
    return UNITS.get(form) or UNITS.get(form.casefold() if len(form) > 2 else form) or (
        next(iter(folded)) if len(folded) == 1 else ""
    )  # fmt: skip


def unit_of_power(form: str) -> str:
    """The same for a form that may have a power: "km2"."""
    plain = form.rstrip("23").rstrip("^")
    unit = unit_of(plain)
    return f"{unit}^{form[-1]}" if unit and plain != form else unit


def unit_at(text: str, end: int) -> tuple[str, int]:
    """The unit at this offset after a number, and the offset where it ends; "" and the same offset if there is none."""
    match = _UNIT.match(text, end)
    if match is None:
        return "", end
    form, spaced = match["unit"], text[end].isspace()
    unit = unit_of(form)
    lone = form in _AMBIGUOUS and spaced and _WORD_BEHIND.match(text, match.end("unit"))
    decade = form == "s" and not spaced and re.search(r"\d{3}0$", text[max(0, end - 4) : end])
    if not unit or lone or decade:
        return "", end
    unit += "^" + match["power"][-1] if match["power"] else ""
    if not match["per"] or not (per := unit_of(match["per"])):
        return unit, match.end("power") if match["power"] else match.end("unit")
    return f"{unit}/{per}" + ("^" + match["per_power"][-1] if match["per_power"] else ""), match.end()
