"""A model's output as it streams -> statements and headings, from JSON (`StatementParser`) or prose (`OutputParser`).

    {"statements": [{"support": [27, 28], "statement": "..."}], "answered": true}

`support` comes first, so that a model chooses its sentences before it writes the statement. Its items are an
enumeration of the existing numbers, and Ollama's grammar allows no others. Prose comes as Markdown whatever the prompt
says: lists, tables, code, headings, citation markers in a dozen forms. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecoder
from typing import Any

from pydantic_core import from_json

from folio.answer.markers import (
    CUT_ESCAPE,
    TRAILING_MARKERS,
    end_of_code,
    in_square_brackets,
    printable,
    simplified,
    take_markers,
    unadorned,
)
from folio.answer_types import REFUSAL, Style
from folio.text import one_line, sentence_spans

MOST_STATEMENTS = {"plain": 8, "report": 24}
MOST_SUPPORT = 12  # sentences for one statement; each step of a procedure is one
PARTS = ("summary", "analysis")  # of a report
# Before the JSON: a thought, whose opening tag may be missing, and a fence
_OPEN_THOUGHT = re.compile(r"<think(?:ing)?>", re.I)
_THOUGHT_END = re.compile(r"</think(?:ing)?>", re.I)
_FENCE = re.compile(r"```(?:json)?\s*", re.I)
_BEGINNINGS = ("```json", "<think>", "<thinking>")
# The start of JSON after words: an object, or a bare list of statements
_LIST = r"""\[\s*\{\s*"(?:part|heading|support|statement)\""""
_JSON = re.compile(rf"""\{{\s*"(?:statements|answered)"|{_LIST}""")
_BARE_JSON = re.compile(rf"\{{|{_LIST}")
_MARKED = re.compile(r"\[\s*\^?\d")  # a sentence of prose that names evidence
_LONGEST_LEAD = 400  # characters before the JSON; more is prose
_DECODER = JSONDecoder(strict=False)  # strings with line breaks, as models write them without a schema

# Prose
LONGEST_SENTENCE = 1500  # characters, also of the text between two sentences
_NEW_PART = 32  # unfinished text is scanned again once 1/32 of it is new, not for every new character
_MAY_VANISH = "[【［〔(<*_`\u200c\u200d"  # how markers, tags and emphasis begin
# A model's reasoning, if the server does not send it separately
_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.I)
_SEPARATOR_ROW = re.compile(r"\|?[\s|:-]*-[\s|:-]*$")
_BOLD_LINE = re.compile(r"\*\*([^*]+)\*\*:?$|__([^_]+)__:?$")
_RULE = re.compile(r"[-=~*_ ]+")
_FENCES = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    """A sentence as a model wrote it, with the numbers it names."""

    text: str
    markers: tuple[int, ...] = ()  # of pieces of evidence
    cells: tuple[str, ...] = ()  # of a table row, whose values belong together
    support: tuple[int, ...] = ()  # of sentences of the evidence


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading as a model wrote it."""

    text: str


def schema(sentences: int, style: Style) -> dict[str, Any]:
    """The JSON Schema of an answer. sentences: number of sentences of the evidence."""
    support = {
        "type": "array",
        "items": {"type": "integer", "enum": list(range(1, sentences + 1))},
        "minItems": 1,
        "maxItems": MOST_SUPPORT,
    }
    properties: dict[str, Any] = {}
    if style == "report":
        properties["part"] = {"type": "string", "enum": list(PARTS)}
        properties["heading"] = {"type": "string", "maxLength": 80}
    properties |= {"support": support, "statement": {"type": "string", "maxLength": LONGEST_SENTENCE}}
    statements = {"type": "array", "items": object_schema(**properties), "maxItems": MOST_STATEMENTS[style]}
    return object_schema(statements=statements, answered={"type": "boolean"})


def object_schema(**fields: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these fields, all required."""
    return {"type": "object", "properties": fields, "required": list(fields)}


class StatementParser:
    """Parses a JSON answer while it arrives.

    JSON with words before it is only read at the end: until then the words may be a thought without an opening tag.
    """

    def __init__(self, sentences: int) -> None:
        """sentences: number of sentences of the evidence; higher numbers are ignored."""
        self._count = sentences
        self._text = ""
        self._begin: int | None = None  # where the JSON begins; None until that is known
        self._returned = 0  # statements so far
        self._heading = ("", "")

    def feed(self, piece: str) -> list[ParsedSentence | Heading]:
        """The statements and headings that this piece completes."""
        piece = piece.encode("utf-8", "replace").decode()  # no lone surrogates
        before = len(self._text)
        self._text += piece
        if self._begin is None:
            start = _start_of_answer(self._text)
            self._begin = start if start is not None and _BARE_JSON.match(self._text, start) else None
        return [] if self._begin is None else self._read_json(max(before, self._begin))

    def _read_json(self, start: int) -> list[ParsedSentence | Heading]:
        """What the text from `start` on completes. Reads up to each brace, so that it does not depend on the pieces."""
        ends = [at + 1 for at in range(start, len(self._text)) if self._text[at] == "}"]
        return [part for end in ends for part in self._closed(self._text[self._begin : end])]

    def _read_rest(self, *, cut: bool) -> list[ParsedSentence | Heading]:
        """A whole reply that does not begin with JSON: JSON after a few words without markers, or prose."""
        start = _start_of_answer(self._text)
        if start is None:
            return []
        lead = self._text[start : start + _LONGEST_LEAD]
        marker, json = _MARKED.search(lead), _JSON.search(lead)
        if json and not (marker and marker.end() <= json.end()):
            self._begin = start + json.start()
            return self._read_json(self._begin)
        prose = OutputParser(self._count)
        parts = [*prose.feed(self._text[_end_of_thoughts(self._text) :]), *prose.end(cut=cut)]
        return [  # the markers of prose are numbers of sentences here
            part if isinstance(part, Heading) else ParsedSentence(part.text, support=part.markers, cells=part.cells)
            for part in parts
        ]

    def end(self, *, cut: bool = False) -> list[ParsedSentence | Heading]:
        """The rest at the end of the output: the whole statements, even if the JSON breaks off.

        If the output was cut off, a statement whose object is not closed is left out: its part of the answer may be
        missing. If the model says that the question is not answered, the last part is the refusal.
        """
        parts = self._read_rest(cut=cut) if self._begin is None else []
        if self._begin is None:
            return parts
        answer, is_whole = _read(self._text[self._begin :])
        statements = _statements(answer)
        if cut and not is_whole:
            statements = self._closed_ones(self._text[self._begin :], statements)
        refusal = [ParsedSentence(REFUSAL)] if answer.get("answered") is False else []
        return [*parts, *self._new(statements), *refusal]

    def _closed(self, json: str) -> Iterator[ParsedSentence | Heading]:
        """The new statements of the answer so far; its last brace may close the last statement."""
        answer, is_whole = _read(json)
        statements = _statements(answer)
        if len(statements) > self._returned:
            yield from self._new(statements if is_whole else self._closed_ones(json, statements))

    def _closed_ones(self, json: str, statements: list[Any]) -> list[Any]:
        """The statements of an unfinished answer without the last one if its object is not closed."""
        is_closed = len(_statements(_read(f"{json},{{}}")[0])) > len(statements)
        return statements if is_closed else statements[:-1]

    def _new(self, statements: list[Any]) -> Iterator[ParsedSentence | Heading]:
        for each in statements[self._returned :]:
            if isinstance(each, dict):
                yield from self._statement(each)
        self._returned = max(self._returned, len(statements))

    def _statement(self, each: dict[str, Any]) -> Iterator[ParsedSentence | Heading]:
        part, heading = (str(each[name]) if isinstance(each.get(name), str) else "" for name in ("part", "heading"))
        if part in PARTS and (part, heading) != self._heading:
            self._heading = (part, heading)
            yield Heading(part)
            if part == "analysis" and (words := self._cleaned(one_line(printable(heading)))[0]):
                yield Heading(words)
        text, support = each.get("statement"), each.get("support")
        if not isinstance(text, str):
            return
        numbers = [n for n in support if type(n) is int] if isinstance(support, list) else []
        text, marked = self._cleaned(printable(text).strip())
        if any(char.isalnum() for char in text):
            named = dict.fromkeys(number for number in (*numbers, *marked) if 1 <= number <= self._count)
            yield ParsedSentence(text, support=tuple(named))

    def _cleaned(self, text: str) -> tuple[str, tuple[int, ...]]:
        """A statement without emphasis and markers; steps, tables and code keep their form."""
        if "\n" not in text and "`" not in text:
            return take_markers(unadorned(_plain(text)), self._count)
        marked: list[int] = []
        lines = []
        for line in text.splitlines():
            end = end_of_code(line)
            marked += take_markers(line[end:], self._count)[1]
            lines.append(line[:end])
        return "\n".join(lines), tuple(marked)


def _end_of_thoughts(text: str) -> int:
    """Where the thoughts before an answer end. A tag within its JSON does not count."""
    end = 0
    while not _BARE_JSON.match(text, _after_fence(text, end)) and (closing := _THOUGHT_END.search(text, end)):
        end = closing.end()
    return end


def _after_fence(text: str, start: int) -> int:
    start += len(text[start:]) - len(text[start:].lstrip())
    fence = _FENCE.match(text, start)
    return fence.end() if fence else start


def _start_of_answer(text: str) -> int | None:
    """Where the answer begins, after thoughts and a fence. None if that is not known yet."""
    end = _end_of_thoughts(text)
    rest = text[end:].lstrip()
    if _OPEN_THOUGHT.match(rest) or any(each.startswith(rest.lower()) for each in _BEGINNINGS):
        return None
    start = _after_fence(text, end)
    return start if start < len(text) else None


def _read(json: str) -> tuple[dict[str, Any], bool]:
    """The object that a text begins with, and whether it is whole. One that breaks off has its whole values."""
    try:
        value, is_whole = _DECODER.raw_decode(json)[0], True  # ignores what follows the object
    except (ValueError, RecursionError):
        is_whole = False
        try:
            value = from_json(json, allow_partial=True)
        except ValueError:  # half a token, or no JSON after all
            value = {}
    if isinstance(value, list):  # a bare list of statements
        value = {"statements": value}
    return (value, is_whole) if isinstance(value, dict) else ({}, False)


def _statements(answer: dict[str, Any]) -> list[Any]:
    statements = answer.get("statements", [answer] if "statement" in answer else [])
    return statements if isinstance(statements, list) else []


class OutputParser:
    """Parses prose while it arrives: sentences, table rows, lines of code, headings."""

    def __init__(self, count: int) -> None:
        """count: number of pieces of evidence; markers are from 1 to count."""
        self._count = count
        self._partial = ""  # the beginning of a terminal escape or a tag
        self._thinking = False
        self._prose = ""  # unfinished sentences
        self._scanned = 0  # characters of the prose
        self._line = ""  # an unfinished line whose kind is not known yet
        self._in_prose = False  # in the middle of a line of prose
        self._in_code = False
        self._rows: list[list[str]] = []  # a table's header, or its first row
        self._has_header = False

    def feed(self, piece: str) -> list[ParsedSentence | Heading]:
        """The sentences and headings that this piece completes."""
        parts: list[ParsedSentence | Heading] = []
        text = self._partial + piece
        begun = CUT_ESCAPE.search(text)
        self._partial = begun.group() if begun else ""
        for line in self._lines(text[: len(text) - len(self._partial)]):
            if self._in_prose:
                self._add_prose(line)
            else:
                self._line += line
                parts += self._take_line(line.endswith("\n"))
        return parts + self._sentences(complete=False)

    def _lines(self, text: str) -> list[str]:
        """The lines of the answer, without the model's reasoning and without terminal escapes."""
        answer, start = "", 0
        for tag in _THINKING.finditer(text := printable(text)):
            answer += "" if self._thinking else text[start : tag.start()] + "\n\n"
            self._thinking, start = not tag[1], tag.end()
        answer += "" if self._thinking else text[start:]
        return re.findall(r"[^\n]*\n|[^\n]+", answer)

    def end(self, *, cut: bool = False) -> list[ParsedSentence | Heading]:
        """The rest at the end of the output; nothing if the output was cut off."""
        if cut:
            return []
        parts = self.feed("\n") if self._partial.startswith("<") else []
        parts += self._take_line(True) if self._line else []
        return parts + self._end_table() + self._sentences(complete=True)

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
        parts: list[ParsedSentence | Heading] = []
        if not text.startswith("|"):
            parts += self._end_table()
        if text.startswith(_FENCES) and special and text[:3] not in text[3:]:
            self._in_code = not self._in_code
            self._prose += "\n\n"
        elif self._in_code and special:
            parts += [*self._sentences(complete=True), *self._code(text)]
        elif text.startswith("|") and special:
            parts += [*self._sentences(complete=True), *self._row(text)]
        elif len(text) > 2 and special and _RULE.fullmatch(text):
            self._prose += "\n\n"
        elif complete and special and (heading := take_markers(_heading(text), self._count)[0]):
            parts += [*self._sentences(complete=True), Heading(heading)]
        else:
            self._add_prose(line)
        return parts

    def _add_prose(self, line: str) -> None:
        """Models do not wrap lines, so the end of a line ends a sentence or a step even without a full stop."""
        self._in_prose = not line.endswith("\n")
        self._prose += line if self._in_prose else f"{line}\n"

    def _row(self, text: str) -> list[ParsedSentence | Heading]:
        """Take in a table row. The first one is the header if a line of dashes follows."""
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        if _SEPARATOR_ROW.match(text):
            self._has_header = len(self._rows) == 1
            return []
        if not self._has_header:
            parts = self._end_table()
            self._rows = [cells]
            return parts
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
        markers = dict.fromkeys(marker for _, own in bare for marker in own)
        values = tuple(text for text, _ in bare if text)
        return [ParsedSentence("; ".join(named), tuple(markers), values)] if named else []

    def _code(self, line: str) -> list[ParsedSentence | Heading]:
        """A line of code. A marker follows after a space; directly after a name, brackets are an index."""
        end = end_of_code(line)
        text, markers = take_markers(line[end:], self._count)
        code = (line if text.strip(" .") else line[:end]).strip()
        return [ParsedSentence(code, markers)] if any(map(str.isalpha, code)) else []

    def _sentences(self, *, complete: bool) -> list[ParsedSentence | Heading]:
        if not complete and len(self._prose) - self._scanned < len(self._prose) // _NEW_PART:
            return []
        parts, self._prose = parse_sentences(self._prose, self._count, complete=complete)
        self._scanned = len(self._prose)
        return list(parts)


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

    A marker after the full stop belongs to the sentence before it. A rest that is too long for a sentence is shortened
    but stays too long.
    """
    text = _plain(text)
    joined: list[list[int]] = []
    for start, end in sentence_spans(text):
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
    return [sentence for sentence in sentences if any(map(str.isalpha, sentence.text))], left


def _parse(sentence: str, count: int) -> ParsedSentence:
    if len(sentence) > LONGEST_SENTENCE:
        return ParsedSentence(re.sub(r"\s", " ", sentence[: LONGEST_SENTENCE + 1]), ())
    text, markers = take_markers(unadorned(sentence), count)
    if text[:1] in ("*", "_") and text[-1:] == text[:1]:
        text = text[1:-1]
    cells = tuple(cell for cell in map(str.strip, text.split("|")) if re.search(r"\w", cell)) if " | " in text else ()
    return ParsedSentence(text, markers, cells)


def _plain(text: str) -> str:
    return in_square_brackets(simplified(text))
