"""A model's reply -> the values that it was asked for, also where no schema held the model. Pure.

Many servers do not hold a model that is told not to think to its schema. It then writes the JSON in a fence, with words
around it, or no JSON at all. What could be read in two ways is not read: asking again is better than a wrong value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import Any

from folio.models.thinking import without_thoughts

_DECODER = JSONDecoder(strict=False)  # strings with line breaks, as models write them without a schema
_MOST_STARTS = 64  # braces and brackets at which a value may begin
_FENCE_LINE = re.compile(r"^\s*(?:```|~~~).*$", re.M)
# A line of a list: "- text", "2. text", "3) text"
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(\S.*)$", re.M)
_QUOTES = " \t*_`\"'“”‘’"
_BARE_NUMBER = re.compile(r"[\s*_`\"']*(\d+)[\s*_`\"'.]*")
_PLACEHOLDER = re.compile(r"\s*(?:\.{2,}|…)[\s.…]*")


def reply_value(reply: str, shape: dict[str, Any]) -> Any:
    """The object that a reply has for a JSON Schema, or what its prose says for its fields; None if that is not clear.

    shape: an object's schema. The value need not follow it: its fields are to be checked.
    """
    text = without_thoughts(reply)
    properties: dict[str, Any] = shape["properties"]
    objects: list[dict[str, Any]] = []
    lists: list[list[Any]] = []
    prose, at = "", 0  # the words around the objects, in which no field is looked for
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
        found = [each for each in lists if each and all(isinstance(one, str if of_texts else dict) for one in each)]
        if not found and of_texts:
            found = [_items(text)]
        return {name: found[0]} if len(found) == 1 and found[0] else None
    if "integer" in kinds:
        return _labelled(text, properties)
    if kinds == ["string"] and text and not text.startswith(("{", "[")):
        (name,) = properties
        return {name: _FENCE_LINE.sub("", text).strip(_QUOTES + "\n")}
    return None


def _values(text: str) -> Iterator[tuple[Any, int, int]]:
    """The JSON objects and lists in a text, the outermost, in order, each with where it begins and ends.

    The first one that is too deep ends them.
    """
    at = 0
    for _ in range(_MOST_STARTS):
        start = min((found for found in (text.find("{", at), text.find("[", at)) if found >= 0), default=-1)
        if start < 0:
            return
        try:
            value, at = _DECODER.raw_decode(text, start)
            yield value, start, at
        except ValueError:
            at = start + 1
        except RecursionError:
            return


def _is_form(value: Any) -> bool:
    """Whether it is the example of the prompt, repeated."""
    if isinstance(value, list):
        return bool(value) and all(map(_is_form, value))
    if isinstance(value, dict):
        return any(map(_is_form, value.values()))
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None


def _items(text: str) -> list[str]:
    return [item.strip(_QUOTES) for item in _ITEM.findall(text)]


def _with_integers(value: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    """The same, with integers that stand in quotes as integers."""
    return {
        name: _in_words(part, properties[name])
        if isinstance(part, str) and properties.get(name, {}).get("type") == "integer"
        else part
        for name, part in value.items()
    }


def _in_words(text: str, schema: dict[str, Any]) -> int | str:
    found = _BARE_NUMBER.fullmatch(text) or re.fullmatch(rf"\s*(\d+)\s*/\s*{_most(schema)}\s*", text)
    return int(found[1]) if found else text


def _most(schema: dict[str, Any]) -> int:
    return int(schema["maximum"] if "maximum" in schema else max(schema["enum"]))


def _labelled(text: str, properties: dict[str, Any]) -> dict[str, Any] | None:
    """The one integer that is asked for, behind its name, out of its most, or alone; texts only behind their names.

    A number of things is none ("the relevance of 2 of these sentences", "in 7 out of 10 dives").
    """
    (name,) = (name for name, schema in properties.items() if schema.get("type") == "integer")
    number, most = r"(-?\d+(?:\.\d+)?)(?!\.?\d)", _most(properties[name])
    out_of, thing = rf"(?:/|\bout\s+of\b)\s*{most}(?!\d|\.\d)", r"(?![^\S\n]+(?-i:[a-z]))"
    label = rf"\b{name}\b(?:[\s-]+(?:score|rating))?[\s*_`\"]*"
    found: list[str] = re.findall(rf"{label}[:=][\s*_`\"]*{number}", text, re.I)
    found += re.findall(rf"{label}\bis\b[\s*_`\"]*{number}(?!\s+of\b(?!\s*{most}))", text, re.I)
    found += re.findall(rf"{label}\bof\b[\s*_`\"]*{number}(?:\s*{out_of})?{thing}", text, re.I)
    found += re.findall(rf"(?<![\d.]){number}\s*{out_of}{thing}", text, re.I)
    bare = _BARE_NUMBER.fullmatch(text)
    values = {*found, *([bare[1]] if bare else [])}
    if len(values) != 1 or not (value := values.pop()).isdecimal() or int(value) > most:
        return None
    written: dict[str, Any] = {name: int(value)}
    for other, schema in properties.items():
        if schema.get("type") == "string":
            said = re.search(rf"^\W*{other}\b[\s*_`\"]*:[\s*_`\"]*(\S.*)$", text, re.I | re.M)
            own = re.split(rf"[\s*_`\"',;]*{label}[:=]", said[1], flags=re.I)[0] if said else ""
            written[other] = own.strip(_QUOTES)
    return None if _is_form(written) else written
