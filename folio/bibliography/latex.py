"""Converts LaTeX in a bibliography to text ("{\'E}douard" to "Édouard"), and text to LaTeX. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate
from typing import Any

from folio.text import flat, lowered, one_line, raised

LONGEST = 20_000  # characters of a value; the rest is left out
_DEEPEST = 20  # nested braces that the recursive parser may get; deeper ones are dropped first
_COMMAND = re.compile(r"\\(?:[A-Za-z]+\s?|.|\Z)", re.S)
_PUNCTUATION = (("---", "—"), ("--", "–"), ("``", "“"), ("''", "”"), ("~", " "))
# Commands for characters that are special to LaTeX, or printed differently in its OT1 font encoding. Braces must become
# commands, because BibTeX counts even escaped braces: an unpaired one would end the field in the wrong place.
_COMMANDS = {
    "\\": "textbackslash", "{": "textbraceleft", "}": "textbraceright", "~": "textasciitilde", "^": "textasciicircum",
    "<": "textless", ">": "textgreater", "|": "textbar",
}  # fmt: skip
_ESCAPES = str.maketrans(
    {char: f"\\{char}" for char in "$&#_%"} | {char: f"\\{name}{{}}" for char, name in _COMMANDS.items()}
)
# LaTeX joins two of these: "--" is a dash.
_LIGATURE = re.compile(r"([-`'])(?=\1)|([?!])(?=`)")
# Commands that the parser does not know or reads differently
_SYMBOLS = {name: f"\\{char}" if char in "{}" else char for char, name in _COMMANDS.items() if char not in "\\~"}
_SYMBOL = re.compile(rf"\\({'|'.join(_SYMBOLS)})(?![A-Za-z])(?:\{{\}}|\s)?")
# Raised and lowered characters in the notation of text.py. An underscore may also be a part of a name.
_NOTATION = re.compile(r"([⁰¹²³⁴-ⁿⁱ]+|[₀-₎]+|\^(?:[^\W_]|\([\w/,.+-]{2,40}\)))")
# The same in LaTeX
_IN_MATH = re.compile(
    r"\$\s*(?P<sign>[\^_])\s*(?:\{(?P<all>[^{}$]*|\\(?:rm|mathrm|text)\s*\{[^{}$]*\})\}|(?P<one>[^\W_]))\s*\$"
)
_UPRIGHT = re.compile(r"\\(?:rm|mathrm|text)\s*\{?([^{}]*)\}?")
_BARE_PERCENT = re.compile(r"(?<!\\)%")  # begins a comment in LaTeX, but not in BibTeX


def to_text(value: str) -> str:
    """A value without its LaTeX, on one line. Invalid LaTeX just loses its commands and braces."""
    value = value[:LONGEST]
    if "\\" in value or "$" in value:
        if max(brace_depths(value)) > _DEEPEST:
            value = _without_braces(value)
        try:
            value = _IN_MATH.sub(_notation, value)
            value = _SYMBOL.sub(lambda found: _SYMBOLS[found[1]], _BARE_PERCENT.sub(r"\%", value))
            value = _converter().latex_to_text(value)
        except Exception:  # the parser raises IndexError, TypeError, RecursionError and others for invalid LaTeX
            value = _without_braces(_COMMAND.sub("", value))
    else:
        for source, shown in _PUNCTUATION:
            value = value.replace(source, shown)
        value = _without_braces(value)
    return one_line(value.replace("\x00", " "))


def to_latex(text: str) -> str:
    """Text escaped for LaTeX. Raised characters and lowered digits are set in mathematics: 2⁶⁴ is 2$^{64}$."""
    parts = _NOTATION.split(text)
    return "".join(_in_math(part) if place % 2 else _escaped(part) for place, part in enumerate(parts))


def _escaped(text: str) -> str:
    return _LIGATURE.sub(r"\g<0>{}", text.translate(_ESCAPES))


def _in_math(notation: str) -> str:
    """Raised characters, or lowered digits, for LaTeX: "⁶⁴", "^k", "^(n/2)", "₂"."""
    plain = flat(notation.removeprefix("^").removeprefix("(").removesuffix(")")).replace("−", "-")
    sign = next((sign for sign, write in (("^", raised), ("_", lowered)) if write(plain) == notation), "")
    return f"${sign}{{{plain}}}$" if sign else _escaped(notation)


def _notation(found: re.Match[str]) -> str:
    """What is raised or lowered in LaTeX, in the notation of text.py: CO$_2$ as CO₂."""
    content = found["one"] or _UPRIGHT.sub(r"\1", found["all"]).strip()
    if not content or _COMMAND.search(content):
        return found.group()
    return (raised if found["sign"] == "^" else lowered)(content)


def _without_braces(value: str) -> str:
    return value.replace("{", "").replace("}", "")


def brace_depths(text: str) -> list[int]:
    """The number of open braces after each character; below 0 where a brace was not opened."""
    return list(accumulate((char == "{") - (char == "}") for char in text))


@lru_cache(maxsize=1)
def _converter() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text

    return LatexNodes2Text(math_mode="text")
