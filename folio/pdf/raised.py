"""Raised and lowered characters: exponents, indices, fractions, and the marks of notes.

MuPDF gives the words of a line without their heights, so that 2^64 reads 264, and 92.4 with the mark of note 3 reads
92.43. Here a span that is smaller than its line and above or below its baseline is written in the notation of
folio/text.py: 2⁶⁴, 10⁻⁴, CO₂, x_i. The mark of a note stands apart from what it marks: "92.4 ³", "method ³".

Both are raised, and what stands before them tells them apart: a word, a decimal or a full stop has no exponent, a
variable, a unit or a power of ten has no note. A whole number may have either. It has notes where the page has others.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from folio.pdf.mupdf import CLIPPED, FILLED, STROKED, lines
from folio.text import flat, lowered, raised

# A raised or lowered span is smaller than this share of its line's type, and its baseline is this share of it higher
# or lower. Type of the same size, set higher by hand, is raised by more, and by less than a line.
_SMALLER, _HIGHER, _LOWER = 0.9, 0.15, 0.05
_LIKE_HEAVIEST = 0.7
_SAME_HIGHER, _SAME_LOWER, _MOST = 0.25, 0.12, 0.9
# Longer pieces are lines of their own that touch this one.
_LONGEST = 24
# A lowered piece of so many letters after a space is a word, not an index.
_SHORTEST_WORD = 4
_ITALIC = 2  # MuPDF's flag of a font
_PAINTED = FILLED | STROKED | CLIPPED
_UNICODE = re.compile("([⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ]+)|([₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎]+)")

_DIGITS = re.compile(r"\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*")
_NOTE = re.compile(rf"(?:{_DIGITS.pattern}|[a-z](?:\s?[,;]\s?[a-z0-9])*)[,;]?")
_SIGNED = re.compile(r"[+\-−–]|\d\s?[+\-−–]$")
_ORDINAL = re.compile(r"st|nd|rd|th|er|os|as", re.I)
_BRAND = re.compile(r"TM|SM|MC|MR")
_WORD = re.compile(r"[^\W\d_⁰¹²³⁴-⁹ⁿⁱ₀-₉]+$")
_NUMBER = re.compile(r"\d[\d.,\u2009\u202f]*$")
_POWER = re.compile(r"(?<![\d.,])(?:10|2)$")
_FUNCTION = re.compile(r"(?:arc)?(?:sin|cos|tan|cot)h?|log|ln|exp|sec|csc", re.I)
# Units of length, the only ones of several letters whose powers have names: area and volume. And those of time.
_UNIT = re.compile(r"(?:[kcdmnhMµμ]?m|ft|yd|mi|in|ms|min|kg|mol)")
_AFTER_QUANTITY = re.compile(r"(?:\d|/|\bper|·|[⁰¹²³⁻]+)\s*[^\W\d_]+$")
_NO_VOWEL = re.compile(r"[^aeiouy]+")  # two variables: mc²
_LENGTH = re.compile(r"[kcdnµμ]m|mm")
_SLANTED = re.compile(r"CMMI|ital|obli|math", re.I)
# What brackets hold that are raised to a power, and what they hold that have a note: "(x + 1)²", "(n = 48) ³"
_STATEMENT = re.compile(r"[=<>≤≥,;:%]|[^\W\d_]{3,}|\d{4}")
_FORMULA = re.compile(r"[=+*/^·−]|\d|(?:^|\W)[^\W\d_](?:\W|$)")
_NOTE_MARK = re.compile(r" [⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_OPERATORS = frozenset("=≈≤≥<>×·+−")
_SLASH = re.compile(r"\s*[/⁄∕]\s*")


class _Run(NamedTuple):
    """Characters of a line at one height."""

    text: str
    level: int  # 1 raised, -1 lowered, 0 on the line
    is_italic: bool
    is_small: bool  # smaller than the line's type
    span: int  # its index in the line


def write_notation(blocks: Sequence[Mapping[str, Any]]) -> None:
    """Write the raised and lowered spans of MuPDF's lines in their notation, in place.

    A changed span keeps what it was under "plain".
    """
    page_lines = list(lines(blocks))
    # Most pages have no character that is raised or lowered itself.
    has_unicode = _UNICODE.search("".join([span["text"] for line in page_lines for span in line["spans"]])) is not None
    changed = [(line, runs) for line in page_lines if (runs := _runs(line, has_unicode))]
    if not changed:
        return
    has_notes = any(_mark_is_sure(runs) for _, runs in changed)
    for line, runs in changed:
        written = [""] * len(line["spans"])
        for run, text in zip(runs, _written(runs, has_notes), strict=True):
            written[run.span] += text
        for span, text in zip(line["spans"], written, strict=True):
            if text != span["text"]:
                span["plain"], span["text"] = span["text"], text


def _runs(line: Mapping[str, Any], has_unicode: bool) -> list[_Run]:
    """The runs of a line in which something is raised or lowered; [] for any other.

    has_unicode: whether it may have characters that are raised or lowered themselves.
    """
    spans = line["spans"]
    levels = _levels(line) if len(spans) > 1 else [0] * len(spans)
    if not any(levels) and not (has_unicode and any(_UNICODE.search(span["text"]) for span in spans)):
        return []
    small = _SMALLER * max(span["size"] for span in spans)
    runs: list[_Run] = []
    for index, (span, level) in enumerate(zip(spans, levels, strict=True)):
        is_small = span["size"] < small
        is_italic = bool(span["flags"] & _ITALIC) or _SLANTED.search(span["font"]) is not None
        if level and runs and runs[-1].level == level:  # of several fonts
            runs[-1] = runs[-1]._replace(text=runs[-1].text + flat(span["text"]))
            continue
        if level:
            runs.append(_Run(flat(span["text"]), level, is_italic, is_small, index))
            continue
        for number, part in enumerate(_UNICODE.split(span["text"])):
            if part:
                # The pattern has a group for raised characters, and one for lowered ones.
                runs.append(_Run(flat(part), (0, 1, -1)[number % 3], is_italic, is_small, index))
    return runs


def _levels(line: Mapping[str, Any]) -> list[int]:
    """Whether each span of a line is raised (1), lowered (-1) or neither."""
    if line["dir"] == (1.0, 0.0) and len({(span["size"], span["origin"][1]) for span in line["spans"]}) == 1:
        return [0] * len(line["spans"])
    weights: dict[tuple[float, float], float] = {}
    lettered = set[tuple[float, float]]()  # the places that have letters or digits: a tall bracket is no line
    for span in line["spans"]:
        if count := len(span["text"].replace(" ", "")):
            place = span["size"], _baseline(span, line["dir"])
            weights[place] = weights.get(place, 0.0) + count * span["size"] ** 3
            if any(map(str.isalnum, span["text"])):
                lettered.add(place)
    if len(weights) < 2:
        return [0] * len(line["spans"])
    heaviest = max(weights, key=weights.__getitem__)
    # Of about the same weight, the larger type: the labels of an axis, 2¹⁰ 2¹¹ 2¹², may have more exponents than bases.
    like = [place for place in lettered if weights[place] >= _LIKE_HEAVIEST * weights[heaviest]]
    size, baseline = max(like, default=heaviest)
    levels, base = [], baseline
    for span in line["spans"]:
        own = _baseline(span, line["dir"])
        is_small = span["size"] < _SMALLER * size
        # What is raised stands on the letter before it: a numerator, and what it is a factor of, are at two heights.
        levels.append(_level(span, size, (base if is_small else baseline) - own))
        if not is_small and any(map(str.isalnum, span["text"])):
            base = own
    for index in range(1, len(levels) - 1):
        before, span, behind = line["spans"][index - 1 : index + 2]
        # A space inside an index or an exponent, unless it separates two numbers or the marks of notes: "1, ID"
        is_inside = levels[index - 1] == levels[index + 1] != 0 and not span["text"].strip()
        is_between = before["text"][-1:].isdigit() and behind["text"][:1].isdigit()
        is_between = is_between or (levels[index - 1] > 0 and before["text"].rstrip()[-1:] in (",", ";"))
        if is_inside and span["size"] < _SMALLER * size and not is_between:
            levels[index] = levels[index - 1]
    return levels


def _baseline(span: Mapping[str, Any], direction: tuple[float, float]) -> float:
    """How far down the baseline of a span is, in points, seen in the direction of its line."""
    (x, y), (along, down) = span["origin"], direction
    return float(y * along - x * down)


def _level(span: Mapping[str, Any], size: float, height: float) -> int:
    """height: of the span's baseline above that of its line, in points. size: of the line's type."""
    text = span["text"].strip()
    if not span.get("char_flags", _PAINTED) & _PAINTED:
        return 0  # the text layer of a scan: its sizes and baselines are guesses
    height = height / size if size > 0 else 0.0
    if not text or len(text) > _LONGEST or abs(height) > _MOST:
        return 0
    if span["size"] < _SMALLER * size:
        return 1 if height > _HIGHER else -1 if height < -_LOWER else 0
    if not any(map(str.isdigit, text)):
        return 0
    return 1 if height > _SAME_HIGHER else -1 if height < -_SAME_LOWER else 0


def _mark_is_sure(runs: Sequence[_Run]) -> bool:
    """Whether one of the runs can only be the mark of a note."""
    before = ""
    for run in runs:
        if run.level == 1 and before and _DIGITS.fullmatch(run.text.strip()):
            word = _WORD.search(before)
            if before[-1] in ".,;:!?”’\"" or (word and len(word.group()) > 3 and not _is_power(before, run, False)):
                return True
        before = (before + run.text)[-80:]
    return False


def _written(runs: Sequence[_Run], has_notes: bool) -> list[str]:
    """The text of each run."""
    written: list[str] = []
    before, is_italic = "", False
    while len(written) < len(runs):
        place = len(written)
        run = runs[place]
        if not run.level:
            apart = run.text[:1].isalnum() and written and _NOTE_MARK.fullmatch(written[-1])
            texts = [f" {run.text}" if apart else run.text]
            is_italic = run.is_italic
        elif run.level < 0:
            texts = [_lowered(before, run)]
        elif fraction := _fraction(runs[place : place + 3], before):
            texts = fraction
        else:
            if written and before[-1:] == " " and _is_kern(before, run, runs[place - 1]):
                written[-1] = written[-1].rstrip()
                before = before.rstrip()
            behind = runs[place + 1].text.lstrip()[:1] if place + 1 < len(runs) else ""
            is_power = not has_notes and behind in _OPERATORS
            texts = [_raised(before, run, is_italic, has_notes, is_power)]
        written += texts
        before = (before + "".join(texts))[-80:]
    return written


_LETTERS = re.compile(r"[^\W\d_]{2}")
_BASE = re.compile(r"(?:\d|\)|(?<![^\W\d_])[^\W\d_])\s+$")


def _is_kern(before: str, run: _Run, last: _Run) -> bool:
    """Whether the space before a raised run is only what TeX leaves after the base of an exponent: "10 −4", "f −1"."""
    is_space = last.is_small and not last.text.strip()
    if is_space and not _LETTERS.match(run.text.strip()):  # a word, or the text of an icon, stands apart
        return True
    return (is_space or _SIGNED.match(run.text.strip()) is not None) and _BASE.search(before) is not None


def _fraction(runs: Sequence[_Run], before: str) -> list[str] | None:
    """The texts of the runs of a fraction that begins with a raised number; None if there is none.

    The number below the slash is small and not raised: p^(3/2) is an exponent.
    """
    top, rest = runs[0].text.strip(), runs[1:]
    if not rest or before[-1:].isalpha() or any(run.level > 0 for run in rest):
        return None
    count = 2 if _SLASH.fullmatch(rest[0].text) and len(rest) > 1 else 1
    if not rest[count - 1].is_small:
        return None
    below = "".join(run.text for run in rest[:count])
    slash = _SLASH.match(below)
    bottom = below[slash.end() :].strip() if slash else ""
    if not (top.isdecimal() and bottom.isdecimal()):
        return None
    sign = _VULGAR.get((top, bottom)) or f"{' ' if before[-1:].isdigit() else ''}{top}/{bottom}"
    return [sign + below[len(below.rstrip()) :], *[""] * count]


_VULGAR = {tuple(unicodedata.normalize("NFKC", sign).split("⁄")): sign for sign in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}


def _lowered(before: str, run: _Run) -> str:
    text = run.text.strip()
    if not before.strip() or not text or text[0] in ",.;:" or not any(map(str.isalnum, text)):
        return run.text
    if before[-1] in " √" or run.text[0] == " ":
        # Under a root stands a number of its own; a word after a space is one of another line.
        is_index = before[-1] != "√" and len(text) < _SHORTEST_WORD
        if not is_index:
            return run.text
    gap = run.text[len(run.text.rstrip()) :]
    return lowered("".join(text.split()) if len(text) < 6 else text) + gap


def _raised(before: str, run: _Run, is_italic: bool, has_notes: bool, is_power: bool) -> str:
    """A raised run as it is written after `before`.

    is_italic: whether this ends in italic type. is_power: whether what follows makes a number before it a power.
    """
    text = run.text.strip()
    gap = run.text[len(run.text.rstrip()) :]
    if not text or (not any(map(str.isalnum, text)) and not _SIGNED.match(text)):
        return run.text  # an asterisk, a prime, a degree sign
    stem = before.rstrip()
    if _SIGNED.search(text) and stem and stem == before:
        return raised(_tight(text)) + gap
    if not stem or stem != before or stem[-1] in "(/–—-":
        # At the beginning of a line or a word: the mark of a footnote, of an affiliation, or an isotope
        return (raised(text) if text.isdecimal() else run.text.strip()) + gap
    if text.isalpha():
        return _raised_letters(stem, run, is_italic)
    if _is_power(stem, run, is_italic) or (not _DIGITS.fullmatch(text) and not _NOTE.fullmatch(text)):
        return raised(_tight(text)) + gap
    number = _NUMBER.search(stem)
    if number and (is_power or (number.group().isdecimal() and not has_notes and len(number.group()) <= 2)):
        return raised(_tight(text)) + gap
    return f" {_marks(text)}{gap}"


def _raised_letters(stem: str, run: _Run, is_italic: bool) -> str:
    text, gap = run.text.strip(), run.text[len(run.text.rstrip()) :]
    if stem[-1].isdigit():
        if _ORDINAL.fullmatch(text):
            return run.text
        if text in ("o", "O"):
            return f"°{gap}"
        is_note = len(text) == 1 and text in "abcdefgh" and not _POWER.search(stem)
        return f" ^{text}{gap}" if is_note else raised(text) + gap
    word = _WORD.search(stem)
    if len(text) > 1:
        is_variable = word is not None and len(word.group()) == 1 and not _BRAND.fullmatch(text) and is_italic
        return raised(text) + gap if is_variable else run.text
    if stem.endswith("L") and text == "A":  # LaTeX writes its name so
        return run.text
    if word is None:
        return (raised(text) if stem[-1] in ")]}|" else f" ^{text}") + gap
    is_power = len(word.group()) < 3 or is_italic or _FUNCTION.fullmatch(word.group())
    return (raised(text) if is_power else f" ^{text}") + gap


def _is_power(before: str, run: _Run, is_italic: bool) -> bool:
    """Whether a raised number can only be an exponent, by what stands before it."""
    if _POWER.search(before):
        return True
    if word := _WORD.search(before):
        stem, text = word.group(), run.text.strip()
        if len(stem) == 1 or _FUNCTION.fullmatch(stem):
            return True
        if text in ("2", "3", "4") and _LENGTH.fullmatch(stem):
            return True
        is_unit = _UNIT.fullmatch(stem) and _AFTER_QUANTITY.search(before)
        is_variable = len(stem) < 4 and (is_italic or (stem.islower() and _NO_VOWEL.fullmatch(stem)))
        return bool(text in ("2", "3", "4") and is_unit) or bool(is_variable)
    if before[-1:] == ")":
        brackets = _in_brackets(before)
        return _FORMULA.search(brackets) is not None and not _STATEMENT.search(brackets)
    return before[-1:] in "}|"


def _in_brackets(before: str) -> str:
    """What stands in the brackets that end here."""
    depth = 0
    for place in range(len(before) - 1, -1, -1):
        depth += (before[place] == ")") - (before[place] == "(")
        if not depth:
            return before[place + 1 : -1]
    return before[:-1]


def _tight(text: str) -> str:
    return "".join(text.split())


def _marks(text: str) -> str:
    """The marks of notes: raised digits with their commas and dashes."""
    return "".join(raised(sign) if sign.isdecimal() else sign for sign in _tight(text))
