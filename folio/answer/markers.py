"""Cleans a model's output: citation markers, Markdown emphasis, HTML tags, links, terminal escapes. Pure."""

from __future__ import annotations

import re
import unicodedata

from folio.text import one_line

# A marker in the form that the prompt asks for and in others: [1], [1, 2], [1][3], [Source 1], [1, p. 4], 【1†source】,
# [^1], or in a second pair of brackets: [[1]], ([1])

NAMED = r"(?:(?:sources?|evidence|passages?|ref\.?)\s*(?::\s*)?)?(?:number\s*)?#?"
_PAGE = r"(?:\b(?:pp?|S)\.|\bpages?)\s?\d+(?:\s?[-–]\s?\d+)?"
MARKER = re.compile(
    rf"\s*(?P<outer>[\[(])?[\[(]\s*\^?{NAMED}(?P<numbers>\d{{1,3}}(?:\s*(?:,|;|and|&|-|–)\s*{NAMED}\d{{1,3}})*)"
    rf"(?:\s*(?:[,:]\s*)?{_PAGE}|†[^\]]{{0,40}})?\s*[\])](?(outer)[\])])",
    re.I,
)
_WORDS_OF_MARKER = re.compile(r"(?!and\b)\b[^\W\d]+\.?\s*:?|#", re.I)
TRAILING_MARKERS = re.compile(rf"(?:{MARKER.pattern})+", re.I)
# Text within brackets that contains no sentence end, even if only a part of it has arrived.
_UNBROKEN = r"[^\[\]【】［］〔〕<>.!?…。！？\n]|[.!?…](?=\S)|\bpp?\.\s"
_OTHER_BRACKETS = re.compile(rf"[【［〔](\s*{NAMED}\d{{1,3}}\b(?:{_UNBROKEN}){{0,40}})[】］〕]", re.I)
_STUCK = re.compile(rf"(?<=[^\W\d][.!?…])(?=\[(?:\^|{NAMED})\d{{1,3}}\b(?:{_UNBROKEN}){{0,40}}\])", re.I)
_CUT_MARKER = re.compile(rf"\s*[\[【]\s*{NAMED}[\d\s,;]*(?=[.!?…]*$)", re.I)
# Text that looks like one of Folio's citations or a page reference, which only the program writes
_FORGED = re.compile(
    rf"\s*\[[^\[\]]{{0,80}}(?:{_PAGE}|\.pdf\b)[^\[\]]{{0,20}}\]|\s*\([^()]{{0,80}}(?:{_PAGE}|\.pdf\b[^()]{{0,9}})\)",
    re.I,
)
# Not the brackets of `Init()`.
_EMPTY_BRACKETS = re.compile(
    r"(?!(?<=\w)\(\))\s*[(\[]\s*(?:see|source|sources|cf\.?|evidence|from|ref\.?)?\s*:?\s*[)\]]", re.I
)
# Code and formulas, where x[1] is an index
_VERBATIM = re.compile(r"`[^`]*`|\$(?!\s)[^$]*(?<!\s)\$(?!\d)|\\\(.*?\\\)|\\\[.*?\\\]")
_INDEXED = re.compile(r"(?:^|[^\w])(?:[A-Za-z]|(?!\d+$)\w*[\d_]\w*)$")
# After these a number in round brackets is part of a name: Equation (2), step (1)
_NUMBERED = re.compile(
    r"\b(?:eqs?|equations?|steps?|items?|cases?|parts?|tables?|figs?|figures?|sections?|lemmas?|theorems?|rules?|lines?"
    r"|conditions?|phases?|points?|algorithms?|and|or|to)\.?$",
    re.I,
)
# Words that only introduce a marker (_TAKEN): "According to [1], ...", "[1] states that ...", "see [1]"
_TAKEN = "\x00"
_SOURCE = r"(?:(?:the\s+)?(?:evidence|sources?|passages?|papers?|documents?|refs?|references?)\s*)?"
_TAKEN_TOGETHER = re.compile(r"\x00(?:(?:[,;]|\s+and\b|\s+&)*\x00)+")
_LEADS_TO_MARKER = re.compile(
    rf"^(?:(?:according\s+to|based\s+on|as\s+\w+\s+(?:in|by)|as\s+per|per|from|in)\s*{_SOURCE}\x00\s*,\s*"
    rf"|{_SOURCE}\x00\s*(?:also\s+|explicitly\s+|clearly\s+)?"
    r"(?:states?|says?|mentions?|notes?|reports?|explains?|writes?|specif(?:y|ies)|tells?(?:\s+us)?)\s+that\s+)(?=\w)",
    re.I,
)
_ENDS_IN_MARKER = re.compile(
    rf",?\s+(?:as\s+\w+\s+(?:in|by)|according\s+to|see(?:\s+also)?|cf\.?)\s*{_SOURCE}\x00(?=\s*[.!?…]*$)", re.I
)
# "According to sentence 6, ...", "Passage 2 states that ...": a marker without its brackets
_SPOKEN = re.compile(
    r"^((?:according\s+to|based\s+on|as\s+\w+\s+(?:in|by)|as\s+per|per|from|in)\s+)?(?:the\s+)?(?:evidence\s+)?"
    r"(?:sentences?|passages?|excerpts?|sources?)\s+(?:number\s+)?#?(\d{1,3}(?:\s*(?:,|and|&)\s*\d{1,3})*)(?(1)(?=\s*,\s)"
    r"|(?=\s+(?:also\s+|explicitly\s+|clearly\s+)?(?:states?|says?|mentions?|notes?|reports?|explains?)\s+that\s))",
    re.I,
)
# A reference of the paper's own, as fencing.py writes it for a prompt: it names nothing here
_OWN_REFERENCE = re.compile(r"\s*\(refs?\.\s\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\)", re.I)
_SECOND_STOP = re.compile(r"(?<![.\s])(?:\s\.|\.\.)$")
_CODE_MARKERS = re.compile(rf"(?<!\s)(?=\s)(?:\s+(?:#|//|--|%))?(?:{MARKER.pattern})+\s*\.?$", re.I)
_MOST_ROUNDS = 20  # to remove nested markers; after these all brackets are removed
_NO_BRACKETS = str.maketrans("", "", "[]()【】")


def take_markers(text: str, count: int) -> tuple[str, tuple[int, ...]]:
    """A sentence without its markers, and the distinct numbers from 1 to count in them, in order.

    Round brackets are a marker only at the end of the sentence, unless they may contain a year or an equation's number.
    A list that contains 0, such as [0, 1], is an interval. In code and formulas, brackets contain an index. "(ref. 3)"
    is a reference of the paper's own, which a model has copied from its prompt: it is no marker, and is removed.
    """
    numbers: dict[int, None] = {}
    text, rounds = _SPOKEN.sub(r"\1[\2]", _OWN_REFERENCE.sub("", one_line(text))), 0
    while (plain := _without_markers(text, count, numbers)) != text:
        rounds += 1  # removing one marker may uncover another: [[1]2]
        text = plain if rounds < _MOST_ROUNDS else plain.translate(_NO_BRACKETS)
    return plain, tuple(numbers)


def end_of_code(line: str) -> int:
    """Where a line of code ends: before the markers after it and the space before them."""
    line = line.rstrip()
    markers = _CODE_MARKERS.search(line) if line.rstrip(" .").endswith(("]", ")")) else None
    return markers.start() if markers else len(line)


def _without_markers(text: str, count: int, numbers: dict[int, None]) -> str:
    """One round of removal. Adds the markers' numbers to `numbers`."""
    verbatim = [match.span() for match in _VERBATIM.finditer(text)]

    def take(match: re.Match[str]) -> str:
        named = _numbers(match["numbers"])
        if is_text(match, named) or any(start <= match.start() < end for start, end in verbatim):
            return match.group()
        numbers.update((number, None) for number in named if 1 <= number <= count)
        return _TAKEN

    def is_text(match: re.Match[str], named: list[int]) -> bool:
        before, after = text[: match.start()], text[match.end() :]
        if match.group().startswith(("(", " (", "\n(")) and "[" not in match.group():
            closes = not TRAILING_MARKERS.sub("", after).strip(' .!?…"”»)')
            return not closes or not named or max(named) > count or bool(_NUMBERED.search(before))
        if 0 in named and len(named) > 1:
            return True
        return not match.group()[0].isspace() and bool(_INDEXED.search(before)) and bool(after.strip(" .!?"))

    plain = _TAKEN_TOGETHER.sub(_TAKEN, MARKER.sub(take, text))
    plain = _ENDS_IN_MARKER.sub("", _LEADS_TO_MARKER.sub("", plain.strip()))
    first = plain.partition(" ")[0]
    if first.isalpha() and first.islower() and len(first) > 1 and not text.lstrip().startswith(first):
        plain = plain[0].upper() + plain[1:]
    plain = _CUT_MARKER.sub("", _FORGED.sub("", plain.replace(_TAKEN, "")))
    plain = one_line(_EMPTY_BRACKETS.sub("", plain))
    return _SECOND_STOP.sub(".", plain)


def _numbers(text: str) -> list[int]:
    numbers: list[int] = []
    for part in re.split(r"\s*(?:,|;|and|&)\s*", _WORDS_OF_MARKER.sub("", text)):
        first, _, last = re.sub(r"\s*[-–]\s*", "-", part).partition("-")
        if first.isdecimal() and last.isdecimal():
            numbers.extend(range(int(first), min(int(last), int(first) + 20) + 1))
        elif first.isdecimal():
            numbers.append(int(first))
    return numbers


def in_square_brackets(text: str) -> str:
    """The text with markers such as 【1†source】 in square brackets, and a space before each."""
    return _STUCK.sub(" ", _OTHER_BRACKETS.sub(r"[\1]", text))


# Markup

_LIST_ITEM = re.compile(r"(?:(?:[-–•▪‣*+]|#+|\d{1,2}[.)])\s+)+")
_EMPHASIS = re.compile(
    r"(?<![\w*])\*(?=[^\s*])((?:[^*.!?…。！？\n]|[.!?…](?=[^\s*]))+)(?<=\S)\*(?=[^\w*])"
    r"|(?<!\w)__?(?=[^\s_])((?:[^_.!?…。！？\n]|[.!?…](?=[^\s_]))+)(?<=\S)__?(?=\W)"
)
_LINK = re.compile(r"(!)?\[([^\[\]]*)\]\((?:[a-z][\w+.-]*:|www\.|\.{0,2}/|#)[^\s()]*(?:\s+\"[^\"]*\")?\)", re.I)
_TAG = re.compile(
    r"</?(?:(?P<block>p|br|hr|div|ul|ol|li|h[1-6]|tr|table|blockquote|pre|statements?|tool_call|response|output|result)|b|i|u|em|strong|s|sub|sup|small|mark|code|span"
    r"|font|a|img|td|th|evidence|answer)(?:\s(?:[^<>.!?…。！？\n]|[.!?…](?=\S)){0,200})?/?>",
    re.I,
)
_LONGEST_STRING = 2000  # characters of a terminal escape string, such as a link's address
_STRING = rf"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{{0,{_LONGEST_STRING}}}"
_ESCAPES = re.compile(
    rf"(?:\x1b\[|\x9b)[0-?]{{0,99}}[ -/]{{0,9}}[@-~]|{_STRING}(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]{{0,9}}[0-;=-~]"
)
CUT_ESCAPE = re.compile(
    rf"(?:\x1b\[|\x9b)[0-?]{{0,99}}[ -/]{{0,9}}\Z|{_STRING}\x1b?\Z|\x1b[ -/]{{0,9}}\Z|\r\Z"
    r"|<(?:/?(?:t|th|thi|thin|think|thinki|thinkin|thinking)?)\Z",
    re.I,
)
# Zero-width joiners belong to other scripts; next to ASCII they can only hide text.
_LOST_JOINER = re.compile(r"(?<![\u200c\u200d])[\u200c\u200d]+(?=[\x00-\x7f])|(?<=[\x00-\x7f])[\u200c\u200d]+")


def printable(text: str) -> str:
    """The text without terminal escapes and invisible characters."""
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if plain.isascii() and plain.isprintable():
        return plain
    visible = (char for char in plain if unicodedata.category(char) != "Cf" or char in "\u200c\u200d")
    return "".join(char if char.isprintable() or char in "\n\u200c\u200d" else " " for char in visible)


def simplified(text: str) -> str:
    """The text without bold marks, code fences, stray joiners and HTML tags."""
    text = _LOST_JOINER.sub("", text.replace("**", "").replace("```", ""))
    text = _EMPHASIS.sub(lambda words: words[1] or words[2], text)
    if "<" in text:
        text = _TAG.sub(lambda tag: "\n\n" if tag["block"] else "", text)
    return text


def unadorned(sentence: str) -> str:
    """A sentence without its list number or bullet, emphasis and link targets."""
    text = sentence.replace("**", "").strip()
    if item := _LIST_ITEM.match(text):
        text = text[item.end() :]
    text = _LINK.sub(lambda link: "" if link[1] else f"[{link[2]}]" if link[2].isdecimal() else link[2], text)
    return _EMPHASIS.sub(lambda words: words[1] or words[2], f"{text} ").strip()
