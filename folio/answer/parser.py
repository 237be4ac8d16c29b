"""A model's output as it streams -> statements and headings, from JSON (`StatementParser`) or prose (`OutputParser`).

    {"statements": [{"support": [27, 28], "statement": "..."}], "answered": true}

`support` comes first, so that a model chooses its sentences before it writes the statement. Its items are an
enumeration of the existing numbers, and its grammar allows no others. Prose comes as Markdown whatever the prompt
says: lists, tables, code, headings, citation markers in a dozen forms. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import loads
from typing import Any

from folio.answer.loose_json import CutText, LooseReader
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
from folio.answer.tex import plain_tex
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
_NAMED = r"""["'“„‘`]?(?:statements?|support|answered|part|heading)["'“”’`]?\s*[:=]"""
_JSON = re.compile(rf"\{{\s*{_NAMED}|\[\s*\{{\s*{_NAMED}|(?<=```json)\s*[\[{{]", re.I)
_BARE_JSON = re.compile(r"\{|\[\s*(?:\{|\])")
_ELEMENT = re.compile(  # of XML: <statement support="6">...</statement>
    r"""<(\w{1,20})\s[^<>]{0,80}?\b(?:support|sentences?|source|ref)s?=["']([\d,\s]{1,40})["'][^<>]{0,80}>([^<>]*)</\1>"""
)
_SUPPORT = re.compile(r"(?<![\w.])[A-Za-z]?(\d{1,4})(?![\w.])")
_SQUARE = re.compile(r"[\[【［〔]")
_LONGEST_SUPPORT = 60  # characters of a text that names sentences
_OPENING = re.compile(r"""[\[{]\s*(?:\{\s*)?["'“„‘`]""")  # of JSON, not a brace that prose begins with
_NOTHING = re.compile(r"\W*(?:null|none|nil|undefined|true|false)?\W*", re.I)
_MARKED = re.compile(r"\[\s*\^?\d")  # a sentence of prose that names evidence
_LONGEST_LEAD = 400  # characters before the JSON; more is prose
_LEAST_WORDS = 4  # of a text without a known name that is a statement
_SENTENCE_END = re.compile(r"(?:[^\d\s][.!?…]|[。！？])[\"'”’)\]]*$")

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
    quote: str = ""  # what the model copied for it, as it wrote it
    is_copy: bool = False  # it is a whole answer, whose quote is to be shown if none of its sentences is


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading as a model wrote it."""

    text: str


def schema(sentences: int, style: Style) -> dict[str, Any]:
    """The JSON Schema of an answer. sentences: number of sentences of the evidence.

    No schema limits the length of a text: some servers make a rule of grammar of each character, and fail.
    """
    support = {
        "type": "array",
        "items": {"type": "integer", "enum": list(range(1, sentences + 1))},
        "minItems": 1,
        "maxItems": MOST_SUPPORT,
    }
    properties: dict[str, Any] = {}
    if style == "report":
        properties["part"] = {"type": "string", "enum": list(PARTS)}
        properties["heading"] = {"type": "string"}
    properties |= {"support": support, "statement": {"type": "string"}}
    statements = {"type": "array", "items": object_schema(**properties), "maxItems": MOST_STATEMENTS[style]}
    return object_schema(statements=statements, answered={"type": "boolean"})


def object_schema(**fields: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these fields, all required."""
    return {"type": "object", "properties": fields, "required": list(fields)}


class StatementParser:
    """Parses a JSON answer while it arrives.

    JSON with words before it is only read at the end: until then the words may be a thought without an opening tag.
    """

    def __init__(self, sentences: int, style: Style = "plain") -> None:
        """sentences: number of sentences of the evidence; higher numbers are ignored."""
        self._count = sentences
        # What the schema has before a statement
        self._first = ("support", "part", "heading") if style == "report" else ("support",)
        self._text = ""
        self._begin: int | None = None  # where the JSON begins; None until that is known
        self._json = LooseReader()
        self._read = 0  # how much of the text the reader has
        self._root = 0  # the object that is being read
        self._returned = 0  # its statements so far
        self._has_said = False  # whether there was a statement
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
        parts: list[ParsedSentence | Heading] = []
        self._read = max(self._read, self._begin or 0)
        for end in (at + 1 for at in range(start, len(self._text)) if self._text[at] == "}"):
            self._json.feed(self._text[self._read : end])
            self._read = end
            parts += self._new(whole=True)
        return parts

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
        answer = self._text[_end_of_thoughts(self._text) :]
        if text := _in_a_string(answer):
            inner = StatementParser(self._count)
            return [*inner.feed(text), *inner.end(cut=cut)]
        return self._prose(answer, cut=cut)

    def _prose(self, text: str, *, cut: bool) -> list[ParsedSentence | Heading]:
        if _NOTHING.fullmatch(text):
            return []
        prose = OutputParser(self._count)
        parts = [*prose.feed(_ELEMENT.sub(r"\n\n\3 [\2]\n\n", text)), *prose.end(cut=cut)]
        return [  # the markers of prose are numbers of sentences here
            part if isinstance(part, Heading) else ParsedSentence(part.text, support=part.markers, cells=part.cells)
            for part in parts
        ]

    def end(self, *, cut: bool = False) -> list[ParsedSentence | Heading]:
        """The rest at the end of the output, even if the JSON breaks off.

        If the output was cut off, a statement whose object is not closed is left out unless its text is whole, behind
        its support and its part of the answer. Otherwise a text without its closing quote gives its whole sentences.

        If there was no statement under the names that the prompt gives, those under others are taken, and the texts of
        objects without one. If the model says that the question is not answered, the last part is the refusal.
        """
        parts = self._read_rest(cut=cut) if self._begin is None else []
        if self._begin is None:
            return parts
        self._json.feed(self._text[self._read :])
        self._json.end()
        parts += self._new(whole=cut, cut=cut)
        answered = [root["answered"] for root in self._json.roots if isinstance(root, dict) and "answered" in root]
        if not (self._has_said or cut):
            parts += [part for each in _deep_statements(self._json.roots) for part in self._statement(each)]
        if not (self._has_said or any(self._json.roots) or _OPENING.match(self._text, self._begin)):
            parts += self._prose(self._text[self._begin :], cut=cut)
        return [*parts, *([ParsedSentence(REFUSAL)] if answered and answered[-1] is False else [])]

    def _new(self, *, whole: bool, cut: bool = False) -> Iterator[ParsedSentence | Heading]:
        """The statements that were not returned yet. whole: only those whose object is closed. cut: no text follows."""
        while self._root < len(self._json.roots):
            root = self._json.roots[self._root]
            statements = _statements(root)
            for each in statements[self._returned :]:
                if whole and self._json.is_open(each) and not (cut and self._is_told(each)):
                    return
                self._returned += 1
                yield from self._statement(each)
            if self._json.is_open(root):
                return
            self._root, self._returned = self._root + 1, 0

    def _is_told(self, each: Any) -> bool:
        """Whether an object that is not closed has all that the schema asks for."""
        names = (*self._first, "statement")
        return isinstance(each, dict) and all(name in each and not isinstance(each[name], CutText) for name in names)

    def _statement(self, each: Any) -> Iterator[ParsedSentence | Heading]:
        each = {"statement": each} if isinstance(each, str) else each
        if not isinstance(each, dict):
            return
        part, heading = (str(each[name]) if isinstance(each.get(name), str) else "" for name in ("part", "heading"))
        if part in PARTS and (part, heading) != self._heading:
            self._heading = (part, heading)
            yield Heading(part)
            if part == "analysis" and (words := self._cleaned(one_line(printable(heading)))[0]):
                yield Heading(words)
        text = each.get("statement")
        if not isinstance(text, str):
            return
        text, marked = self._cleaned(printable(_whole_sentences(text) if isinstance(text, CutText) else text).strip())
        if any(char.isalnum() for char in text):
            self._has_said = True
            support = _numbers(each.get("support"))
            # "(3)" behind a statement with its support is a reference of the paper's own
            marked = marked if not support or _SQUARE.search(str(each["statement"])) else ()
            named = dict.fromkeys(n for n in (*support, *marked) if 1 <= n <= self._count)
            yield ParsedSentence(text, support=tuple(named))

    def _cleaned(self, text: str) -> tuple[str, tuple[int, ...]]:
        """A statement without emphasis and markers; steps, tables and code keep their form."""
        if "\n" not in text and "`" not in text:
            text, markers = take_markers(unadorned(_plain(text)), self._count)
            return plain_tex(text), markers
        marked: list[int] = []
        lines = []
        for line in text.splitlines():
            end = end_of_code(line)
            marked += take_markers(line[end:], self._count)[1]
            lines.append(line[:end])
        return "\n".join(lines if "`" in text else map(plain_tex, lines)), tuple(marked)


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


def _statements(answer: Any) -> list[Any]:
    """The statements of an object of the form that the prompt gives, of a list of them, or of one of them."""
    if isinstance(answer, list):
        return answer if any(isinstance(each, dict) and "statement" in each for each in answer) else []
    if "statements" in answer:
        return _as_list(answer["statements"])
    return [answer] if "statement" in answer else []


def _deep_statements(value: Any) -> list[Any]:
    """The statements within objects of other names; if there are none, the texts, each with its object's numbers."""
    return _named_within(value) or list(_texts_within(value))


def _named_within(value: Any) -> list[Any]:
    if isinstance(value, dict | list) and (found := _statements(value)):
        return found
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for each in inner if (found := _named_within(each))), [])


def _texts_within(value: Any) -> Iterator[dict[str, Any]]:
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(each, str) and len(each.split()) >= _LEAST_WORDS:
            yield {"statement": each, "support": [*value.values()] if isinstance(value, dict) else []}
        else:
            yield from _texts_within(each)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _numbers(support: Any) -> list[int]:
    """The sentences that a model names, as numbers or in texts: [6], "6", "[2]", "S3", 6.0."""
    if isinstance(support, str):
        return [int(number) for number in _SUPPORT.findall(support)] if len(support) < _LONGEST_SUPPORT else []
    if isinstance(support, list):
        return [number for each in support for number in _numbers(each)]
    return [int(support)] if type(support) in (int, float) and support == support // 1 else []


def _whole_sentences(text: str) -> str:
    """A text that was cut off, up to the end of its last whole sentence."""
    spans = list(sentence_spans(text))
    while spans and not _SENTENCE_END.search(text[: spans[-1][1]].rstrip()):
        spans.pop()
    return text[: spans[-1][1]] if spans else ""


def _in_a_string(text: str) -> str:
    """The JSON in a reply that is one string of JSON; "" for any other."""
    try:
        value = loads(text.strip()) if text.lstrip().startswith('"{') else ""
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


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
    return ParsedSentence(plain_tex(text), markers, cells)


def _plain(text: str) -> str:
    return in_square_brackets(simplified(text))
