"""A model's streamed output -> sentences with the evidence numbers they name, and headings. Pure.

Models write Markdown whatever the prompt says: lists, tables, code, headings, citation markers in a dozen forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from folio.answer.citation_markers import TRAILING_MARKERS, end_of_code, in_square_brackets, take_markers
from folio.answer.markup import CUT_ESCAPE, printable, simplified, unadorned
from folio.text import sentence_spans

# Characters of a sentence, and of what a model writes between two sentences.
LONGEST_SENTENCE = 1500
# The unfinished text is scanned again once it has grown by this fraction (1/32), and not for every new character.
_NEW_PART = 32
_MAY_VANISH = "[【［〔(<*_`\u200c\u200d"  # how markers, tags and emphasis begin
# A model's reasoning, where the server does not send it separately.
_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.I)
_SEPARATOR_ROW = re.compile(r"\|?[\s|:-]*-[\s|:-]*$")
_BOLD_LINE = re.compile(r"\*\*([^*]+)\*\*:?$|__([^_]+)__:?$")
_RULE = re.compile(r"[-=~*_ ]+")
_FENCES = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    """A sentence as a model wrote it, and the numbers it named."""

    text: str
    markers: tuple[int, ...] = ()  # of pieces of evidence
    cells: tuple[str, ...] = ()  # of a table row, whose values belong together
    support: tuple[int, ...] = ()  # of sentences of the evidence


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading as a model wrote it."""

    text: str


class OutputParser:
    """Parses a model's output while it arrives: sentences, table rows, lines of code, headings."""

    def __init__(self, count: int) -> None:
        """count: pieces of evidence; a marker names one from 1 to count."""
        self._count = count
        self._partial = ""  # the beginning of a terminal escape or a tag
        self._thinking = False
        self._prose = ""  # unfinished sentences
        self._scanned = 0  # characters of the prose that were already scanned
        self._line = ""  # the beginning of a line whose kind is not known yet
        self._in_prose = False  # in the middle of a line of prose
        self._in_code = False
        self._rows: list[list[str]] = []  # a table's header, or what may become one
        self._has_header = False

    def feed(self, piece: str) -> list[ParsedSentence | Heading]:
        """The sentences and headings that this piece completes."""
        found: list[ParsedSentence | Heading] = []
        text = self._partial + piece
        begun = CUT_ESCAPE.search(text)
        self._partial = begun.group() if begun else ""
        for line in self._lines(text[: len(text) - len(self._partial)]):
            if self._in_prose:
                self._add_prose(line)
            else:
                self._line += line
                found += self._take_line(line.endswith("\n"))
        return found + self._sentences(complete=False)

    def _lines(self, text: str) -> list[str]:
        """The lines of the answer, without the model's reasoning and without terminal escapes."""
        answer, start = "", 0
        for tag in _THINKING.finditer(text := printable(text)):
            answer += "" if self._thinking else text[start : tag.start()] + "\n\n"
            self._thinking, start = not tag[1], tag.end()
        answer += "" if self._thinking else text[start:]
        return re.findall(r"[^\n]*\n|[^\n]+", answer)

    def end(self, *, cut: bool = False) -> list[ParsedSentence | Heading]:
        """What is left at the end of the output; nothing if it was cut off there."""
        if cut:
            return []
        found = self.feed("\n") if self._partial.startswith("<") else []
        found += self._take_line(True) if self._line else []
        return found + self._end_table() + self._sentences(complete=True)

    def _take_line(self, complete: bool) -> list[ParsedSentence | Heading]:
        """Take in the current line as soon as its kind is known."""
        start = self._line.lstrip()
        special = self._in_code or not start or start[0] in "|`#*_>~" or bool(_RULE.fullmatch(start.rstrip()))
        special = special and len(self._line) < LONGEST_SENTENCE
        if special and not complete:
            return []
        line, self._line = self._line, ""
        text = line.strip()
        if text.startswith(">") and special and not self._in_code:  # a block quote
            line = text = text.lstrip("> ") + "\n"
            text = text.strip()
        found: list[ParsedSentence | Heading] = []
        if not text.startswith("|"):
            found += self._end_table()
        if text.startswith(_FENCES) and special and text[:3] not in text[3:]:
            self._in_code = not self._in_code
            self._prose += "\n\n"
        elif self._in_code and special:
            found += [*self._sentences(complete=True), *self._code(text)]
        elif text.startswith("|") and special:
            found += [*self._sentences(complete=True), *self._row(text)]
        elif len(text) > 2 and special and _RULE.fullmatch(text):
            self._prose += "\n\n"
        elif complete and special and (heading := take_markers(_heading(text), self._count)[0]):
            found += [*self._sentences(complete=True), Heading(heading)]
        else:
            self._add_prose(line)
        return found

    def _add_prose(self, line: str) -> None:
        """Models do not wrap lines: the end of one ends a sentence or a step, with a full stop or without."""
        self._in_prose = not line.endswith("\n")
        self._prose += line if self._in_prose else f"{line}\n"

    def _row(self, text: str) -> list[ParsedSentence | Heading]:
        """Take in a table row. The first one is the header if a line of dashes follows."""
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        if _SEPARATOR_ROW.match(text):
            self._has_header = len(self._rows) == 1
            return []
        if not self._has_header:
            found = self._end_table()
            self._rows = [cells]
            return found
        return self._parse_row(cells, self._rows[0])

    def _end_table(self) -> list[ParsedSentence | Heading]:
        """A first row without a line of dashes after it is an ordinary row."""
        rows, has_header = self._rows, self._has_header
        self._rows, self._has_header = [], False
        return self._parse_row(rows[0], []) if rows and not has_header else []

    def _parse_row(self, cells: list[str], header: list[str]) -> list[ParsedSentence | Heading]:
        """A row as a sentence: each cell after the name of its column."""
        bare = [take_markers(unadorned(_plain(cell)), self._count) for cell in cells]
        names = [take_markers(unadorned(_plain(name)), self._count)[0] for name in header] + [""] * len(cells)
        named = [f"{name}: {text}" if name else text for (text, _), name in zip(bare, names, strict=False) if text]
        markers = dict.fromkeys(marker for _, found in bare for marker in found)
        values = tuple(text for text, _ in bare if text)
        return [ParsedSentence("; ".join(named), tuple(markers), values)] if named else []

    def _code(self, line: str) -> list[ParsedSentence | Heading]:
        """A line of code. A marker comes after it, with a space between: right after a name it is an index."""
        end = end_of_code(line)
        text, markers = take_markers(line[end:], self._count)
        code = (line if text.strip(" .") else line[:end]).strip()
        return [ParsedSentence(code, markers)] if _has_words(code) else []

    def _sentences(self, *, complete: bool) -> list[ParsedSentence | Heading]:
        if not complete and len(self._prose) - self._scanned < len(self._prose) // _NEW_PART:
            return []
        found, self._prose = parse_sentences(self._prose, self._count, complete=complete)
        self._scanned = len(self._prose)
        return list(found)


def _heading(line: str) -> str:
    """The words of a Markdown heading; "" for any other line, and for a sentence in bold."""
    if line.startswith("#"):
        words = line.lstrip("#").strip(" *_:")
    else:
        bold = _BOLD_LINE.match(line)
        words = (bold[1] or bold[2]).strip(" :") if bold else ""
    return "" if words.endswith((".", "。")) or (TRAILING_MARKERS.search(words) and line[0] != "#") else words


def parse_sentences(text: str, count: int, *, complete: bool) -> tuple[list[ParsedSentence], str]:
    """The finished sentences of a text with their markers, and the unfinished rest; "" if the text is complete.

    A marker after the full stop belongs to the sentence before it. A rest that is too long for a sentence is shortened,
    and stays too long.
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
        rest = last = joined.pop()[0]  # the next piece may continue it, or bring its marker
        if joined and text[rest:].lstrip()[0] in _MAY_VANISH:  # perhaps a marker of the sentence before
            rest = joined.pop()[0]
    sentences = [_parse(text[start:end], count) for start, end in joined]
    left = text[rest:] if not complete else ""
    if len(text) - last > 2 * LONGEST_SENTENCE:
        left = f"{text[rest : last + LONGEST_SENTENCE + 1]}_{text[-LONGEST_SENTENCE // 2 :]}"
    return [sentence for sentence in sentences if _has_words(sentence.text)], left


def _parse(sentence: str, count: int) -> ParsedSentence:
    if len(sentence) > LONGEST_SENTENCE:
        return ParsedSentence(re.sub(r"\s", " ", sentence[: LONGEST_SENTENCE + 1]), ())
    text, markers = take_markers(unadorned(sentence), count)
    if text[:1] in ("*", "_") and text[-1:] == text[:1]:
        text = text[1:-1]
    cells = tuple(cell for cell in map(str.strip, text.split("|")) if re.search(r"\w", cell)) if " | " in text else ()
    return ParsedSentence(text, markers, cells)


def _has_words(text: str) -> bool:
    return any(char.isalpha() for char in text)


def _plain(text: str) -> str:
    return in_square_brackets(simplified(text))
