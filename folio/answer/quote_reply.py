"""A reply with a quote and an answer -> the statements of the answer, each with the quote it rests on. Pure.

    Quote: "The Aletsch glacier is 23 km long."
    Answer: It is 23 km long.

The quote comes first, so that a model has chosen its sentence before it writes (Jayanth et al. 2025, LLMQuoter,
arXiv 2501.05554; Xia et al. 2024, ReClaim, arXiv 2407.01796). It may be wrong: the program finds it on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from folio.answer.loose_json import LooseReader
from folio.answer.markers import printable
from folio.answer.parser import Heading, OutputParser, ParsedSentence, StatementParser
from folio.models.thinking import without_thoughts
from folio.text import one_line

_QUOTE, _ANSWER = "quote", "answer"
# "Quote:", "**Answer:**", "Quote 2:", "Answer – ", "- Table row:" at the beginning of a line
_LABEL = re.compile(
    r"^[ \t>*_#-]*(quote|answer|sentence|table row|list)s?(?:[ \t]\d+)?(?:[ \t*_]*[:：]|[ \t*_]+[-–—](?=\s))[ \t*_]*",
    re.I | re.M,
)
_JSON = re.compile(r"\s*(?:```(?:json)?\s*)?[\[{]", re.I)
_QUOTATION_MARKS = "\"'“”„‘’«»` \t\n"


class QuoteParser:
    """Parses a whole reply at its end: the answer is shown before the quote that precedes it."""

    def __init__(self, sentences: int) -> None:
        """sentences: number of sentences of the evidence, for replies in JSON with their numbers."""
        self._count = sentences
        self._text = ""

    def feed(self, piece: str) -> list[ParsedSentence | Heading]:
        self._text += piece
        return []

    def end(self, *, cut: bool = False) -> list[ParsedSentence | Heading]:
        """The sentences of the answer, then the quote by itself. cut: the reply was cut off."""
        text = printable(without_thoughts(self._text.encode("utf-8", "replace").decode()))
        if _JSON.match(text):
            found = _in_json(text)
            if found is None:  # statements, as the prompt of another format asks for
                statements = StatementParser(self._count)
                return [*statements.feed(text), *statements.end(cut=cut)]
            quote, answer = found
        else:
            quote, answer = _labelled(text)
        return list(_parts(quote, answer, cut=cut))


def _parts(quote: str, answer: str, *, cut: bool) -> Iterator[ParsedSentence | Heading]:
    quote = quote.strip(_QUOTATION_MARKS)
    prose = OutputParser(0)
    for part in (*prose.feed(answer), *prose.end(cut=cut)):
        yield replace(part, markers=(), quote=quote) if isinstance(part, ParsedSentence) else part
    if quote:
        yield ParsedSentence(one_line(answer) or quote, quote=quote, is_copy=True)


def _labelled(text: str) -> tuple[str, str]:
    """The quote and the answer of a reply with labels; without any, all of it is the answer."""
    labels = list(_LABEL.finditer(text))
    said = {_QUOTE: "", _ANSWER: ""}
    if not labels:
        return "", text
    for label, following in zip(labels, [*labels[1:], None], strict=True):
        name = _ANSWER if label[1].casefold() == _ANSWER else _QUOTE
        said[name] += text[label.end() : following.start() if following else len(text)].strip() + "\n"
    return said[_QUOTE].strip(), said[_ANSWER].strip()


def _in_json(text: str) -> tuple[str, str] | None:
    """The quote and the answer of an object with these names; None for another one."""
    reader = LooseReader()
    reader.feed(text[text.find("{") :] if "{" in text else text)
    reader.end()
    for root in reader.roots:
        named = {str(name).casefold(): value for name, value in root.items()} if isinstance(root, dict) else {}
        if {_QUOTE, _ANSWER} & named.keys():
            return _text_of(named.get(_QUOTE)), _text_of(named.get(_ANSWER))
    return None


def _text_of(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(map(_text_of, value))
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
