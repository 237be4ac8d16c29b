"""Splits text into search tokens and sentences, compares text, and estimates a language model's token count."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from pathlib import PurePath
from typing import Any

VERSION = 4  # of tokenize; an index of another version is rebuilt

# A short list like SMART's: words that hardly distinguish passages
STOP_WORDS = frozenset(
    "a about after all also an and any are as at be because been before being between both but by can could did do does"
    " doing during each for from further had has have having he her here hers him his how i if in into is it its itself"
    " just me more most my no nor not of off on once only or other our out over own same she should so some such than"
    " that the their them then there these they this those through to too under until up very was we were what when"
    " where which while who whom why will with would you your".split()
)

# A word with the joiners of technical names: ML-KEM.KeyGen, top-k, a/b, SHA3_256, v1.2, 2^64, 10^-4
_COMPOUND = re.compile(r"\w+(?:(?:\^-?|[-.‑–/+:])\w+)*")
_JOINER = re.compile(r"\^-?|[./+:]")
# Its parts: numbers, and words by their capitals (KeyGen: Key, Gen; HTTPServer: HTTP, Server; CRDTs: CRDT)
_PART = re.compile(r"\d+|[A-Z]{2,}(?=s(?![A-Za-z]))|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PART_UNICODE = re.compile(r"\d+|[^\W\d_]+")
_AREA = re.compile(r"[cdkmnµμ]?m[23]")  # km2: its parts mean nothing
_IDEOGRAPHS = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_CJK = re.compile(rf"{_IDEOGRAPHS}+")
# Where a word of ASCII ends and one of a script without spaces begins, or the other way round: BERT模型
_SEAM = re.compile(rf"(?<=[A-Za-z\d])(?={_IDEOGRAPHS})|(?<={_IDEOGRAPHS})(?=[A-Za-z\d])")


def tokenize(text: str) -> list[str]:
    """Tokens in order: each technical compound whole, then its parts; stemmed, lower case, without stop words.

    Latin letters lose their accents: a name is often typed without them, and PDFs lose some. Raised and lowered
    characters are as people type them, note marks and the sign for an unreadable formula are none.

    >>> tokenize("the ML-KEM.KeyGen algorithm")
    ['ml-kem.keygen', 'ml-kem', 'ml', 'kem', 'keygen', 'key', 'gen', 'algorithm']
    >>> tokenize("Erdős") == tokenize("Erdos")
    True
    >>> tokenize("2⁶⁴, CO₂, km², x_i") == tokenize("2^64, CO2, km2, x_i")
    True
    """
    return list(chain.from_iterable(map(_TOKENS_OF.__getitem__, text.split())))


class _TokensOf(dict[str, tuple[str, ...]]):
    """A cache: word between spaces -> its tokens. A lookup takes a tenth of the time of tokenizing.

    A full cache is cleared. Long words are not kept, so that text without spaces cannot fill the memory.
    """

    def __missing__(self, word: str) -> tuple[str, ...]:
        plain = word if word.isascii() else without_accents(word)
        if not (plain.isascii() and _NO_NOTATION.isdisjoint(plain)):
            plain = _SHORT_NOTATION.sub("", typed(plain.replace(UNREAD_FORMULA, " "))).replace("⁄", "/")
            plain = _SEAM.sub(" ", plain)
        tokens = tuple(token for match in _COMPOUND.finditer(plain) for token in _tokens(match.group()))
        if len(word) <= 64:
            if len(self) >= 200_000:
                self.clear()
            self[word] = tokens
        return tokens


_TOKENS_OF = _TokensOf()


@lru_cache(maxsize=200_000)
def _tokens(word: str) -> tuple[str, ...]:
    tokens: dict[str, None] = {}
    folded = word.casefold()
    if len(folded) <= 64 and not (folded.isalpha() and folded in STOP_WORDS):
        tokens[_stem(folded)] = None
    for piece in () if _AREA.fullmatch(folded) else _JOINER.split(word):
        whole = piece.casefold()
        if whole != folded and whole not in STOP_WORDS and len(whole) > 1:
            tokens[_stem(whole)] = None
        for part in (_PART if piece.isascii() else _PART_UNICODE).findall(piece):
            token = part.casefold()
            if token != folded and token not in STOP_WORDS and (len(token) > 1 or token.isdigit()):
                tokens[_stem(token)] = None
        if "_" in piece and _INDEXED.fullmatch(piece):  # x_i is also typed as xi, T_max as Tmax
            tokens[_stem(whole.replace("_", ""))] = None
    for run in _CJK.findall(word):  # text without spaces between words: pairs of characters stand for words
        tokens.update((run[i : i + 2], None) for i in range(len(run) - 1))
    return tuple(tokens)


# Letters that Unicode does not decompose into a plain letter and a mark; an apostrophe that is a letter
_PLAIN_LETTERS = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ħ": "h", "Ħ": "H", "ı": "i", "æ": "ae", "Æ": "AE"}
    | {"ʼ": "'", "œ": "oe", "Œ": "OE", "ð": "d", "Ð": "D", "þ": "th", "Þ": "TH"}
)
_ACCENTED = re.compile(r"([A-Za-z])[\u0300-\u036f]+")


def without_accents(text: str) -> str:
    """The text with plain Latin letters for accented ones. Other scripts keep their marks, which distinguish letters.

    >>> without_accents("Łukasz Šidák, Möngke; Ёлка が")
    'Lukasz Sidak, Mongke; Ёлка が'
    """
    decomposed = unicodedata.normalize("NFD", text.translate(_PLAIN_LETTERS))
    return unicodedata.normalize("NFC", _ACCENTED.sub(r"\1", decomposed))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word)) if word.isalpha() else word


def without_marks(text: str) -> str:
    """The text in lower case, in any script without diacritics and ligatures."""
    letters = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, without accents: "Jürgen O'Neil" -> jurgen, o, neil."""
    return re.findall(r"\w+", without_marks(text))


def fold(text: str) -> str:
    """A title or a name for comparison: only letters and digits, without case and diacritics."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in plain if char.isalnum())


class _Folded(dict[str, str]):
    """A cache: character -> how `fold` writes it."""

    def __missing__(self, char: str) -> str:
        self[char] = folded = fold(char)
        return folded


_FOLDED = _Folded()


def find_words(text: str, words: str) -> list[tuple[int, int]]:
    """Spans [start, end) of a text that have these words, in order and without overlap.

    Only letters and digits count, as `fold` writes them: case, accents, ligatures, spaces, hyphens and how raised and
    lowered characters are written may differ. Formulas that cannot be read count for nothing. Words without any letter
    are looked for as they are.

    >>> find_words("An eﬃ-\\ncient Café", "efficient cafe")
    [(3, 17)]
    """
    wanted = fold(words.replace(UNREAD_FORMULA, ""))
    if not wanted:
        return [match.span() for match in re.finditer(re.escape(words.strip()), text)] if words.strip() else []
    parts = [_FOLDED[char] for char in text.replace(UNREAD_FORMULA, _UNREAD)]
    folded = "".join(parts)
    places = [place for place, part in enumerate(parts) for _ in part]
    spans: list[tuple[int, int]] = []
    at = folded.find(wanted)
    while at >= 0:
        span = places[at], places[at + len(wanted) - 1] + 1
        if not spans or span[0] >= spans[-1][1]:  # two matches may share a ligature
            spans.append(span)
        at = folded.find(wanted, at + len(wanted))
    return spans


# Raised and lowered characters: Unicode's where every one has its own there, else ^ and _, in brackets if several.
_PLAIN_SIGNS = "0123456789+−=()"
_RAISED = str.maketrans(f"{_PLAIN_SIGNS}-–ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾⁻⁻ⁿⁱ")
_LOWERED = str.maketrans(f"{_PLAIN_SIGNS}-–", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎₋₋")
_FLAT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎", f"{_PLAIN_SIGNS}ni{_PLAIN_SIGNS}")
# In a text, stands for a formula that cannot be read
UNREAD_FORMULA = "[formula]"
_UNREAD = " " * len(UNREAD_FORMULA)


def raised(text: str) -> str:
    """How an exponent is written.

    >>> raised("-4"), raised("n-1"), raised("k"), raised("n/2")
    ('⁻⁴', 'ⁿ⁻¹', '^k', '^(n/2)')
    """
    text = _plain_letters(text)
    if all(ord(sign) in _RAISED for sign in text):
        return text.translate(_RAISED)
    is_bracketed = text[:1] == "(" and text.find(")") == len(text) - 1
    return f"^{text}" if len(text) == 1 or is_bracketed else f"^({text})"


def lowered(text: str) -> str:
    """How an index is written.

    >>> lowered("2"), lowered("max"), lowered("i,j")
    ('₂', '_max', '_(i,j)')
    """
    text = _plain_letters(text)
    if all(ord(sign) in _LOWERED for sign in text):
        return text.translate(_LOWERED)
    return f"_{text}" if text.isalnum() else f"_({text})"


def _plain_letters(text: str) -> str:
    """The text with plain letters for those of Unicode's mathematical alphabets."""
    return text if text.isascii() else "".join(
        unicodedata.normalize("NFKC", sign) if "\U0001d400" <= sign <= "\U0001d7ff" else sign for sign in text
    )


def flat(text: str) -> str:
    """The text with plain digits and signs for those that are raised or lowered in Unicode: 10⁻⁴ is 10−4."""
    return text.translate(_FLAT)


# What `typed` writes in another way. Raised digits that stand on nothing, or on the end of a sentence, mark a note.
NOTATION = re.compile(
    r"""
    (?= [^\x00-\x7f] | [\^_*] ) (?:
    (?P<over> [⁰¹²³⁴-⁹]+ ) \s? [⁄∕/] \s? (?P<under> [₀-₉]+ )       # ³⁄₁₆
    | (?P<fraction> [¼-¾⅐-⅞] )
    | (?<! \S ) (?P<apart> [⁰¹²³⁴-⁹]+ (?:[⁻⁺]+[⁰¹²³⁴-⁹]+)* ) (?! \w ) [ ]?
    | (?<= [.,;:!?…(\["“”’»–] ) (?P<mark> [⁰¹²³⁴-⁹]+ (?:[⁻⁺]+[⁰¹²³⁴-⁹]+)* ) (?! \w )
    | (?P<raised> [¹²³⁰-ⁿ]+ )
    | (?P<lowered> [₀-ₜ]+ )
    | (?P<sign> [\^_] ) [({] (?P<inner> [^(){}\s]{1,40} ) [)}]        # ^(n/2), _{max}
    | (?<= [\w)] ) (?P<power> \*\* ) (?= [-+(\w] ) )                 # 10**9
    """,
    re.X,
)
_ORDINAL = re.compile(r"st|nd|rd|th")
_MINUS = str.maketrans("−", "-")
# A word of ASCII without any of these has no notation
_NO_NOTATION = frozenset("^_*[")
# The index of a short name, x_i
_INDEXED = re.compile(r"[^\W\d_]{1,3}_[^\W_]+")
# What is also typed without a sign: the power of a letter, m^2, and the number of a short name, x_1
_SHORT_NOTATION = re.compile(
    r"(?<=[^\W\d_])\^(?=-?\d)"
    r"|(?:(?<=\b[^\W\d_])|(?<=\b[^\W\d_]{2})|(?<=\b[^\W\d_]{3}))_(?=\d+\b)"
)


def typed(text: str) -> str:
    """The text with raised and lowered characters and fractions as people type them, without note marks.

    >>> typed("2⁶⁴ and 10⁻⁴ of CO₂, 2^(n/2), 5¼ m² by this method. ³")
    '2^64 and 10^-4 of CO2, 2^n/2, 5 1⁄4 m^2 by this method. '
    """
    return NOTATION.sub(as_typed, text)


def rewritten(
    text: str, offsets: list[int], pattern: re.Pattern[str], form: Callable[[re.Match[str]], str]
) -> tuple[str, list[int]]:
    """The text with another form of each match, and the offset of each character, from those of the text."""
    parts, places, end = list[str](), list[int](), 0
    for match in pattern.finditer(text):
        start, written = match.start(), form(match)
        parts += text[end:start], written
        places += offsets[end:start]
        places += [offsets[start]] * len(written)
        end = match.end()
    return ("".join([*parts, text[end:]]), places + offsets[end:]) if end else (text, offsets)


def as_typed(match: re.Match[str]) -> str:
    """How people type a match of NOTATION."""
    kind, text, start = match.lastgroup, match.string, match.start()
    before = text[start - 1] if start else ""
    if kind in ("under", "fraction"):
        fraction = unicodedata.normalize("NFKC", match["fraction"] or f"{match['over']}⁄{match['under']}")
        return f" {fraction}" if before.isdecimal() else fraction
    if kind in ("mark", "apart"):
        return ""
    if kind == "inner":
        is_ordinal = match["sign"] == "^" and before.isdecimal() and _ORDINAL.fullmatch(match["inner"])
        return f"{'' if is_ordinal else match['sign']}{match['inner']}"
    if kind == "power":
        return "^"
    plain = unicodedata.normalize("NFKC", match.group()).translate(_MINUS)
    if kind == "lowered":
        return f"_{plain}" if before.isdecimal() else plain
    return f"^{plain}"


def one_line(text: str) -> str:
    """The text with one space for each run of white space, and none at its ends."""
    return " ".join(text.split())


def shorten(text: str, longest: int) -> str:
    """The text cut to at most `longest` characters, with "…" at the cut."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def reason_of(error: Exception) -> str:
    """The message of another library's error, as part of a sentence."""
    return one_line(str(error))[:100] or type(error).__name__


def whole_words(text: str, longest: int) -> str:
    """At most the first `longest` characters of a longer text, up to the end of a word if it has a space."""
    cut = text[:longest]
    return cut.rpartition(" ")[0] or cut


def coverage(weights: Mapping[str, float], tokens: Iterable[str]) -> float:
    """The weighted share, in [0, 1], of a question's tokens that are among `tokens`."""
    total = sum(weights.values())
    present = set(tokens)
    return sum(weight for token, weight in weights.items() if token in present) / total if total else 0.0


# At most one token of a language model's tokenizer: a piece of a word or of a number, or a sign
_PIECE = re.compile(r"[A-Za-z]{1,4}|\d{1,3}|\s+|[^\sA-Za-z\d]")


def estimate_tokens(text: str) -> int:
    """An upper estimate of a model's token count.

    Llama 3 has about one token for 4.4 letters of English prose, for at most 3 digits, and for most signs. One token
    for each 4 letters, 3 digits and sign is more than that in prose, tables and formulas. A character outside ASCII
    counts as its bytes in UTF-8 less one, which no tokenizer on bytes exceeds by much.
    """
    pieces = 0
    for match in _PIECE.finditer(text):
        piece = match.group()
        if not piece.isspace():
            pieces += 1 if piece.isascii() else max(1, len(piece.encode(errors="replace")) - 1)
        elif piece != " ":
            pieces += 1
    return pieces


# The end of a sentence, with closing quotes and brackets, and markers: "It is so.[1] Then", "It is so. ¹² Then"
_END = re.compile(
    r"(?<![.!?…。！？])[.!?…。！？]+(?:[\"'”’»)\]*]|\s»)*"
    r"(?:[\[【]\d[\d,;\s–-]*[\]】]|[ ]?[⁰¹²³⁴-⁹]+(?:[,–⁻][⁰¹²³⁴-⁹]+)*)*(?=\s|$)"
    r"|[。！？]|\n\s*\n|\n(?=\s*(?:[•▪‣*–-]|\d{1,2}[.)])\s)"
)
_NEXT_STARTS = re.compile(r"\s+[\"'“‘«(\[]*[^\Wa-z_]|\s+[\"'“‘«(\[•▪‣–-]|\s*$|\s*\n\s*\n")
_ABBREVIATIONS = frozenset(
    "al alg approx cf ch chap col dept dr ed eds e.g eq eqs etc fig figs i.e inc jr lt ltd mr mrs ms nos p pp para"
    " prof ref refs resp sec sect st suppl tab th thm u.s v ver viz vol vs".split()
)
# These are also words, and abbreviations only before a number: "No. 5", but "The answer is no."
_BEFORE_A_NUMBER = frozenset({"app", "ex", "no"})
_NUMBER_FOLLOWS = re.compile(r"\s+\d")
# The number of a list item, perhaps after markers of the sentence before: "It is so. [1] 2. Then"
_ITEM_NUMBER = re.compile(r"\s*(?:[\[【(]+[^\[\]【】()]{1,40}[\]】)]+\s*)*\d+")
_LAST_WORD = re.compile(r"[\w.&]+$")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Spans [start, end) of the sentences of a text, without surrounding white space; list items count as sentences.

    A full stop ends a sentence unless it belongs to an abbreviation, an initial or a number. What follows must be able
    to begin a sentence.
    """
    spans, start = [], 0
    for match in _END.finditer(text):
        if "\n" not in match.group() and not _ends_here(text, start, match):
            continue
        spans.append((start, match.end()))
        start = match.end()
    spans.append((start, len(text)))
    return [span for span in (stripped(text, *span) for span in spans) if span[0] < span[1]]


def sentence_tokens(text: str) -> list[list[str]]:
    """The search tokens of each sentence of a text; together they are the tokens of the text."""
    return [[token for word in text[a:b].split() for token in _TOKENS_OF[word]] for a, b in sentence_spans(text)]


def word_tokens(text: str) -> list[tuple[str, ...]]:
    """The search tokens of each word between spaces; together they are the tokens of the text."""
    return [_TOKENS_OF[word] for word in text.split()]


def _ends_here(text: str, start: int, match: re.Match[str]) -> bool:
    if match.group()[0] in "。！？":
        return True
    if not _NEXT_STARTS.match(text, match.end()):
        return False
    if match.group()[0] != ".":
        return True
    word = _LAST_WORD.search(text, max(start, match.start() - 24), match.start())
    if word is None:
        return True
    last = word.group()
    is_initial = len(last) == 1 and last.isupper() and last not in "IV"
    begins_list_item = _ITEM_NUMBER.fullmatch(text, start, match.start())
    before_number = last.casefold() in _BEFORE_A_NUMBER and _NUMBER_FOLLOWS.match(text, match.end())
    return not (is_initial or begins_list_item or before_number or last.casefold() in _ABBREVIATIONS)


def stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """The span [start, end) without leading and trailing white space."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def without_ending(name: str) -> str:
    """A file name with its folders, without its ending: "seas/otters". A name of dots keeps it: "..pdf"."""
    path = PurePath(name)
    left = path.name.removesuffix(path.suffix)
    return (path.parent / left if left.strip(".") else path).as_posix()
