"""The signs that glyphs show, where a PDF does not name them or gives them another name.

A character is drawn by the glyph of a font, and a reader sees its shape; a program gets a code, and needs the font's
map to Unicode. Many maps are missing or wrong: a minus sign is called a soft hyphen, "±" of a pi font the digit 6, a
ligature a control character. What is drawn here is named in this order: by the name of the glyph in the font; by the
known order of the font; by its shape, if that is a dash; else it is U+FFFD. Never is it a digit that it does not show,
and never nothing. What leaves no ink, such as a mark of a typesetting program, is left to cleaning.

Most pages have no such font: then MuPDF's text is taken as it is, and nothing is extracted again.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from folio.pdf import limits
from folio.pdf.mupdf import lines, pymupdf, spans_of
from folio.text import lowered, raised

UNREADABLE = "\ufffd"
# Control characters, private use, noncharacters. Left out: the bullets of Symbol and Wingdings, which cleaning decodes,
# and Adobe's pieces of tall brackets (U+F8E5 to U+F8FE), which would repeat on each line of a formula.
_NO_SIGN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ue000-\uf0a6\uf0a8-\uf0b6\uf0b8-\uf8e4\uf8ff\ufdd0-\ufdef\ufffe\uffff"
    "\U000f0000-\U0010ffff]"
)
# Characters that leave no ink. If they do, they are something else: often a hyphen or a minus sign.
_BLANKS = "\xad\u200b-\u200f\u2060-\u2064\ufeff"
_BLANK = re.compile(f"[{_BLANKS}]|(?:^|(?<=[ (]))\xa0(?=[\\d.]|$)")
_MAY_BE_BLANK = re.compile(f"[\xa0{_BLANKS}]")
_SOFT_HYPHEN = "\xad"
# A glyph leaves ink if its outline is higher than this, in points; that of a space has no height.
_MIN_INK = 0.01
# A dash is flatter than this share of its type size, this share of it wide, and between these heights above the
# baseline. A minus sign is at least half an em wide.
_DASH_HEIGHT, _DASH_WIDTH, _DASH_PLACE, _MINUS = 0.16, (0.18, 1.1), (0.1, 0.5), 0.45
# A raised or lowered digit is at most this share of its type size high, and begins higher or lower than these.
_SMALL_DIGIT, _RAISED, _LOWERED = 0.5, 0.2, -0.05
# MuPDF's flags of a span whose characters are the codes of glyphs, because no map names them
_UNNAMED = 128 | 256
# Fonts without names are read by their codes if this share of their characters is in words; at least so many are.
_IN_WORDS, _MIN_IN_WORDS = 0.8, 20
_WORDS = re.compile(r"[A-Za-z]{2,}|[ .,;]")

# TeX's text fonts (Knuth 1986, The TeXbook, p. 427; Cork encoding) have ligatures at these codes; MuPDF turns 13 to 10.
_TEX_LIGATURES = dict(zip("\x0b\x0c\r\n\x0e\x0f\x1b\x1c\x1d\x1e\x1f", "ﬀ ﬁ ﬂ ﬂ ﬃ ﬄ ﬀ ﬁ ﬂ ﬃ ﬄ".split(), strict=True))
# TeX's extension font (The TeXbook, p. 432): brackets in several sizes, their pieces, and large operators.
_TEX_EXTENSION = {
    chr(code): sign
    for code, sign in enumerate(
        "()[]⌊⌋⌈⌉{}⟨⟩|‖/\\()()[]⌊⌋⌈⌉{}⟨⟩/\\()[]⌊⌋⌈⌉{}⟨⟩/\\/\\⎛⎞⎡⎤⎣⎦⎢⎥⎧⎫⎩⎭⎨⎬⎪|"
        "⎝⎠⎜⎟⟨⟩⊔⊔∮∮⊙⊙⊕⊕⊗⊗∑∏∫⋃⋂⊎⋀⋁∑∏∫⋃⋂⊎⋀⋁∐∐ˆˆˆ˜˜˜[]⌊⌋⌈⌉{}√√√√√"
    )
}
# Many copies of it have the first 32 codes again where they are no control characters.
_TEX_EXTENSION |= {chr(161 + n if n < 10 else 163 + n): _TEX_EXTENSION[chr(n)] for n in range(32)}
# Its symbol font draws "↦" as a bar, which has no name, and an arrow.
_TEX_SYMBOLS, _MAPS_TO = {"7": "↦"}, re.compile("↦[−-]*→")
# ZapfDingbats has the order of Unicode's block U+2700, except for signs that Unicode 1.0 (1991) already had elsewhere.
_DINGBATS = {code: chr(0x26E0 + code) for code in range(0x21, 0x7F)} | {
    0x25: "☎", 0x2A: "☛", 0x2B: "☞", 0x48: "★", 0x6C: "●", 0x6E: "■", 0x73: "▲", 0x74: "▼", 0x75: "◆", 0x77: "◗",
}  # fmt: skip
# The ticks and boxes of forms in Microsoft's symbol fonts; some programs add U+F000 to their codes.
_WINGDINGS = {0x6F: "□", 0x71: "❑", 0x72: "❒", 0xA8: "□", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑"}
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "□"}
# Adobe's Symbol encoding (PDF Reference 1.7, annex D.5), as Word writes it: with U+F000 added. Plain codes have names.
_SYMBOL = {0xF020 + n: sign for n, sign in enumerate(
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼")} | {
    0xF0A1 + n: sign for n, sign in enumerate(
        "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ ⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"
    )
}  # fmt: skip
_FONTS = (
    (re.compile(r"Dingbats|(?:^|\+)D050000L", re.I), _DINGBATS),
    (re.compile(r"Wingdings(?!\W*[23])", re.I), _WINGDINGS),
    (re.compile(r"Wingdings\W*2", re.I), _WINGDINGS_2),
    (re.compile(r"Symbol", re.I), _SYMBOL),
)
_PRIVATE = 0xF000
# TeX's extension font has brackets and large signs alone: there, other characters of ASCII can only be codes.
_TEX_EXTENSION_NAME, _CODES = re.compile(r"(?:^|\+)CMEX\d", re.I), re.compile(r"[\x00-\x1f!-'*-.0-;=?-Z^-z~]+")
# A no-break space that left no ink on this many pages leaves none in its font.
_SURE_BLANK, _NO_BREAK_SPACE = 2, "\xa0"
# The same for characters without a name alone: these fonts have names for most.
_UNNAMED_FONTS = (
    (_TEX_EXTENSION_NAME, _TEX_EXTENSION),
    (re.compile(r"(?:^|\+)CMSY\d", re.I), _TEX_SYMBOLS),
)
# Linotype's Mathematical Pi and fonts in its order: the signs on the keys. Its other numbers have letters and frames.
_PI = re.compile(r"Math(?:ematical)?-?Pi|GreekwithMathPi", re.I)
_PI_ONE = re.compile(r"Pi\W?(?:One|1)?(?:\b|$)|GreekwithMathPi", re.I)
_PI_KEYS = dict(zip("1234567890,.#$;<`", "+−×÷=±∓°′″<>≤≥∼≈∞", strict=True)) | dict(
    zip("abgdezhuiklmnjoprstfxcvGDLPSF", "αβγδεζηθικλμνξοπρστφχψωΓΔΛΠΣΦ", strict=True)
)
# The names of their glyphs: "H" and Linotype's number of the sign. Greek letters follow each other.
_PI_NAMES = {
    11001: "+", 11002: "−", 11003: "×", 11004: "÷", 11005: "=", 11006: "±", 11007: "∓", 11008: "°", 11011: "∼",
    11013: "≡", 11015: "≈", 11021: "<", 11022: ">", 11032: "′", 11033: "″", 11034: "°", 11080: "·", 11349: "≤",
    11350: "≥", **{9001 + n: sign for n, sign in enumerate("ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ")},
    **{9251 + n: sign for n, sign in enumerate("αβγδεζηθικλμνξοπρσςτυφχψω")},
}  # fmt: skip
_PI_NAME = re.compile(r"H(\d{4,5})")
_DIFFERENCES = re.compile(r"/Differences\s*\[(.*?)\]", re.S)
_CODE_OR_NAME = re.compile(r"(\d+)|/([^\s/\[\]<>()]+)")
_MAP_ENTRY = re.compile(rb"<([0-9A-Fa-f]{2,4})>\s*<00([0-9A-Fa-f]{2})>")
_RAISED_NAME = re.compile(r"(.+)[._](?:superior|sups?|numr|inferior|subs|sinf|dnom)")
_LOWERED_NAME = re.compile(r".+[._](?:inferior|subs|sinf|dnom)")
# The most fonts of a file, and the most bytes of a map, that are looked at
_ENCODING = re.compile(r"-Identity-[HV]$")
_MOST_FONTS, _LONGEST_MAP = 2000, 300_000
_LIGATURES = frozenset("ﬀﬁﬂﬃﬄﬅﬆ")

# x and y of a character's origin, in points, and the character
_Place = tuple[float, float, str]


class _Ink(NamedTuple):
    """What a glyph draws, in shares of its type size: how wide, and from where to where above the baseline."""

    width: float
    bottom: float
    top: float


@dataclass(slots=True)
class _Fonts:
    """What is known of the fonts of a document, by their names without the prefix of a subset."""

    seen: set[str] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)  # the objects looked at
    # font -> MuPDF's character -> the sign that the glyph shows
    signs: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    doubles: set[str] = field(default_factory=set)  # fonts with several glyphs for one digit
    # font -> the pages on which its doubtful no-break spaces left no ink; far below 0 if one left some
    blanks: Counter[str] = field(default_factory=Counter)

    def signs_of(self, font: str) -> Mapping[str, str]:
        """Character -> the sign that this font shows for it, where the two differ."""
        known = _signs_of(font)
        return {**known, **own} if (own := self.signs.get(font)) else known

    def look(self, page: Any, names: Iterable[str]) -> None:
        """Look at the fonts of a page, if any of these names is new."""
        if self.seen.issuperset(names):
            return
        self.seen.update(names)
        for number, _, kind, name, *_ in page.get_fonts():
            if number not in self.numbers and len(self.numbers) < _MOST_FONTS:
                self.numbers.add(number)
                try:
                    self._look_at(page.parent, number, kind, _ENCODING.sub("", name.partition("+")[2] or name))
                except MemoryError:
                    raise
                except Exception:  # a damaged font, or one that is no object of its own: MuPDF reads it as it can
                    continue

    def _look_at(self, document: Any, number: int, kind: str, name: str) -> None:
        if kind == "Type0":
            if _has_doubles(_unicode_map(document, number)):
                self.doubles.add(name)
            return
        names, is_pi = _glyph_names(document, number), _PI.search(name) is not None
        odd = {code: sign for code, glyph in names.items() if (sign := _odd_sign(glyph))}
        if not odd and not is_pi:
            return
        shown = {code: chr(character) for code, character in _unicode_map(document, number)}
        signs: dict[str, str] = {}
        for code, sign in odd.items():
            character = shown.get(code, "")
            named = pymupdf().mupdf.fz_unicode_from_glyph_name_strict(names[code])
            character = character or (chr(named) if named else chr(code))
            if character != sign and not (sign in _LIGATURES and character.isalpha()):
                signs[character] = sign
        if is_pi and not odd:
            keys = _PI_KEYS if _PI_ONE.search(name) else {}
            if shown:  # a map may be right, but not where it says that there are digits
                keys = {key: sign for key, sign in keys.items() if key.isdecimal()}
            signs = {**dict.fromkeys("0123456789", UNREADABLE), **keys}
        self.signs[name].update(signs)


def _glyph_names(document: Any, number: int) -> dict[int, str]:
    """Code -> the name of its glyph, of those that a simple font gives itself."""
    kind, value = document.xref_get_key(number, "Encoding")
    if kind == "xref":
        value = document.xref_object(int(value.split()[0]))
    found = _DIFFERENCES.search(value)
    names: dict[int, str] = {}
    code = 0
    for match in _CODE_OR_NAME.finditer(found.group(1) if found else ""):
        if match[1]:
            code = int(match[1])
        elif code < 256:
            names[code] = match[2]
            code += 1
    return names


def _unicode_map(document: Any, number: int) -> list[tuple[int, int]]:
    """The codes that a font's map to Unicode names one by one, with what they are."""
    kind, value = document.xref_get_key(number, "ToUnicode")
    if kind != "xref":
        return []
    stream = document.xref_stream(int(value.split()[0])) or b""
    return [(int(code, 16), int(shown, 16)) for code, shown in _MAP_ENTRY.findall(stream[:_LONGEST_MAP])]


def _has_doubles(named: Iterable[tuple[int, int]]) -> bool:
    """Whether several glyphs are the same digit: some of them may be raised or lowered."""
    digits = [shown for _, shown in named if chr(shown).isdecimal()]
    return len(digits) > len(set(digits))


def _odd_sign(glyph: str) -> str:
    """The sign that a glyph of this name shows, where MuPDF may take it for another; else ""."""
    if match := _PI_NAME.fullmatch(glyph):
        return _PI_NAMES.get(int(match[1]), UNREADABLE)
    value = pymupdf().mupdf.fz_unicode_from_glyph_name(glyph)
    sign = "" if value in (0, 0xFFFD) else chr(value)
    if match := _RAISED_NAME.fullmatch(glyph):
        sign = sign if len(sign) == 1 else ""
        return (lowered(sign) if _LOWERED_NAME.fullmatch(glyph) else raised(sign)) if sign.isdecimal() else ""
    return sign if sign and sign in _LIGATURES else ""


def _fonts_of(page: Any) -> _Fonts:
    document = page.parent
    fonts = getattr(document, "folio_fonts", None)
    if fonts is None:
        fonts = document.folio_fonts = _Fonts()
    return fonts


def texts(page: Any, spans: Sequence[Mapping[str, Any]]) -> list[str]:
    """The text of each span of a page, with its glyphs decoded or marked. spans: all spans of MuPDF, in its order."""
    fonts = _fonts_of(page)
    names = {span["font"] for span in spans}
    fonts.look(page, names)
    shown = [span["text"] for span in spans]
    doubtful = _doubtful(spans, "".join(shown), fonts)
    if not all(_CODES.fullmatch(spans[n]["text"]) and _TEX_EXTENSION_NAME.search(spans[n]["font"]) for n in doubtful):
        shown = ["".join([letter["c"] for letter in span["chars"]]) for span in spans_of(raw_blocks(page))]
        doubtful, names = [], set()  # raw_blocks has decoded all
    for n in doubtful:
        shown[n] = "".join([_TEX_EXTENSION.get(code, code) for code in shown[n]])
    if signs := {name: found for name in names if (found := fonts.signs_of(name))}:
        shown = [
            "".join([_named(text, place, signs[font]) or text[place] for place in range(len(text))])
            if (font := span["font"]) in signs
            else text
            for text, span in zip(shown, spans, strict=True)
        ]
    return [_MAPS_TO.sub("↦", text) for text in shown] if any("↦" in text for text in shown) else shown


def _doubtful(spans: Sequence[Mapping[str, Any]], text: str, fonts: _Fonts) -> list[int]:
    """The numbers of the spans in which a character is what it draws, and not what it is called. text: of them all."""
    has_odd = _NO_SIGN.search(text) is not None or _MAY_BE_BLANK.search(text) is not None
    return [
        number
        for number, span in enumerate(spans)
        if span["char_flags"] & _UNNAMED
        or (has_odd and (_NO_SIGN.search(span["text"]) or _may_have_ink(span, fonts)))
        or (fonts.doubles and span["font"] in fonts.doubles and any(map(str.isdecimal, span["text"])))
    ]


def _may_have_ink(span: Mapping[str, Any], fonts: _Fonts) -> bool:
    """Whether a character of a span that should leave no ink may leave some."""
    blanks = {match.group() for match in _BLANK.finditer(span["text"])}
    return bool(blanks) and not (blanks == {_NO_BREAK_SPACE} and fonts.blanks[span["font"]] >= _SURE_BLANK)


def raw_blocks(page: Any) -> list[dict[str, Any]]:
    """MuPDF's blocks of a page with a box for each character, their glyphs decoded or marked. They stay as they are."""
    blocks: list[dict[str, Any]] | None = getattr(page, "folio_blocks", None)  # several steps ask for them
    if blocks is None:
        blocks = page.folio_blocks = _raw_blocks(page)
    return blocks


def _raw_blocks(page: Any) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = _extract(page, 0)
    fonts = _fonts_of(page)
    fonts.look(page, {span["font"] for span in spans_of(blocks)})
    ink, unnamed = cache(lambda: _ink(page, fonts)), cache(lambda: _unnamed(page, blocks))
    has_hyphens = cache(lambda: _has_soft_hyphens(blocks, ink()))
    blanks: dict[str, bool] = {}  # font -> whether no no-break space of it leaves ink
    for span in spans_of(blocks):
        font, letters = span["font"], span["chars"]
        signs = fonts.signs_of(font)
        is_unnamed, is_double = bool(span["char_flags"] & _UNNAMED), font in fonts.doubles
        is_named = not (signs or is_unnamed or is_double)
        shown = [letter["c"] for letter in letters]
        for place, letter in enumerate(letters):
            character = letter["c"]
            if is_named and " " <= character <= "~":  # nearly every letter
                continue
            sign = _named(shown, place, signs)
            if sign is None and is_unnamed and (drawn := ink().get(_place(letter))) and _place(letter) in unnamed():
                sign = _known(_UNNAMED_FONTS, font).get(character) or _dash(drawn)
            if sign is None and character == _SOFT_HYPHEN:
                sign = "-" if has_hyphens() else None
            elif sign is None and (_NO_SIGN.match(character) or _is_blank(shown, place)):
                drawn = ink().get(_place(letter))
                sign = _dash(drawn) if drawn else None
                if character == _NO_BREAK_SPACE:
                    blanks[font] = blanks.get(font, True) and drawn is None
            elif sign is None and is_double and character.isdecimal():
                sign = _by_height(character, ink().get(_place(letter)))
            letter["c"] = sign or character
    for font, is_blank in blanks.items():
        fonts.blanks[font] += 1 if is_blank else -limits.PAGES
    return blocks


def _named(shown: Sequence[str], place: int, signs: Mapping[str, str]) -> str | None:
    """The sign of a character by its font alone; None if that is the character itself, or only its ink shows it."""
    sign = signs.get(shown[place]) or _TEX_LIGATURES.get(shown[place])
    is_in_word = any(shown[n].isalpha() for n in (place - 1, place + 1) if 0 <= n < len(shown))
    return None if sign and sign in _LIGATURES and not is_in_word else sign


def _is_blank(shown: Sequence[str], place: int) -> bool:
    """Whether a character leaves no ink, if it is what its code says. Of no-break spaces, those before digits."""
    around = "".join(shown[max(0, place - 1) : place + 2])
    match = _BLANK.search(around, min(1, place))
    return match is not None and match.start() == min(1, place)


def _unnamed(page: Any, blocks: Sequence[Mapping[str, Any]]) -> frozenset[_Place]:
    """The places of the characters that no map names, without those of fonts whose codes are letters in words."""
    drawn = [letter for trace in page.get_texttrace() for letter in trace["chars"]]
    nameless = {(round(x, 2), round(y, 2)) for code, _, (x, y), _ in drawn if code == 0xFFFD}
    # Of the named characters, those in the same lines
    rows = {int(y + shift) for _, y in nameless for shift in (-0.1, 0.1)}
    named = {
        (round(x, 2), round(y, 2), chr(code)) for code, _, (x, y), _ in drawn if int(y) in rows and code != 0xFFFD
    }
    by_font: dict[str, list[_Place]] = defaultdict(list)
    for span in spans_of(blocks):
        for letter in span["chars"]:
            place = _place(letter)
            if place[:2] in nameless and place not in named and letter["c"] != " ":
                by_font[span["font"]].append(place)
    found = set[_Place]()
    for places in by_font.values():
        are_letters = _is_in_letters(places)
        found.update(place for place in places if not (are_letters and place[2].isprintable()))
    return frozenset(found)


def _is_in_letters(places: Sequence[_Place]) -> bool:
    """Whether the codes of a font without names read as words."""
    text = "".join(place[2] for place in places)
    return len(text) >= _MIN_IN_WORDS and sum(map(len, _WORDS.findall(text))) >= _IN_WORDS * len(text)


def _has_soft_hyphens(blocks: Sequence[Mapping[str, Any]], ink: Mapping[_Place, _Ink]) -> bool:
    """Whether the page's hyphens are called soft hyphens: some are drawn within a line."""
    for line in lines(blocks):
        letters = [letter for span in line["spans"] for letter in span["chars"]]
        last = max((n for n, letter in enumerate(letters) if letter["c"].strip()), default=0)
        for letter in letters[:last]:
            if letter["c"] == _SOFT_HYPHEN and _place(letter) in ink:
                return True
    return False


def _dash(ink: _Ink) -> str:
    """The sign of a glyph that is drawn and has no name: a hyphen or a minus sign by its shape, else UNREADABLE."""
    (least, most), (low, high) = _DASH_WIDTH, _DASH_PLACE
    is_flat = ink.top - ink.bottom < _DASH_HEIGHT and least <= ink.width <= most
    if not is_flat or not low <= (ink.bottom + ink.top) / 2 <= high:
        return UNREADABLE
    return "−" if ink.width >= _MINUS else "-"


def _by_height(digit: str, ink: _Ink | None) -> str:
    """A digit of a font that draws it in several ways, written as raised or lowered if it is drawn so."""
    if ink is None or ink.top - ink.bottom > _SMALL_DIGIT:
        return digit
    return raised(digit) if ink.bottom > _RAISED else lowered(digit) if ink.bottom < _LOWERED else digit


def _known(fonts: Sequence[tuple[re.Pattern[str], Mapping[Any, str]]], font: str) -> Mapping[Any, str]:
    """The signs of the first of these fonts that has this name; none if it is not among them."""
    return next((signs for name, signs in fonts if name.search(font)), {})


@cache
def _signs_of(font: str) -> Mapping[str, str]:
    """_Fonts.signs_of for the fonts whose order is known by their names."""
    signs = _known(_FONTS, font)
    if signs is _SYMBOL:
        return {chr(code): sign for code, sign in signs.items()}
    return {chr(start + code): sign for code, sign in signs.items() for start in (0, _PRIVATE)}


def _ink(page: Any, fonts: _Fonts) -> dict[_Place, _Ink]:
    """What doubtful characters draw, by their places; those that leave no ink are left out."""
    inked: dict[_Place, _Ink] = {}
    for line in lines(_extract(page, pymupdf().TEXT_ACCURATE_BBOXES)):
        across, up = line["dir"]
        is_level = abs(across) > abs(up)
        for span in line["spans"]:
            size, is_double = span["size"] or 1.0, span["font"] in fonts.doubles
            is_unnamed = bool(span["char_flags"] & _UNNAMED)
            for letter in span["chars"]:
                character = letter["c"]
                if not (is_unnamed or is_double) and " " <= character <= "~":
                    continue
                is_blank = _NO_SIGN.match(character) or _BLANK.match(character) or character == "\xa0"
                if not (is_blank or is_unnamed or (is_double and character.isdecimal())):
                    continue
                x0, y0, x1, y1 = letter["bbox"]
                x, y = letter["origin"]
                if not is_level:
                    x0, x1, y0, y1, y = -y1, -y0, x0, x1, x
                    if up > 0:  # down the page
                        y0, y1, y = -y1, -y0, -y
                if y1 - y0 > _MIN_INK:
                    inked[_place(letter)] = _Ink((x1 - x0) / size, (y - y1) / size, (y - y0) / size)
    return inked


def _place(letter: Mapping[str, Any]) -> _Place:
    x, y = letter["origin"]
    return round(x, 2), round(y, 2), letter["c"]


def _extract(page: Any, extra_flags: int) -> list[dict[str, Any]]:
    flags = pymupdf().TEXTFLAGS_TEXT | extra_flags
    blocks: list[dict[str, Any]] = page.get_textpage(flags=flags).extractRAWDICT()["blocks"]
    return blocks
