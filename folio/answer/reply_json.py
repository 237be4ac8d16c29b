"""Asks a chat model for JSON of a given shape, within limits on tokens, tries and time, and reads its replies.

Many servers ignore the schema if the model is told not to think. It then writes the JSON in a fence, with words around
it, nearly JSON (loose_json.py), or no JSON at all. An ambiguous reply has no value: asking again is better than a wrong
value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from json import JSONDecoder
from typing import Any, TypeVar

from folio.answer import prompts
from folio.answer.loose_json import first_value
from folio.answer.markers import printable
from folio.answer.parser import object_schema
from folio.errors import ContextTooSmall, ModelFailed, ThoughtAlone
from folio.models.chat_model import ChatModel
from folio.models.model_server import TEMPLATE_TOKENS, ModelServer
from folio.models.thinking import without_thoughts
from folio.text import estimate_tokens, one_line, tokenize

_DECODER = JSONDecoder(strict=False)  # strings with line breaks, as models write them without a schema
_MOST_STARTS = 64  # braces and brackets tried as the start of a value
_MOST_READ = 400_000  # characters read in vain for values that are not closed: about 3 seconds
_FENCE_LINE = re.compile(r"^\s*(?:```|~~~).*$", re.M)
# A line of a list: "- text", "2. text", "3) text"
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(\S.*)$", re.M)
_QUOTES = " \t*_`\"'“”‘’"
_BARE_NUMBER = re.compile(r"[\s*_`\"']*(\d+)[\s*_`\"'.]*")
_PLACEHOLDER = re.compile(r"\s*(?:\.{2,}|…)[\s.…]*")

T = TypeVar("T")

TRIES = 2  # for a usable reply


class StoppedError(Exception):
    """Raised by a check to abandon a call."""


class JsonModel:
    """One model on one server."""

    def __init__(self, server: ModelServer, model: str, *, tokens: int) -> None:
        """Asks the server about the model. Raises as ModelServer.require_local does.

        tokens: the longest prompt and reply of an answer. The same context size keeps the model loaded.
        """
        self._model = ChatModel.open(server, model, tokens)
        self._tokens = min(tokens, self._model.largest - self._model.room)
        self.name, self.title = self._model.name, self._model.title

    def fits(self, prompt: str, reply_tokens: int) -> bool:
        """Whether a prompt and its reply fit into the context."""
        needed = estimate_tokens(prompts.RULES) + estimate_tokens(prompt) + TEMPLATE_TOKENS + reply_tokens
        return needed <= self._tokens

    def ask(
        self,
        prompt: str,
        shape: dict[str, Any],
        read: Callable[[Any], T | None],
        *,
        reply_tokens: int,
        take_call: Callable[[], bool],
        check: Callable[[], None],
    ) -> T | None:
        """The value that `read` makes of the reply; None without a usable reply in TRIES tries.

        take_call: called before each try; False ends the call. check: called often; StoppedError abandons the call.
        Raises ModelError if the server fails, ModelFailed only if the last try fails.
        """
        prompt = prompt.encode("utf-8", "replace").decode()
        if not self.fits(prompt, reply_tokens):
            return None
        failed: ModelFailed | None = None
        for _ in range(TRIES):
            if not take_call():
                return None
            try:
                value, failed = read(reply_value(self._reply(prompt, shape, reply_tokens, check), shape)), None
            except (StoppedError, ContextTooSmall):
                return None
            except ThoughtAlone:  # another try would give the same
                if self._model.only_thinks:
                    raise
                return None
            except ModelFailed as error:
                value, failed = None, error
            if value is not None:
                return value
        if failed is not None:
            raise failed
        return None

    def _reply(self, prompt: str, shape: dict[str, Any], longest: int, check: Callable[[], None]) -> str:
        check()
        size = self._model.context_for(self._tokens)
        return self._model.write(
            prompts.RULES, prompt, context=size, longest=longest, shape=shape, check_cancelled=check
        )


def list_shape(field: str, least: int, most: int) -> dict[str, Any]:
    """The schema of an object with a list of texts."""
    texts = {"type": "array", "items": {"type": "string"}, "minItems": least, "maxItems": most}
    return object_schema(**{field: texts})


def lines_of(reply: Any, field: str, most: int, longest: int) -> list[str] | None:
    """The first texts of such an object, each as one printable line with words; None if it has no list."""
    texts = reply.get(field) if isinstance(reply, dict) else None
    if not isinstance(texts, list):
        return None
    lines = [printable_line(text, longest) for text in texts if isinstance(text, str)]
    return [line for line in lines if tokenize(line)][:most]


def printable_line(text: str, longest: int) -> str:
    """A text as one printable line, at most `longest` characters."""
    return one_line(printable(text[: 8 * longest]))[:longest]


def reply_value(reply: str, shape: dict[str, Any]) -> Any:
    """The object in a reply, or the values that its prose gives for the object's fields; None if that is not clear.

    shape: the JSON Schema of the object. The value may violate it, so callers must check its fields.
    """
    text = without_thoughts(reply)
    properties: dict[str, Any] = shape["properties"]
    objects: list[dict[str, Any]] = []
    lists: list[list[Any]] = []
    prose, at = "", 0  # the words around the objects
    for value, start, end in _values(text):
        listed = value if isinstance(value, list) else [value]
        if ours := [one for one in listed if isinstance(one, dict) and properties.keys() & one.keys()]:
            objects += [one for one in ours if not _is_form(one) and one not in objects]
            prose, at = prose + text[at:start], end
        elif isinstance(value, list) and not _is_form(value):
            lists += [] if value in lists else [value]
    text = prose + text[at:]
    whole = [value for value in objects if all(name in value for name in shape["required"])] or objects
    if whole:
        return _with_integers(whole[0], properties) if len(whole) == 1 else None
    kinds = [part.get("type") for part in properties.values()]
    if kinds == ["array"]:
        (name,) = properties
        of_texts = properties[name]["items"].get("type") == "string"
        fitting = [each for each in lists if each and all(isinstance(one, str if of_texts else dict) for one in each)]
        if not fitting and of_texts:
            fitting = [[item.strip(_QUOTES) for item in _ITEM.findall(text)]]
        return {name: fitting[0]} if len(fitting) == 1 and fitting[0] else None
    if "integer" in kinds:
        return _labelled(text, properties)
    if kinds == ["string"] and text and not text.startswith(("{", "[")):
        (name,) = properties
        return {name: _FENCE_LINE.sub("", text).strip(_QUOTES + "\n")}
    return None


def _values(text: str) -> Iterator[tuple[Any, int, int]]:
    """The outermost JSON objects and lists in a text, with start and end. Stops at one that is nested too deeply."""
    at = read = 0
    for _ in range(_MOST_STARTS):
        start = min((place for place in (text.find("{", at), text.find("[", at)) if place >= 0), default=-1)
        if start < 0:
            return
        at = start + 1
        try:
            end = _DECODER.raw_decode(text, start)[1]
        except ValueError:
            end = -1
        except RecursionError:
            return
        found = first_value(text, start)
        read += 0 if found else len(text) - start
        if read > _MOST_READ:
            return
        if found and (end >= 0 or _has_fields(found[0])):  # not "{as JSON}" or "[see 3]"
            at = end if end >= 0 else found[1]
            yield found[0], start, at


def _has_fields(value: Any) -> bool:
    return any(map(_has_fields, value)) if isinstance(value, list) else isinstance(value, dict) and bool(value)


def _is_form(value: Any) -> bool:
    """Whether a value only repeats the example in the prompt."""
    if isinstance(value, list):
        return bool(value) and all(map(_is_form, value))
    if isinstance(value, dict):
        return any(map(_is_form, value.values()))
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None


def _with_integers(value: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    """The value with integers in place of integers in quotes."""
    return {
        name: _integer(part, properties[name])
        if isinstance(part, str) and properties.get(name, {}).get("type") == "integer"
        else part
        for name, part in value.items()
    }


def _integer(text: str, schema: dict[str, Any]) -> int | str:
    match = _BARE_NUMBER.fullmatch(text) or re.fullmatch(rf"\s*(\d+)\s*/\s*{_most(schema)}\s*", text)
    return int(match[1]) if match else text


def _most(schema: dict[str, Any]) -> int:
    return int(schema["maximum"] if "maximum" in schema else max(schema["enum"]))


def _labelled(text: str, properties: dict[str, Any]) -> dict[str, Any] | None:
    """The integer after its name ("relevance: 7"), before its maximum ("7/10") or alone, and the texts after theirs.

    None if there is no such integer or more than one. A count is none: "the relevance of 2 of these sentences", "in 7
    out of 10 dives".
    """
    (name,) = (name for name, schema in properties.items() if schema.get("type") == "integer")
    number, most = r"(-?\d+(?:\.\d+)?)(?!\.?\d)", _most(properties[name])
    out_of, thing = rf"(?:/|\bout\s+of\b)\s*{most}(?!\d|\.\d)", r"(?![^\S\n]+(?-i:[a-z]))"
    label = rf"\b{name}\b(?:[\s-]+(?:score|rating))?[\s*_`\"]*"
    digits: list[str] = re.findall(rf"{label}[:=][\s*_`\"]*{number}", text, re.I)
    digits += re.findall(rf"{label}\bis\b[\s*_`\"]*{number}(?!\s+of\b(?!\s*{most}))", text, re.I)
    digits += re.findall(rf"{label}\bof\b[\s*_`\"]*{number}(?:\s*{out_of})?{thing}", text, re.I)
    digits += re.findall(rf"(?<![\d.]){number}\s*{out_of}{thing}", text, re.I)
    bare = _BARE_NUMBER.fullmatch(text)
    values = {*digits, *([bare[1]] if bare else [])}
    if len(values) != 1 or not (value := values.pop()).isdecimal() or int(value) > most:
        return None
    fields: dict[str, Any] = {name: int(value)}
    for other, schema in properties.items():
        if schema.get("type") == "string":
            line = re.search(rf"^\W*{other}\b[\s*_`\"]*:[\s*_`\"]*(\S.*)$", text, re.I | re.M)
            own = re.split(rf"[\s*_`\"',;]*{label}[:=]", line[1], flags=re.I)[0] if line else ""
            fields[other] = own.strip(_QUOTES)
    return None if _is_form(fields) else fields
