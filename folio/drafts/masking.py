"""Hides the works that a paper cites, without moving an offset: their names and years say nothing of its own. Pure."""

from __future__ import annotations

import re

HIDDEN = "\u2063"  # INVISIBLE SEPARATOR: no letter, no digit, no space
_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"
_CITED = re.compile(
    rf"""
    \[ \s? \d{{1,3}} (?: \s?[,;–-]\s? \d{{1,3}} )* \s? \]                                   # [12, 14]
    | \( (?: \s?[,;]?\s? {_YEAR} )+ (?: , \s? pp?\. \s? [\d–-]+ )? \)                        # Barendregt (1984)
    | \( (?: (?:see|e\.g\.|cf\.|for \s instance)[ ,]+ (?:also \s)? )?
      [^\W\d_a-z] [^()]{{0,300}}? ,? \s {_YEAR} (?: [;,] [^()]{{0,300}} )? \)                # (Wickham et al., 2019)
    """,
    re.X,
)
_NUMBER_OF_A_TEXT = re.compile(r"\((?:in|since|from|until|before|after|by|between|during|about|around)\b", re.I)


def masked(text: str) -> str:
    """The text with each cited work as a run of HIDDEN of its length."""
    return _CITED.sub(
        lambda cited: cited[0] if _NUMBER_OF_A_TEXT.match(cited[0]) else HIDDEN * len(cited[0]), text
    )
