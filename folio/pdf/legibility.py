"""Whether the text of a page is language, or garbled by a broken font encoding. Pure: text in, verdict out.

A PDF whose fonts lack a map to Unicode, or have a wrong one, shows its words but yields other characters: private use,
control characters, letters of many scripts in one word, or other letters of the same script ("7KLV LV D WHVW"). The
first kinds are counted. The last is recognised in Latin script by the pairs of neighbouring letters, and in other
scripts by the share of their commonest letters. Tables, formulas, code, and lists of names or numbers hold too few
letters in words for a verdict, or pass, because their words are made of the same letters as prose.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from functools import cache
from itertools import pairwise

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
_OFFSET, _STEP = 13, 2
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
# Scripts that are written side by side within words
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
    if pairs.total() < _MIN_PAIRS:
        pairs = _pairs(_LONG_WORD.findall(_fold(_SPACED.sub(r"\1", text))))
    count = pairs.total()
    if count < _MIN_PAIRS or len({sign for pair in pairs for sign in pair}) < _MIN_DISTINCT:
        return Verdict.UNKNOWN
    bits = sum(number * _bits(*pair) for pair, number in pairs.items()) / count
    return Verdict.LEGIBLE if bits >= _MIN_BITS else Verdict.ILLEGIBLE


def _pairs(words: Sequence[str]) -> Counter[tuple[str, str]]:
    """The counts of pairs of neighbouring letters, a to z, in words; each word counts at most _MAX_REPEATED times."""
    repeated = " ".join(" ".join([word] * min(count, _MAX_REPEATED)) for word, count in Counter(words).items())
    pairs = Counter(pairwise(repeated))
    # Specimens of a font show the alphabet.
    for pair in [pair for pair in pairs if " " in pair or ord(pair[1]) - ord(pair[0]) == 1]:
        del pairs[pair]
    return pairs


def _bits(first: str, second: str) -> float:
    return (ord(_PAIRS[ord(first) - 97][ord(second) - 97]) - 97 - _OFFSET) / _STEP


def _fold(text: str) -> str:
    """Lower case without accents. Not text.without_marks, which makes two letters of a ligature."""
    if text.isascii():
        return text.lower()
    return "".join(sign for sign in unicodedata.normalize("NFD", text.casefold()) if not unicodedata.combining(sign))


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
    """How many letters are in words that mix scripts, other than scripts that are written together."""
    mixed = 0
    for word in text.split():
        if word.isascii():
            continue
        scripts = [_script(sign) for sign in word]
        letters = [script for script in scripts if script not in (_NONE, _OTHER)]
        if len({_TOGETHER.get(script, script) for script in letters}) > 1:
            mixed += len(letters)
    return mixed
