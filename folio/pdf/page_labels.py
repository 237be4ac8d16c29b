"""The labels that a PDF gives its pages: "iv", "12", "A-3"."""

from __future__ import annotations

from typing import Any

from folio.pdf import limits
from folio.text import one_line


def page_labels(document: Any, count: int) -> list[str]:
    """The printed label of each page, "" if the file has none or it is too long to be one."""
    try:
        rules = sorted(document.get_page_labels(), key=lambda rule: rule["startpage"])
    except Exception:  # broken labels, or too many to fit in memory, are ignored
        return [""] * count
    labels = [""] * count
    for number, rule in enumerate(rules):
        end = rules[number + 1]["startpage"] if number + 1 < len(rules) else count
        prefix = rule.get("prefix", "")
        if len(prefix) > limits.LABEL:
            continue
        for index in range(max(0, rule["startpage"]), min(end, count)):
            value = rule.get("firstpagenum", 1) + index - rule["startpage"]
            label = _printable(prefix + _numeral(value, rule.get("style", "")))
            labels[index] = label if len(label) <= limits.LABEL else ""
    return labels


def _numeral(value: int, style: str) -> str:
    """A page number in a PDF page label style (ISO 32000-1, 12.4.2): D, R, r, A, a, or "" for no number."""
    if style == "D":
        return str(value)
    if not style or not 0 < value < 4000:
        return ""
    if style in "Aa":
        # z is followed by aa, then bb
        text = chr(ord("A") + (value - 1) % 26) * ((value - 1) // 26 + 1)
    else:
        text = ""
        for size, sign in zip(
            (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
            ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
            strict=True,
        ):
            text += sign * (value // size)
            value %= size
    return text.lower() if style in "ra" else text


def _printable(text: str) -> str:
    return one_line("".join(c if c.isprintable() else " " for c in text))
