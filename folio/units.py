"""Units: how they are written, and which one stands behind a number. Pure."""

from __future__ import annotations

import re
from itertools import product


def _unit_names() -> dict[str, str]:
    """Symbols, and spelled forms in lower case, to the unit as this room writes it."""
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
# A unit in other capitals, "KM" or "hz", where only one can be meant.
_FOLDED: dict[str, set[str]] = {}
for _form, _symbol in UNITS.items():
    _FOLDED.setdefault(_form.casefold(), set()).add(_symbol)
# That three times something is said needs no "times" in the evidence.
SOFT_UNITS = frozenset({"fold", "D"})
_UNIT = re.compile(
    r"[\s-]?(?P<unit>%-points?|[%‰$€£¥]|×(?!\s?\d)|°\s?[CF]?|[A-Za-zµμ]+)(?P<power>\^?[23](?!\w|\.\d))?"
    r"(?:(?:\s?/\s?|\s+(?:per|an?|each|every)\s+)(?P<per>[A-Za-zµμ]+)(?P<per_power>\^?[23](?!\w|\.\d))?)?(?!\w)"
)
# One capital behind a space is an article, or a label: "in 2019 A", "Table 5 B".
_AMBIGUOUS = frozenset("ABDVWJML")
_WORD_BEHIND = re.compile(r"\s+[a-z]")
UNIT_WORD = re.compile(
    r"[%‰$€£¥]|°\s?[CF]?|(?<![\w/])(?:[A-Za-zµμ]+\^?[23](?!\w|\.\d)|[A-Za-zµμ]{2,})(?:/[A-Za-z]+)?"
    r"|(?<=[\s(\[/,][(\[/,])[A-Za-z](?=[)\],])"
)


def unit_of(form: str) -> str:
    """The unit that a form of it means; "" where it is none."""
    form = form.replace(" ", "")
    if form.startswith("%-"):
        return "pp"
    folded = _FOLDED.get(form.casefold(), set()) if len(form) > 1 else set()
    return UNITS.get(form) or UNITS.get(form.casefold() if len(form) > 2 else form) or (
        next(iter(folded)) if len(folded) == 1 else ""
    )  # fmt: skip


def unit_of_power(form: str) -> str:
    """The unit that a form of it means which may have a power: "km2"."""
    plain = form.rstrip("23").rstrip("^")
    unit = unit_of(plain)
    return f"{unit}^{form[-1]}" if unit and plain != form else unit


def unit_at(text: str, end: int) -> tuple[str, int]:
    """The unit that stands at a place behind a number, and where it ends; "" and the place where none does."""
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
