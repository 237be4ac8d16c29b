"""A model's answer as JSON -> its statements, while it streams. What turns out to be prose is read as prose. Pure.

    {"statements": [{"support": [27, 28], "statement": "..."}], "answered": true}

`support` comes first, so that a model chooses its sentences before it writes what follows from them. Its items are an
enumeration of the numbers that exist, and Ollama's grammar lets a model write no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from folio.answer.citation_markers import end_of_code, take_markers
from folio.answer.markup import printable, simplified, unadorned
from folio.answer.output_parser import Heading, OutputParser, ParsedSentence
from folio.types import Style

MOST_STATEMENTS = {"plain": 8, "report": 24}
MOST_SUPPORT = 6  # sentences that a model may name for one statement
LONGEST_STATEMENT = 1500  # characters
# What may come before the JSON: a thought, a fence of Markdown
_BEFORE = re.compile(r"\s*(?:<think(?:ing)?>.*?</think(?:ing)?>\s*)?(?:```(?:json)?\s*)?", re.S | re.I)
_UNFINISHED = re.compile(
    r"\s*(?:<(?:t|th|thi|thin|think|thinki|thinkin|thinking)?$|<think(?:ing)?>(?!.*</think)|`{0,3}(?:json)?$)",
    re.S | re.I,
)


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
            "part": {"type": "string", "enum": ["summary", "analysis"]},
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
    """Parses an answer while it arrives. `answered`: what the model says at the end; None if it has not said."""

    def __init__(self, sentences: int) -> None:
        """sentences: how many the evidence has; other numbers are ignored."""
        self.answered: bool | None = None
        self._count = sentences
        self._text = ""
        self._given = 0  # statements returned so far
        self._heading = ("", "")
        self._prose: OutputParser | None = None

    def feed(self, piece: str) -> list[ParsedSentence | Heading]:
        """The statements and headings that this piece completes."""
        if self._prose is not None:
            return self._as_support(self._prose.feed(piece))
        self._text += piece
        if _UNFINISHED.match(self._text):
            return []
        start = _BEFORE.match(self._text)
        json = self._text[start.end() if start else 0 :]
        if not json:
            return []
        if not json.startswith("{"):
            self._prose = OutputParser(self._count)
            return self._as_support(self._prose.feed(self._text))
        return list(self._statements(json, complete=False))

    def end(self, *, cut: bool = False) -> list[ParsedSentence | Heading]:
        """What is left at the end of the output: of JSON that breaks off, the statements that are whole."""
        if self._prose is not None:
            return self._as_support(self._prose.end(cut=cut))
        start = _BEFORE.match(self._text)
        return list(self._statements(self._text[start.end() if start else 0 :], complete=True))

    def _statements(self, json: str, *, complete: bool) -> Iterator[ParsedSentence | Heading]:
        try:
            answer = from_json(json.rstrip("` \n"), allow_partial=True)
        except ValueError:  # half a token, or no JSON after all: what was given stands
            return
        if not isinstance(answer, dict):
            return
        answered = answer.get("answered")
        self.answered = answered if isinstance(answered, bool) else self.answered
        statements = answer.get("statements")
        found = statements if isinstance(statements, list) else []
        closed = complete or "answered" in answer or json.rstrip()[-1:] in ("}", "]")
        ready = len(found) if closed else max(0, len(found) - 1)
        for each in found[self._given : ready]:
            if isinstance(each, dict):
                yield from self._statement(each)
        self._given = max(self._given, ready)

    def _statement(self, each: dict[str, Any]) -> Iterator[ParsedSentence | Heading]:
        part, heading = (each.get(name) if isinstance(each.get(name), str) else "" for name in ("part", "heading"))
        if part and (part, heading) != self._heading:
            self._heading = (str(part), str(heading))
            yield Heading(str(part))
            if heading and part == "analysis":
                yield Heading(printable(str(heading)))
        text, support = each.get("statement"), each.get("support")
        if not isinstance(text, str) or not any(char.isalnum() for char in text):
            return
        numbers = [n for n in support if type(n) is int] if isinstance(support, list) else []
        text, marked = self._cleaned(printable(text).strip())
        named = dict.fromkeys(number for number in (*numbers, *marked) if 1 <= number <= self._count)
        yield ParsedSentence(text, support=tuple(named))

    def _cleaned(self, text: str) -> tuple[str, tuple[int, ...]]:
        """A statement without Markdown's emphasis and markers; steps, tables and code stay as they are."""
        if "\n" not in text and "`" not in text:
            return take_markers(unadorned(simplified(text)), self._count)
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
