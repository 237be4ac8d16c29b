"""A model's words, as they come -> sentences with the evidence that they name, and headings. Pure.

Models write Markdown whatever they are told: lists, tables, code, headings, markers in a dozen forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from folio.answer.citation_markers import TRAILING_MARKERS, behind_code, in_square_brackets, take_markers
from folio.answer.markup import CUT_ESCAPE, printable, simplified, unadorned
from folio.text import sentence_spans

# A sentence, and what a model writes between two of them, has this many characters at most.
LONGEST_SENTENCE = 1500
# What is open is looked through again when this part of it is new, and not for each character of a long line.
_NEW_PART = 32
_MAY_VANISH = "[【［〔(<*_`\u200c\u200d"  # how markers, tags and marks of type begin
# What a model thinks before it answers, where the server does not keep it apart.
_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.I)
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
        self._seen = 0  # characters of them that were looked through
        self._line = ""  # the beginning of a line, held until it is known what kind of line it is
        self._in_prose = False  # in the middle of a line of prose
        self._in_code = False
        self._rows: list[list[str]] = []  # a table's head, or what may become one
        self._has_head = False

    def feed(self, piece: str) -> list[Written | Heading]:
        """What is whole now."""
        found: list[Written | Heading] = []
        text = self._cut + piece
        begun = CUT_ESCAPE.search(text)
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
        for tag in _THINKING.finditer(text := printable(text)):
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
        bare = [take_markers(unadorned(_plain(cell)), self._count) for cell in cells]
        names = [take_markers(unadorned(_plain(name)), self._count)[0] for name in head] + [""] * len(cells)
        named = [f"{name}: {text}" if name else text for (text, _), name in zip(bare, names, strict=False) if text]
        markers = dict.fromkeys(marker for _, found in bare for marker in found)
        values = tuple(text for text, _ in bare if text)
        return [Written("; ".join(named), tuple(markers), values)] if named else []

    def _code(self, line: str) -> list[Written | Heading]:
        """A line of code; a marker stands behind it, apart: what is joined to a name is an index."""
        behind = behind_code(line)
        text, markers = take_markers(line[behind:], self._count)
        code = (line if text.strip(" .") else line[:behind]).strip()
        return [Written(code, markers)] if _has_words(code) else []

    def _sentences(self, *, complete: bool) -> list[Written | Heading]:
        if not complete and len(self._prose) - self._seen < len(self._prose) // _NEW_PART:
            return []
        found, self._prose = written_sentences(self._prose, self._count, complete=complete)
        self._seen = len(self._prose)
        return list(found)


def _heading(line: str) -> str:
    """The words of a line that is a heading in Markdown; nothing for other lines, and for a sentence in bold type."""
    if line.startswith("#"):
        words = line.lstrip("#").strip(" *_:")
    else:
        bold = _BOLD_LINE.match(line)
        words = (bold[1] or bold[2]).strip(" :") if bold else ""
    return "" if words.endswith((".", "。")) or (TRAILING_MARKERS.search(words) and line[0] != "#") else words


def written_sentences(text: str, count: int, *, complete: bool) -> tuple[list[Written], str]:
    """What a model has written so far as sentences with their markers, and the rest that is not yet whole.

    A marker that stands behind the full stop belongs to the sentence before it. With `complete`, nothing is left over.
    Of what is longer than a sentence can be only so much is kept that this is seen.
    """
    text = _plain(text)
    spans = sentence_spans(text)
    joined: list[list[int]] = []
    for start, end in spans:
        lead = TRAILING_MARKERS.match(text, start, end)
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
    text, markers = take_markers(unadorned(sentence), count)
    if text[:1] in ("*", "_") and text[-1:] == text[:1]:
        text = text[1:-1]
    cells = tuple(cell for cell in map(str.strip, text.split("|")) if re.search(r"\w", cell)) if " | " in text else ()
    return Written(text, markers, cells)


def _has_words(text: str) -> bool:
    return any(char.isalpha() for char in text)


def _plain(text: str) -> str:
    return in_square_brackets(simplified(text))
