"""Whether the text of a page is language, or garbled by a broken font encoding. Pure: text in, verdict out.

A PDF whose fonts lack a map to Unicode, or have a wrong one, shows its words but yields other characters: private use,
control characters, letters of many scripts in one word, or other letters of the same script ("7KLV LV D WHVW"). The
first kinds are counted. The last is recognised in Latin script by the pairs of neighbouring letters, and in other
scripts by the share of their commonest letters. Tables, formulas, code, and lists of names or numbers hold too few
letters in words for a verdict, or pass, because their words are made of the same letters as prose.

It also joins words that a PDF's glyph positions split: "can b e view ed as a w a y". A font with wrong widths leaves a
gap wherever the typesetter kerned two letters, and the gap is read as a space. Two conditions must hold for a join: the
gap is narrower than the spaces of its line, and the pieces are not words of the paper. Code and formulas are not
changed, because their letters are spaced on purpose.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import cache
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# Fewer letters, or pairs of neighbouring letters, than this give no verdict.
_MIN_LETTERS, _MIN_PAIRS = 60, 100
# The share of characters without a meaning (private use, control, unassigned). Readable pages have up to a quarter, in
# figures whose arrows are glyphs of a drawing font; pages that cannot be read have more than two fifths.
_MAX_WITHOUT_MEANING = 0.4
# The share of Latin letters outside a to z: a third in Vietnamese, the most of all languages
_MAX_ACCENTED = 0.6
# The share of letters in words that mix scripts; near 0 in readable text, where only names of variables mix them.
_MAX_MIXED = 0.3
# The mean log likelihood ratio, in bits, of the pairs of neighbouring letters against random letters. Each of 27
# languages in Latin letters scores 0.9 or more, code 0.6; with a shifted alphabet, 99.5 % of pages are below -0.87.
_MIN_BITS = -0.3
# Only words of this many letters are judged: shorter ones are often names of variables, longer ones sequences.
_WORD = re.compile(r"[a-z]{4,25}")
# A word counts at most this many times, because a table or a list may repeat an odd name.
_MAX_REPEATED = 3
# Single letters, which are joined into words where a page has too few words: some old fonts have no widths.
_SPACED = re.compile(r"(?<![^\W\d_])([^\W\d_]) +(?=[^\W\d_](?![^\W\d_]))")
# Signs make up at most 15 % of code, and 20 % or more of a page whose letters became signs; drawings use fewer kinds.
_SIGNS, _MAX_SIGNS, _MIN_SIGNED, _MIN_SIGNS, _MIN_USE = frozenset('!"#$%&*+;<=>?@\\^_`{|}~[]/'), 0.2, 300, 7, 0.01
_LONG_WORD = re.compile(r"[a-z]{4,}")
# A sequence of amino acids has blocks of ten letters; those of nucleotides have four letters in all.
_SEQUENCE = re.compile(r"\b(?:[A-Z]{10}|[ACGTUN]{4,})\b")
_MIN_DISTINCT = 12
# The share of Chinese characters and Korean syllables in the common part of a national character set: 0.99 in texts
_MIN_COMMON_CJK = 0.7
# Log2 of (share of the pair / share in random letters), doubled, with 13 added, as a letter: a is 0. Row "a" has aa,
# ab, ac and so on. Means over the word frequencies of 27 languages in wordfreq 3.1.1, accents removed.
_PAIRS = (
    "ooqqhmpoqnrtrvmphtstpplfoo qjedqaaapfcnbgoaanhfoaaala qaiapaarqgljdjqaakilnaaagk sfeiubedrgfjglqfankjoieakl "
    "nnpqnlpmpnpsruknfutsnnikkn naabnicaneajafoaamfkkaaaha qeahqakjoiilejodanjkodaamb raffqaaapghjgipaakdlnkeaha "
    "qlqoskpmloqrpupmgqsrmnfhjn qcbhrbaamageeiobabjeneaaaa sdggqackphmmgiqaammnpidakc thgmshjhslkqkkqgcdmnojbald "
    "smdfsdkdqdeimiqnagjioaaakc tfnrsjtnslmjgorddgproicaoi loopklpkomoqqsmnbsrpopleim raecqdckocdmdgqkaqjjnbaafa "
    "aaaaaaaaaaaaaaaaaaaapaaaaa tklntilisimlmnrieloppkfall sfnfsfejsipnlkqndhotplfakm tgfctefpshjjhkrfaqmpqkhamg "
    "olnnpimjnknpornmaqppjkggjm radfrabaqcdiajpcajjdkcaakf naccmaahmaaaagkaadgaeaaaha hacagaaahaaaaaegaaagfaaaaa "
    "phkhmehfifijkjmgaklkiheaeg phfjpafdodghhllfaggikhfakg"
).split()
_BITS = (np.array([[ord(letter) - 97 for letter in row] for row in _PAIRS]) - 13) / 2
# The commonest letters of a script, and the least share of them in texts of 60 words in its languages, less a margin
_COMMON = {
    "ARABIC": ("اریلمنوتدبکهسيعہےفشقةأكى", 0.6),
    "BENGALI": ("াের্িনকযবতমসল", 0.4),
    "CYRILLIC": ("аоиентсрв", 0.45),
    "DEVANAGARI": ("ाकेरहीनस्ंमितोलपयदजैव", 0.5),
    "GREEK": ("αοιετσνηυρπκμς", 0.72),
    "HEBREW": ("יוהלאתרבמשנע", 0.55),
    "TAMIL": ("்குதிமபரடாலனவை", 0.4),
}
# A national character set, and the first bytes of its common characters
_CHARACTER_SETS = {
    "CJK": (("gb2312", 0xB0, 0xD7), ("big5", 0xA4, 0xC6), ("shift_jis", 0x88, 0x98)),
    "HANGUL": (("euc_kr", 0xB0, 0xC8),),
}
# Scripts without spaces between words, and scripts that are written side by side within words
_WITHOUT_SPACES = frozenset("CJK THAI LAO KHMER MYANMAR TIBETAN JAVANESE BALINESE".split())
_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK", "HANGUL": "CJK", "GREEK": "LATIN"}


class Verdict(Enum):
    LEGIBLE = "legible"
    ILLEGIBLE = "illegible"
    UNKNOWN = "unknown"  # too little text


def judge(text: str) -> Verdict:
    """Whether the text of a page can be read, as far as its letters show."""
    text = unicodedata.normalize("NFKC", text)
    counts = Counter(text)
    scripts: Counter[str] = Counter()
    for character, count in counts.items():
        if character not in " \n\t":
            scripts[_script(character)] += count
    meaningless = scripts.pop(_NONE, 0)
    total = meaningless + sum(scripts.values())
    if total < _MIN_LETTERS:
        return Verdict.UNKNOWN
    if meaningless > _MAX_WITHOUT_MEANING * total:
        return Verdict.ILLEGIBLE
    del scripts[_OTHER]
    letters = scripts.total()
    if letters < _MIN_LETTERS:
        return _judge_signs(counts, total)
    if len(scripts) > 1 and _in_mixed_words(text) > _MAX_MIXED * letters:
        return Verdict.ILLEGIBLE
    verdicts: Counter[Verdict] = Counter()
    for script, count in scripts.items():
        verdicts[_judge_script(script, text, counts, count)] += count
    if 2 * verdicts[Verdict.ILLEGIBLE] > letters:
        return Verdict.ILLEGIBLE
    return Verdict.LEGIBLE if 2 * verdicts[Verdict.LEGIBLE] > letters else _judge_signs(counts, total)


def _judge_signs(counts: Counter[str], total: int) -> Verdict:
    """The verdict on a page without words: illegible if its letters became signs that text hardly uses."""
    signs = [count for sign, count in counts.items() if sign in _SIGNS and count >= _MIN_USE * total]
    is_broken = total >= _MIN_SIGNED and len(signs) >= _MIN_SIGNS and sum(signs) > _MAX_SIGNS * total
    return Verdict.ILLEGIBLE if is_broken else Verdict.UNKNOWN


_NONE, _OTHER = "none", "other"


@cache
def _script(character: str) -> str:
    """The script of a letter by its Unicode name; "other" for any other sign, "none" for one without a meaning."""
    category = unicodedata.category(character)
    if (category[0] == "C" and category != "Cf") or character == "\ufffd":
        return _NONE
    if category[0] != "L" and category not in ("Mc", "Mn"):
        return _OTHER
    script = unicodedata.name(character, _OTHER).split(" ", 1)[0]
    # Combining marks of no script, modifier letters, letterlike signs
    return _OTHER if script in ("COMBINING", "MODIFIER", "SCRIPT", "OHM", "FEMININE", "MASCULINE", "MICRO") else script


def _judge_script(script: str, text: str, counts: Counter[str], letters: int) -> Verdict:
    """The verdict on the letters of one script."""
    if letters < _MIN_LETTERS:
        return Verdict.UNKNOWN
    if script == "LATIN":
        return _judge_latin(text, counts, letters)
    if script in _CHARACTER_SETS:
        common = sum(n for sign, n in counts.items() if _script(sign) == script and _is_common(sign, script))
        return Verdict.LEGIBLE if common >= _MIN_COMMON_CJK * letters else Verdict.ILLEGIBLE
    if script in _COMMON:
        folded = unicodedata.normalize("NFD", text.casefold()) if script in ("GREEK", "CYRILLIC") else text
        letter_counts = Counter(sign for sign in folded if _script(sign) == script)
        common_letters, least = _COMMON[script]
        common = sum(letter_counts[sign] for sign in common_letters)
        return Verdict.LEGIBLE if common >= least * letter_counts.total() else Verdict.ILLEGIBLE
    return Verdict.LEGIBLE


def _judge_latin(text: str, counts: Counter[str], letters: int) -> Verdict:
    plain = sum(count for sign, count in counts.items() if sign.isascii() and sign.isalpha())
    if letters - plain > _MAX_ACCENTED * letters:
        return Verdict.ILLEGIBLE
    text = _SEQUENCE.sub(" ", text)
    pairs = _pairs(_WORD.findall(_fold(text)))
    if pairs.sum() < _MIN_PAIRS:
        pairs = _pairs(_LONG_WORD.findall(_fold(_SPACED.sub(r"\1", text))))
    count = int(pairs.sum())
    if count < _MIN_PAIRS or (pairs.any(axis=0) | pairs.any(axis=1)).sum() < _MIN_DISTINCT:
        return Verdict.UNKNOWN
    bits = float((pairs * _BITS).sum()) / count
    return Verdict.LEGIBLE if bits >= _MIN_BITS else Verdict.ILLEGIBLE


def _pairs(words: Sequence[str]) -> npt.NDArray[np.int64]:
    """How often one letter, a to z, follows another in words: 26 x 26. A word counts at most _MAX_REPEATED times."""
    repeated = " ".join([" ".join([word] * min(count, _MAX_REPEATED)) for word, count in Counter(words).items()])
    letters = np.frombuffer(repeated.encode("ascii"), np.uint8).astype(np.int64) - 97
    first, second = letters[:-1], letters[1:]
    # Specimens of a font show the alphabet.
    is_pair = (first >= 0) & (second >= 0) & (second - first != 1)
    return np.bincount(26 * first[is_pair] + second[is_pair], minlength=26 * 26).reshape(26, 26)


def _fold(text: str) -> str:
    """Lower case without accents. Not text.without_marks, which makes two letters of a ligature."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFD", text.casefold())
    return text.translate({ord(sign): None for sign in set(text) if unicodedata.combining(sign)})


@cache
def _is_common(sign: str, script: str) -> bool:
    for encoding, first, last in _CHARACTER_SETS[script]:
        try:
            code = sign.encode(encoding)
        except UnicodeEncodeError:
            continue
        if len(code) == 2 and first <= code[0] <= last:
            return True
    return False


def _in_mixed_words(text: str) -> int:
    """How many letters are in words that mix scripts, other than scripts that are written together.

    A word may begin or end in another script: "GPU를", "בPython". Where words have no spaces between them, a line is a
    string of words; these have a few letters each.
    """
    mixed = 0
    for word in text.split():
        if word.isascii():
            continue
        scripts = [_script(sign) for sign in word]
        letters = [_TOGETHER.get(script, script) for script in scripts if script not in (_NONE, _OTHER)]
        changes = sum(before != after for before, after in pairwise(letters))
        most = len(letters) / 2 if _WITHOUT_SPACES.intersection(letters) else max(1, len(letters) / 4)
        if changes > most:
            mixed += len(letters)
    return mixed


# A single letter between letters, other than those that are words in some language. A page may have split words if it
# has at least _MIN_SINGLES of them and they are this share of its words; prose hardly ever has as many variables.
_SINGLE = re.compile(r"(?<=[a-z] )[b-df-hj-np-tv-xz](?= [a-z])")
_ANY_WORD = re.compile(r"[^\W\d_]+")
_MIN_SHARE, _MIN_SINGLES = 0.015, 8
# A gap inside a word is at most this share of the spaces between words, in the line and on the page.
_NARROW = 0.8
# Spaces between words of this many letters show the width of spaces; a line with fewer of them uses those of the page.
_SURE_WORD, _MIN_SPACES = 3, 3
# Letters are compared with the same font and about the same size.
_SAME_SIZE = 0.5
# Characters of code and formulas: lines with any of them stay as they are.
_CODE = re.compile(r"[{}<>=|\\^_~#*+∈∑∫≤≥→∀∃]|//| [();] | [;:]?$|[”\"] ?;")
# The least characters of a line of prose, and the least share of such lines that a font with wrong widths splits
_PROSE_LINE, _MIN_SPLIT_LINES = 30, 0.3
_MONOSPACED = 8  # MuPDF's flag of a font
# The same join this many times in a paper is a word, even if it never occurs unsplit.
_OFTEN = 2
# A split word has a piece shorter than this.
_LONG_PIECE = 4


class Glyph(NamedTuple):
    """A character with its left and right edges, in points, and its font."""

    character: str
    x0: float
    x1: float
    font: str
    size: float
    flags: int


class SplitLine(NamedTuple):
    """A line, and the offsets of those of its spaces that may be gaps inside a word."""

    text: str
    narrow: tuple[int, ...]


def may_be_split(text: str) -> bool:
    """Whether a page has so many single letters that the paper's words may be split."""
    singles = len(_SINGLE.findall(text))
    return singles >= _MIN_SINGLES and singles > _MIN_SHARE * len(_ANY_WORD.findall(text))


def glyphs(blocks: Sequence[Mapping[str, Any]]) -> Iterator[list[Glyph]]:
    """The level lines of MuPDF's raw blocks."""
    for block in blocks:
        for line in block.get("lines", ()):
            if line["dir"][0] > 0.9:
                yield [
                    Glyph(letter["c"], letter["bbox"][0], letter["bbox"][2], s["font"], s["size"], s["flags"])
                    for s in line["spans"]
                    for letter in s["chars"]
                ]


def split_lines(lines: Iterable[Sequence[Glyph]]) -> list[SplitLine]:
    """The lines of a page with narrow spaces between letters of one font."""
    lines_with_gaps = [("".join(glyph.character for glyph in line), _gaps(line)) for line in lines]
    sure = [[gap for gap, is_sure in gaps.values() if is_sure] for _, gaps in lines_with_gaps]
    page_gaps = [gap for gaps in sure for gap in gaps]
    if not page_gaps:
        return []
    usual = median(page_gaps)
    split = []
    for (text, gaps), spaces in zip(lines_with_gaps, sure, strict=True):
        if _CODE.search(text):
            continue
        widest = _NARROW * min(usual, median(spaces) if len(spaces) >= _MIN_SPACES else usual)
        narrow = tuple(place for place, (gap, _) in gaps.items() if gap < widest)
        if narrow:
            split.append(SplitLine(text, narrow))
    prose = sum(len(text) >= _PROSE_LINE and not _CODE.search(text) for text, _ in lines_with_gaps)
    return split if sum(len(line.text) >= _PROSE_LINE for line in split) >= _MIN_SPLIT_LINES * max(1, prose) else []


def _gaps(line: Sequence[Glyph]) -> dict[int, tuple[float, bool]]:
    """The width of each space between two letters, in ems, by its offset, and whether long words are on both sides."""
    gaps: dict[int, tuple[float, bool]] = {}
    for place in range(1, len(line) - 1):
        before, space, after = line[place - 1 : place + 2]
        if space.character != " " or not (before.character.isalpha() and after.character.isalpha()):
            continue
        if before.font != after.font or abs(before.size - after.size) > _SAME_SIZE or before.flags & _MONOSPACED:
            continue
        if not after.character.islower() or before.size <= 0:
            continue
        is_sure = all(glyph.character.isalpha() for glyph in line[max(0, place - _SURE_WORD) : place]) and all(
            glyph.character.isalpha() for glyph in line[place + 1 : place + 1 + _SURE_WORD]
        )
        gaps[place] = (after.x0 - before.x1) / before.size, is_sure and place >= _SURE_WORD
    return gaps


def join_words(pages: Sequence[str], split: Mapping[int, Sequence[SplitLine]]) -> dict[int, str]:
    """Page index -> its text with words joined, for the pages that change.

    pages: the text of all pages. split: page index -> its lines with narrow spaces.
    """
    if not split:
        return {}
    chains = {index: [list(_chains(line)) for line in lines] for index, lines in split.items()}
    pieces = [chain for lines in chains.values() for line in lines for _, chain in line]
    joins = Counter(map(_joined, pieces))
    unsplit = Counter(word.casefold() for text in pages for word in _ANY_WORD.findall(text))
    split_pieces = Counter(piece.casefold() for chain in pieces for piece in chain)
    unsplit.subtract(split_pieces)
    # A string that occurs more often inside split words than by itself is a piece of a word.
    vocabulary = frozenset(word for word, count in unsplit.items() if count > 0 and count >= split_pieces[word])
    joined: dict[int, str] = {}
    for index, lines in split.items():
        text = pages[index]
        for line, runs in zip(lines, chains[index], strict=True):
            dropped = {place for places, chain in runs if _is_one_word(chain, vocabulary, joins) for place in places}
            if dropped:
                replacement = "".join(sign for place, sign in enumerate(line.text) if place not in dropped)
                text = text.replace(line.text.strip(), replacement.strip(), 1)
        if text != pages[index]:
            joined[index] = text
    return joined


def _chains(line: SplitLine) -> Iterator[tuple[list[int], list[str]]]:
    """The runs of pieces separated by narrow spaces: the offsets of these spaces, and the pieces."""
    places: list[int] = []
    pieces: list[str] = []
    for last, word in pairwise([None, *_ANY_WORD.finditer(line.text), None]):
        if last and word and word.start() - last.end() == 1 and last.end() in line.narrow:
            places.append(last.end())
            pieces.append(word.group())
        else:
            if places:
                yield places, pieces
            places, pieces = [], [word.group()] if word else []


def _joined(chain: Sequence[str]) -> str:
    return "".join(chain).casefold()


def _is_one_word(chain: Sequence[str], vocabulary: Set[str], joins: Counter[str]) -> bool:
    """Whether the pieces are one word of the paper."""
    word = _joined(chain)
    if word in vocabulary:
        return True
    unknown = [len(piece) for piece in chain if piece.casefold() not in vocabulary]
    # Pieces that are words of the paper, or long, are separate words.
    if len(unknown) == len(chain):
        return min(unknown) <= _LONG_PIECE
    return joins[word] >= _OFTEN and min(unknown, default=_LONG_PIECE) < _LONG_PIECE
