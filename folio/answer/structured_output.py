"""A model's answer as JSON -> its statements, while it streams. What turns out to be prose is read as prose. Pure.

    {"statements": [{"support": [27, 28], "statement": "..."}], "answered": true}

`support` comes first, so that a model chooses its sentences before it writes what follows from them. Its items are an
enumeration of the numbers that exist, and Ollama's grammar lets a model write no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import Any

from pydantic_core import from_json

from folio.answer.citation_markers import end_of_code, in_square_brackets, take_markers
from folio.answer.markup import printable, simplified, unadorned
from folio.answer.output_parser import Heading, OutputParser, ParsedSentence
from folio.answer_types import REFUSAL, Style
from folio.text import one_line

MOST_STATEMENTS = {"plain": 8, "report": 24}
MOST_SUPPORT = 12  # sentences that a model may name for one statement; each step of a procedure is one
LONGEST_STATEMENT = 1500  # characters
PARTS = ("summary", "analysis")  # of a report
# What may come before the JSON, and the beginning of it: a thought, whose opening tag may be missing, and a fence
_OPEN_THOUGHT = re.compile(r"<think(?:ing)?>", re.I)
_THOUGHT_END = re.compile(r"</think(?:ing)?>", re.I)
_FENCE = re.compile(r"```(?:json)?\s*", re.I)
_BEGINNINGS = ("```json", "<think>", "<thinking>")
# Where the JSON begins behind words: an object, or a list of statements alone
_LIST = r"""\[\s*\{\s*"(?:part|heading|support|statement)\""""
_JSON = re.compile(rf"""\{{\s*"(?:statements|answered)"|{_LIST}""")
_BARE_JSON = re.compile(rf"\{{|{_LIST}")
_MARKED = re.compile(r"\[\s*\^?\d")  # a sentence of prose that names evidence
_LONGEST_LEAD = 400  # characters that a model may write before its JSON; more is prose
_DECODER = JSONDecoder(strict=False)  # strings with line breaks, as models write them without a schema


def schema(sentences: int, style: Style) -> dict[str, Any]:
    """The JSON Schema of an answer over evidence of so many sentences."""
    support = {
        "type": "array",
        "items": {"type": "integer", "enum": list(range(1, sentences + 1))},
        "minItems": 1,
        "maxItems": MOST_SUPPORT,
    }
    properties: dict[str, Any] = {}
    if style == "report":
        properties |= {
            "part": {"type": "string", "enum": list(PARTS)},
            "heading": {"type": "string", "maxLength": 80},
        }
    properties |= {"support": support, "statement": {"type": "string", "maxLength": LONGEST_STATEMENT}}
    statement = {"type": "object", "properties": properties, "required": list(properties)}
    statements = {"type": "array", "items": statement, "maxItems": MOST_STATEMENTS[style]}
    return {
        "type": "object",
        "properties": {"statements": statements, "answered": {"type": "boolean"}},
        "required": ["statements", "answered"],
    }


class StatementParser:
    """Parses an answer while it arrives.

    JSON is read as soon as it stands alone, and what has words before it at the end: until then those may be a thought,
    of a model whose template wrote the tag that begins it.
    """

    def __init__(self, sentences: int) -> None:
        """sentences: how many the evidence has; other numbers are ignored."""
        self._count = sentences
        self._text = ""
        self._begin: int | None = None  # where the JSON begins; None as long as that is not known
        self._given = 0  # statements returned so far
        self._heading = ("", "")

    def feed(self, piece: str) -> list[ParsedSentence | Heading]:
        """The statements and headings that this piece completes."""
        piece = piece.encode("utf-8", "replace").decode()  # half of a pair is no text
        before = len(self._text)
        self._text += piece
        if self._begin is None:
            start = _start_of_answer(self._text)
            self._begin = start if start is not None and _BARE_JSON.match(self._text, start) else None
        return [] if self._begin is None else self._read_json(max(before, self._begin))

    def _read_json(self, start: int) -> list[ParsedSentence | Heading]:
        """What the text behind `start` completes."""
        # Each brace on its own, so that it does not matter in what pieces the text comes.
        ends = [at + 1 for at in range(start, len(self._text)) if self._text[at] == "}"]
        return [part for end in ends for part in self._closed(self._text[self._begin : end])]

    def _read_rest(self, *, cut: bool) -> list[ParsedSentence | Heading]:
        """A whole reply that does not begin with JSON: JSON behind a few words in which nothing is named, or prose."""
        start = _start_of_answer(self._text)
        if start is None:
            return []
        lead = self._text[start : start + _LONGEST_LEAD]
        named, found = _MARKED.search(lead), _JSON.search(lead)
        if found and not (named and named.end() <= found.end()):
            self._begin = start + found.start()
            return self._read_json(self._begin)
        prose = OutputParser(self._count)
        return self._as_support([*prose.feed(self._text[_end_of_thoughts(self._text) :]), *prose.end(cut=cut)])

    def end(self, *, cut: bool = False) -> list[ParsedSentence | Heading]:
        """What is left at the end of the output: of JSON that breaks off, the statements that are whole.

        Where the model says that this does not answer the question, the last part is the refusal.
        """
        begun = self._read_rest(cut=cut) if self._begin is None else []
        if self._begin is None:
            return begun
        answer, _ = _read(self._text[self._begin :])
        refusal = [ParsedSentence(REFUSAL)] if answer.get("answered") is False else []
        return [*begun, *self._new(_statements(answer)), *refusal]

    def _closed(self, json: str) -> Iterator[ParsedSentence | Heading]:
        """The new statements of an answer so far; it ends in a brace, which may close the last one."""
        answer, is_whole = _read(json)
        statements = _statements(answer)
        if len(statements) > self._given:
            is_closed = is_whole or len(_statements(_read(f"{json},{{}}")[0])) > len(statements)
            yield from self._new(statements if is_closed else statements[:-1])

    def _new(self, statements: list[Any]) -> Iterator[ParsedSentence | Heading]:
        for each in statements[self._given :]:
            if isinstance(each, dict):
                yield from self._statement(each)
        self._given = max(self._given, len(statements))

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
        """A statement without Markdown's emphasis and markers; steps, tables and code stay as they are."""
        if "\n" not in text and "`" not in text:
            return take_markers(unadorned(in_square_brackets(simplified(text))), self._count)
        marked: list[int] = []
        lines = []
        for line in text.splitlines():
            end = end_of_code(line)
            marked += take_markers(line[end:], self._count)[1]
            lines.append(line[:end])
        return "\n".join(lines), tuple(marked)

    def _as_support(self, parts: list[ParsedSentence | Heading]) -> list[ParsedSentence | Heading]:
        """The markers of prose are numbers of sentences here."""
        return [
            part if isinstance(part, Heading) else ParsedSentence(part.text, support=part.markers, cells=part.cells)
            for part in parts
        ]


def _end_of_thoughts(text: str) -> int:
    """Where the thoughts before an answer end. A tag within its JSON ends none."""
    end = 0
    while not _begins_with_json(text, end) and (closing := _THOUGHT_END.search(text, end)):
        end = closing.end()
    return end


def _begins_with_json(text: str, start: int) -> bool:
    return _BARE_JSON.match(text, _behind_fence(text, start)) is not None


def _behind_fence(text: str, start: int) -> int:
    start += len(text[start:]) - len(text[start:].lstrip())
    fence = _FENCE.match(text, start)
    return fence.end() if fence else start


def _start_of_answer(text: str) -> int | None:
    """Where the answer begins, behind thoughts and a fence. None if that is still open."""
    end = _end_of_thoughts(text)
    rest = text[end:].lstrip()
    if _OPEN_THOUGHT.match(rest) or any(each.startswith(rest.lower()) for each in _BEGINNINGS):
        return None
    start = _behind_fence(text, end)
    return start if start < len(text) else None


def _read(json: str) -> tuple[dict[str, Any], bool]:
    """The object that a text begins with, and whether it is whole. Of one that breaks off, its whole values."""
    try:
        found, is_whole = _DECODER.raw_decode(json)[0], True  # whatever follows it
    except (ValueError, RecursionError):
        is_whole = False
        try:
            found = from_json(json, allow_partial=True)
        except ValueError:  # half a token, or no JSON after all
            found = {}
    if isinstance(found, list):  # the statements alone
        found = {"statements": found}
    return (found, is_whole) if isinstance(found, dict) else ({}, False)


def _statements(answer: dict[str, Any]) -> list[Any]:
    statements = answer.get("statements", [answer] if "statement" in answer else [])
    return statements if isinstance(statements, list) else []
