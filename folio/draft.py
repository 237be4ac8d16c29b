"""A model's words, as they come -> sentences with the evidence that they name, and headings. Pure.

Models write Markdown whatever they are told: lists, tables, code, headings, markers in a dozen forms.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from folio.sentences import sentence_spans

# A sentence, and what a model writes between two of them, has this many characters at most.
LONGEST_SENTENCE = 1500

# A marker, as asked for and as models write it: [1], [1, 2], [1][3], [Source 1], [1, p. 4], [^1], 【1†source】
# and within a second pair of brackets: [[1]], ([1])
_NAMED = r"(?:(?:sources?|evidence|passages?|ref\.?)\s*:?\s*)?(?:number\s*)?#?"
_PAGE = r"(?:\b(?:pp?|S)\.|\bpages?)\s?\d+(?:\s?[-–]\s?\d+)?"
_MARKER = re.compile(
    rf"\s*(?P<outer>[\[(])?[\[(]\s*\^?{_NAMED}(?P<numbers>\d{{1,3}}(?:\s*(?:,|;|and|&|-|–)\s*{_NAMED}\d{{1,3}})*)"
    rf"(?:\s*[,:]?\s*{_PAGE}|†[^\]]{{0,40}})?\s*[\])](?(outer)[\])])",
    re.I,
)
_WORDS_OF_MARKER = re.compile(r"(?!and\b)\b[^\W\d]+\.?\s*:?|#", re.I)
_TRAILING_MARKERS = re.compile(rf"(?:{_MARKER.pattern})+", re.I)
# No sentence ends in these, so that a stop in them is none, however few characters of them have come.
_UNBROKEN = r"[^\[\]【】［］〔〕<>.!?…。！？\n]|[.!?…](?=\S)|\bpp?\.\s"
_MAY_VANISH = "[【［〔(<*_`\u200c\u200d"  # how markers, tags and marks of type begin
_OTHER_BRACKETS = re.compile(rf"[【［〔](\s*{_NAMED}\d{{1,3}}\b(?:{_UNBROKEN}){{0,40}})[】］〕]", re.I)
_STUCK = re.compile(rf"(?<=[^\W\d][.!?…])(?=\[(?:\^|{_NAMED})\d{{1,3}}\b(?:{_UNBROKEN}){{0,40}}\])", re.I)
_CUT_MARKER = re.compile(rf"\s*[\[【]\s*{_NAMED}[\d\s,;]*(?=[.!?…]*$)", re.I)
# What looks like a citation of ours or of a paper's page: only the program writes those.
_FORGED = re.compile(
    rf"\s*\[[^\[\]]{{0,80}}(?:{_PAGE}|\.pdf\b)[^\[\]]{{0,20}}\]|\s*\([^()]{{0,80}}(?:{_PAGE}|\.pdf\b[^()]{{0,9}})\)",
    re.I,
)
_EMPTY_BRACKETS = re.compile(r"\s*[(\[]\s*(?:see|source|sources|cf\.?|evidence|from|ref\.?)?\s*:?\s*[)\]]", re.I)
# Code and formulas: x[1] in them is an index.
_VERBATIM = re.compile(r"`[^`]*`|\$(?!\s)[^$]*(?<!\s)\$(?!\d)|\\\(.*?\\\)|\\\[.*?\\\]")
_INDEXED = re.compile(r"(?:^|[^\w])(?:[A-Za-z]|(?!\d+$)\w*[\d_]\w*)$")
# Behind these a number in round brackets is part of a name: Equation (2), step (1)
_NUMBERED = re.compile(
    r"\b(?:eqs?|equations?|steps?|items?|cases?|parts?|tables?|figs?|figures?|sections?|lemmas?|theorems?|rules?|lines?"
    r"|conditions?|phases?|points?|algorithms?|and|or|to)\.?$",
    re.I,
)
# Words that only lead to a marker, which _TAKEN stands for: "According to [1], ...", "[1] states that ...", "see [1]"
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
_SECOND_STOP = re.compile(r"(?<![.\s])(?:\s\.|\.\.)$")
_LIST_ITEM = re.compile(r"(?:(?:[-–•▪‣*+]|#+|\d{1,2}[.)])\s+)+")
_EMPHASIS = re.compile(
    r"(?<![\w*])\*(?=[^\s*])((?:[^*.!?…。！？\n]|[.!?…](?=[^\s*]))+)(?<=\S)\*(?=[^\w*])"
    r"|(?<!\w)__?(?=[^\s_])((?:[^_.!?…。！？\n]|[.!?…](?=[^\s_]))+)(?<=\S)__?(?=\W)"
)
_LINK = re.compile(r"(!)?\[([^\[\]]*)\]\((?:[a-z][\w+.-]*:|www\.|\.{0,2}/|#)[^\s()]*(?:\s+\"[^\"]*\")?\)", re.I)
_TAG = re.compile(
    r"</?(?:(?P<block>p|br|hr|div|ul|ol|li|h[1-6]|tr|table|blockquote|pre)|b|i|u|em|strong|s|sub|sup|small|mark|code|span"
    r"|font|a|img|td|th|evidence|answer)(?:\s(?:[^<>.!?…。！？\n]|[.!?…](?=\S)){0,200})?/?>",
    re.I,
)
# What a model thinks before it answers, where the server does not keep it apart.
_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.I)
_LONGEST_STRING = 2000  # characters of a command to a terminal, such as a link's address
_STRING = rf"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{{0,{_LONGEST_STRING}}}"
_ESCAPES = re.compile(
    rf"(?:\x1b\[|\x9b)[0-?]{{0,99}}[ -/]{{0,9}}[@-~]|{_STRING}(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]{{0,9}}[0-;=-~]"
)
_CUT = re.compile(
    rf"(?:\x1b\[|\x9b)[0-?]{{0,99}}[ -/]{{0,9}}\Z|{_STRING}\x1b?\Z|\x1b[ -/]{{0,9}}\Z|\r\Z"
    r"|<(?:/?(?:t|th|thi|thin|think|thinki|thinkin|thinking)?)\Z",
    re.I,
)
# Joiners of letters in other scripts; beside these characters they only hide something.
_LOST_JOINER = re.compile(r"[\u200c\u200d]+(?=[\x00-\x7f])|(?<=[\x00-\x7f])[\u200c\u200d]+")
_CODE_MARKERS = re.compile(rf"\s+(?:(?:#|//|--|%)\s*)?(?:{_MARKER.pattern})+\s*\.?\s*$", re.I)
_SEPARATOR_ROW = re.compile(r"\|?[\s|:-]*-[\s|:-]*$")
_BOLD_LINE = re.compile(r"\*\*([^*]+)\*\*:?$|__([^_]+)__:?$")
_RULE = re.compile(r"[-=~*_ ]+")
_FENCES = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class Written:
    """A sentence as a model wrote it: its words, and the evidence that its markers name."""

    text: str
    markers: tuple[int, ...]
    cells: tuple[str, ...] = ()  # of a table's row: what belongs together


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading as a model wrote it."""

    text: str


class Draft:
    """What a model has written so far, taken apart as it comes: sentences, rows of tables, lines of code, headings."""

    def __init__(self, count: int) -> None:
        """count: pieces of evidence; a marker names one from 1 to count."""
        self._count = count
        self._cut = ""  # the beginning of what steers a terminal, or of a tag
        self._thinking = False
        self._prose = ""  # sentences that are not yet whole
        self._line = ""  # the beginning of a line, held until it is known what kind of line it is
        self._in_prose = False  # in the middle of a line of prose
        self._in_code = False
        self._rows: list[list[str]] = []  # a table's head, or what may become one
        self._has_head = False

    def feed(self, piece: str) -> list[Written | Heading]:
        """What is whole now."""
        found: list[Written | Heading] = []
        text = self._cut + piece
        begun = _CUT.search(text)
        self._cut = begun.group() if begun else ""
        for line in self._lines(text[: len(text) - len(self._cut)]):
            if self._in_prose:
                self._prose += line
                self._in_prose = not line.endswith("\n")
            else:
                self._line += line
                found += self._begun(line.endswith("\n"))
        return found + self._sentences(complete=False)

    def _lines(self, text: str) -> list[str]:
        """The lines of what is said aloud, without what could steer a terminal."""
        said, start = "", 0
        for tag in _THINKING.finditer(text := _printable(text)):
            said += "" if self._thinking else text[start : tag.start()] + "\n\n"
            self._thinking, start = not tag[1], tag.end()
        said += "" if self._thinking else text[start:]
        return re.findall(r"[^\n]*\n|[^\n]+", said)

    def end(self) -> list[Written | Heading]:
        """What is left, now that nothing follows."""
        found = self.feed("\n") if self._cut.startswith("<") else []
        found += self._begun(True) if self._line else []
        return found + self._row_ended() + self._sentences(complete=True)

    def _begun(self, whole: bool) -> list[Written | Heading]:
        """Take in the line that has begun, as soon as its kind is known."""
        start = self._line.lstrip()
        special = self._in_code or not start or start[0] in "|`#*_>~" or bool(_RULE.fullmatch(start.rstrip()))
        special = special and len(self._line) < LONGEST_SENTENCE
        if special and not whole:
            return []
        line, self._line = self._line, ""
        text = line.strip()
        if text.startswith(">") and special and not self._in_code:  # somebody is quoted
            line = text = text.lstrip("> ") + "\n"
            text = text.strip()
        found: list[Written | Heading] = []
        if not text.startswith("|"):
            found += self._row_ended()
        if text.startswith(_FENCES) and special and text[:3] not in text[3:]:
            self._in_code = not self._in_code
            self._prose += "\n\n"
        elif self._in_code and special:
            found += [*self._sentences(complete=True), *self._code(text)]
        elif text.startswith("|") and special:
            found += [*self._sentences(complete=True), *self._row(text)]
        elif len(text) > 2 and special and _RULE.fullmatch(text):
            self._prose += "\n\n"
        elif whole and special and (heading := take_markers(_heading(text), self._count)[0]):
            found += [*self._sentences(complete=True), Heading(heading)]
        else:
            self._prose += line
            self._in_prose = not whole
        return found

    def _row(self, text: str) -> list[Written | Heading]:
        """Take in a table's row. The first one is its head when a line of dashes follows."""
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        if _SEPARATOR_ROW.match(text):
            self._has_head = len(self._rows) == 1
            return []
        if not self._has_head:
            found = self._row_ended()
            self._rows = [cells]
            return found
        return self._written_row(cells, self._rows[0])

    def _row_ended(self) -> list[Written | Heading]:
        """A first row that no line of dashes follows is a row like the others."""
        rows, has_head = self._rows, self._has_head
        self._rows, self._has_head = [], False
        return self._written_row(rows[0], []) if rows and not has_head else []

    def _written_row(self, cells: list[str], head: list[str]) -> list[Written | Heading]:
        """A row as a sentence: each cell behind the head of its column."""
        bare = [take_markers(_unadorned(_simplified(cell)), self._count) for cell in cells]
        names = [take_markers(_unadorned(_simplified(name)), self._count)[0] for name in head] + [""] * len(cells)
        named = [f"{name}: {text}" if name else text for (text, _), name in zip(bare, names, strict=False) if text]
        markers = dict.fromkeys(marker for _, found in bare for marker in found)
        values = tuple(text for text, _ in bare if text)
        return [Written("; ".join(named), tuple(markers), values)] if named else []

    def _code(self, line: str) -> list[Written | Heading]:
        """A line of code; a marker stands behind it, apart: what is joined to a name is an index."""
        behind = _CODE_MARKERS.search(line)
        text, markers = take_markers(line[behind.start() :], self._count) if behind else ("", ())
        code = (line[: behind.start()] if behind and not text.strip(" .") else line).strip()
        return [Written(code, markers)] if _has_words(code) else []

    def _sentences(self, *, complete: bool) -> list[Written | Heading]:
        found, self._prose = written_sentences(self._prose, self._count, complete=complete)
        return list(found)


def _heading(line: str) -> str:
    """The words of a line that is a heading in Markdown; nothing for other lines, and for a sentence in bold type."""
    if line.startswith("#"):
        words = line.lstrip("#").strip(" *_:")
    else:
        bold = _BOLD_LINE.match(line)
        words = (bold[1] or bold[2]).strip(" :") if bold else ""
    return "" if words.endswith((".", "。")) or (_TRAILING_MARKERS.search(words) and line[0] != "#") else words


def written_sentences(text: str, count: int, *, complete: bool) -> tuple[list[Written], str]:
    """What a model has written so far as sentences with their markers, and the rest that is not yet whole.

    A marker that stands behind the full stop belongs to the sentence before it. With `complete`, nothing is left over.
    Of what is longer than a sentence can be only so much is kept that this is seen.
    """
    text = _simplified(text)
    spans = sentence_spans(text)
    joined: list[list[int]] = []
    for start, end in spans:
        lead = _TRAILING_MARKERS.match(text, start, end)
        if joined and lead:
            joined[-1][1] = lead.end()
            start = lead.end()
        if start < end:
            joined.append([start, end])
    rest = last = len(text)
    if not complete and joined:
        rest = last = joined.pop()[0]  # the next piece may go on with it, or bring its marker
        if joined and text[rest:].lstrip()[0] in _MAY_VANISH:  # perhaps a marker of the sentence before
            rest = joined.pop()[0]
    sentences = [_written(text[start:end], count) for start, end in joined]
    left = text[rest:] if not complete else ""
    if len(text) - last > 2 * LONGEST_SENTENCE:
        left = f"{text[rest : last + LONGEST_SENTENCE + 1]}_{text[-LONGEST_SENTENCE // 2 :]}"
    return [sentence for sentence in sentences if _has_words(sentence.text)], left


def _written(sentence: str, count: int) -> Written:
    if len(sentence) > LONGEST_SENTENCE:
        return Written(re.sub(r"\s", " ", sentence[: LONGEST_SENTENCE + 1]), ())
    text, markers = take_markers(_unadorned(sentence), count)
    if text[:1] in ("*", "_") and text[-1:] == text[:1]:
        text = text[1:-1]
    cells = tuple(cell for cell in map(str.strip, text.split("|")) if re.search(r"\w", cell)) if " | " in text else ()
    return Written(text, markers, cells)


def _has_words(text: str) -> bool:
    return any(char.isalpha() for char in text)


def _printable(text: str) -> str:
    """Without what could steer a terminal, and without what cannot be seen."""
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(char if char.isprintable() or char in "\n\u200c\u200d" else _unseen(char) for char in plain)


def _unseen(char: str) -> str:
    return "" if unicodedata.category(char) == "Cf" else " "


def _simplified(text: str) -> str:
    """Without the marks of bold type, joiners that join nothing and tags of HTML; markers in square brackets, apart."""
    text = _LOST_JOINER.sub("", text.replace("**", "").replace("```", ""))
    text = _EMPHASIS.sub(lambda words: words[1] or words[2], text)
    if "<" in text:
        text = _TAG.sub(lambda tag: "\n\n" if tag["block"] else "", text)
    return _STUCK.sub(" ", _OTHER_BRACKETS.sub(r"[\1]", text))


def _unadorned(sentence: str) -> str:
    """Without the number or bullet of a list item, the marks of type, and where links lead."""
    text = sentence.replace("**", "").strip()
    if item := _LIST_ITEM.match(text):
        text = text[item.end() :]
    text = _LINK.sub(lambda link: "" if link[1] else f"[{link[2]}]" if link[2].isdecimal() else link[2], text)
    return _EMPHASIS.sub(lambda words: words[1] or words[2], f"{text} ").strip()


def take_markers(text: str, count: int) -> tuple[str, tuple[int, ...]]:
    """A sentence without its markers, and the numbers 1..count that they held, each once, in order.

    Round brackets are taken for a marker only at its end, and where neither a year nor the number of an equation could
    be meant. What counts from 0 is an interval, such as [0, 1]; what stands in code or a formula is an index.
    """
    numbers: dict[int, None] = {}
    while (plain := _without_markers(text, count, numbers)) != text:
        text = plain  # what is taken out may leave a marker behind: [[1]2]
    return plain, tuple(numbers)


def _without_markers(text: str, count: int, numbers: dict[int, None]) -> str:
    """One round of it; adds to the numbers."""
    verbatim = [match.span() for match in _VERBATIM.finditer(text)]

    def take(match: re.Match[str]) -> str:
        found = _numbers(match["numbers"])
        if _is_text(match, found) or any(start <= match.start() < end for start, end in verbatim):
            return match.group()
        numbers.update((number, None) for number in found if 1 <= number <= count)
        return _TAKEN

    def _is_text(match: re.Match[str], found: list[int]) -> bool:
        before, behind = text[: match.start()], text[match.end() :]
        if match.group().startswith(("(", " (", "\n(")) and "[" not in match.group():
            closes = not _TRAILING_MARKERS.sub("", behind).strip(" .!?…\"”»)")
            return not closes or not found or max(found) > count or bool(_NUMBERED.search(before))
        if 0 in found and len(found) > 1:
            return True
        return not match.group()[0].isspace() and bool(_INDEXED.search(before)) and bool(behind.strip(" .!?"))

    plain = _TAKEN_TOGETHER.sub(_TAKEN, _MARKER.sub(take, text))
    plain = _ENDS_IN_MARKER.sub("", _LEADS_TO_MARKER.sub("", plain.strip()))
    first = plain.partition(" ")[0]
    if first.isalpha() and first.islower() and len(first) > 1 and not text.lstrip().startswith(first):
        plain = plain[0].upper() + plain[1:]
    plain = _CUT_MARKER.sub("", _FORGED.sub("", plain.replace(_TAKEN, "")))
    plain = " ".join(_EMPTY_BRACKETS.sub("", plain).split())
    return _SECOND_STOP.sub(".", plain)


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in re.split(r"\s*(?:,|;|and|&)\s*", _WORDS_OF_MARKER.sub("", text)):
        first, _, last = re.sub(r"\s*[-–]\s*", "-", part).partition("-")
        if first.isdecimal() and last.isdecimal():
            found.extend(range(int(first), min(int(last), int(first) + 20) + 1))
        elif first.isdecimal():
            found.append(int(first))
    return found
