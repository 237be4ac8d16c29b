"""Glyphs whose code is no readable character: decoded by the encoding of their font, or marked as unreadable.

A font without a map to Unicode yields a control or private-use character for a glyph that a reader sees: the tick in a
box, a bracket, a letter of a formula. Cleaning drops such characters, and a ticked "☐" would become an empty box. So a
character that leaves ink and cannot be decoded becomes U+FFFD, the replacement character. One that leaves no ink, such
as a mark of a typesetting program, is left to cleaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from folio.pdf.mupdf import pymupdf

UNREADABLE = "\ufffd"
# Control characters, private use, noncharacters. Left out: the bullets of Symbol and Wingdings, which cleaning decodes,
# and Adobe's pieces of tall brackets (U+F8E5 to U+F8FE), which would repeat on each line of a formula.
_NO_SIGN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ue000-\uf0a6\uf0a8-\uf0b6\uf0b8-\uf8e4\uf8ff\ufdd0-\ufdef\ufffe\uffff"
    "\U000f0000-\U0010ffff]"
)
# A glyph leaves ink if its outline is higher than this, in points; that of a space has no height.
_MIN_INK = 0.01
# TeX's extension font (Knuth 1986, The TeXbook, p. 432): its first 32 codes are brackets in several sizes.
_TEX_EXTENSION = dict(enumerate("()[]⌊⌋⌈⌉{}⟨⟩|‖/\\()()[]⌊⌋⌈⌉{}⟨⟩/\\"))
# ZapfDingbats has the order of Unicode's block U+2700, except for signs that Unicode 1.0 (1991) already had elsewhere.
_DINGBATS = {code: chr(0x26E0 + code) for code in range(0x21, 0x7F)} | {
    0x25: "☎", 0x2A: "☛", 0x2B: "☞", 0x48: "★", 0x6C: "●", 0x6E: "■", 0x73: "▲", 0x74: "▼", 0x75: "◆", 0x77: "◗",
}  # fmt: skip
# The ticks and boxes of forms in Microsoft's symbol fonts; some programs add U+F000 to their codes.
_WINGDINGS = {0x6F: "□", 0x71: "❑", 0x72: "❒", 0xA8: "□", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑"}
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "□"}
_FONTS = (
    (re.compile(r"(?:^|\+)CMEX\d", re.I), _TEX_EXTENSION),
    (re.compile(r"Dingbats|(?:^|\+)D050000L", re.I), _DINGBATS),
    (re.compile(r"Wingdings(?!\W*[23])", re.I), _WINGDINGS),
    (re.compile(r"Wingdings\W*2", re.I), _WINGDINGS_2),
)
_PRIVATE = 0xF000

# x and y of a character's origin, in points, and the character
_Place = tuple[float, float, str]


def texts(page: Any, spans: Sequence[Mapping[str, Any]]) -> list[str]:
    """The text of each span of a page, with its glyphs decoded or marked. spans: all spans of MuPDF, in its order."""
    plain = [span["text"] for span in spans]
    if not any(_NO_SIGN.search(text) or _signs_of(span["font"]) for span, text in zip(spans, plain, strict=True)):
        return plain
    return ["".join(letter["c"] for letter in span["chars"]) for span in _spans(raw_blocks(page))]


def raw_blocks(page: Any) -> list[dict[str, Any]]:
    """MuPDF's blocks of a page with a box for each character, their glyphs decoded or marked."""
    blocks: list[dict[str, Any]] = _extract(page, 0)
    inked = cache(lambda: _inked(page))
    for span in _spans(blocks):
        signs = _signs_of(span["font"])
        for letter in span["chars"]:
            sign = signs.get(letter["c"])
            if sign is None and _NO_SIGN.match(letter["c"]) and _place(letter) in inked():
                sign = UNREADABLE
            letter["c"] = sign or letter["c"]
    return blocks


@cache
def _signs_of(font: str) -> Mapping[str, str]:
    """Character -> the sign that this font shows for it, where the two differ."""
    signs = next((signs for name, signs in _FONTS if name.search(font)), {})
    return {chr(start + code): sign for code, sign in signs.items() for start in (0, _PRIVATE)}


def _inked(page: Any) -> frozenset[_Place]:
    """The places of the unreadable characters that leave ink."""
    places = set()
    for block in _extract(page, pymupdf().TEXT_ACCURATE_BBOXES):
        for line in block.get("lines", ()):
            is_level = abs(line["dir"][0]) > abs(line["dir"][1])
            for letter in (letter for span in line["spans"] for letter in span["chars"]):
                x0, y0, x1, y1 = letter["bbox"]
                if _NO_SIGN.match(letter["c"]) and (y1 - y0 if is_level else x1 - x0) > _MIN_INK:
                    places.add(_place(letter))
    return frozenset(places)


def _place(letter: Mapping[str, Any]) -> _Place:
    x, y = letter["origin"]
    return round(x, 2), round(y, 2), letter["c"]


def _extract(page: Any, extra_flags: int) -> list[dict[str, Any]]:
    flags = pymupdf().TEXTFLAGS_TEXT | extra_flags
    blocks: list[dict[str, Any]] = page.get_textpage(flags=flags).extractRAWDICT()["blocks"]
    return blocks


def _spans(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        for line in block.get("lines", ()):
            yield from line["spans"]
