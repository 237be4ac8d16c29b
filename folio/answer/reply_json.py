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
_ELLIPSES = ("...", "…")


def reply_value(reply: str, shape: dict[str, Any]) -> Any:
    """The object that a reply has for a JSON Schema, or what its prose says for its fields; None if that is not clear.

    shape: an object's schema. The value need not follow it: its fields are to be checked.
    """
    text = without_thoughts(reply)
    properties: dict[str, Any] = shape["properties"]
    objects: list[dict[str, Any]] = []
    lists: list[list[Any]] = []
    for value in _values(text):
        if isinstance(value, dict) and properties.keys() & value.keys():
            objects += [] if _is_form(value) or value in objects else [value]
        elif isinstance(value, list):
            lists += [] if value in lists else [value]
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


def _values(text: str) -> Iterator[Any]:
    """The JSON objects and lists in a text, the outermost, in order; none if one of them is too deep."""
    at = 0
    for _ in range(_MOST_STARTS):
        start = min((found for found in (text.find("{", at), text.find("[", at)) if found >= 0), default=-1)
        if start < 0:
            return
        try:
            value, at = _DECODER.raw_decode(text, start)
            yield value
        except ValueError:
            at = start + 1
        except RecursionError:
            return


def _is_form(value: dict[str, Any]) -> bool:
    """Whether it is the example of the prompt, repeated."""
    return any(part in _ELLIPSES or (isinstance(part, list) and _ELLIPSES[0] in part) for part in value.values())


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
    """The one integer that is asked for, behind its name, out of its most, or alone; texts only behind their names."""
    (name,) = (name for name, schema in properties.items() if schema.get("type") == "integer")
    label = rf"\b{name}\b(?:[\s-]+(?:score|rating))?[\s*_`\"]*(?:[:=]|\bis\b|\bof\b)[\s*_`\"]*"
    number, most = r"(-?\d+(?:\.\d+)?)", _most(properties[name])
    found = re.findall(label + number, text, re.I)
    found += re.findall(rf"(?<![\d.]){number}\s*(?:/|\bout\s+of\b)\s*{most}(?!\d|\.\d)", text, re.I)
    bare = _BARE_NUMBER.fullmatch(text)
    values = {*found, *([bare[1]] if bare else [])}
    if len(values) != 1 or not (value := values.pop()).isdecimal() or int(value) > most:
        return None
    written: dict[str, Any] = {name: int(value)}
    for other, schema in properties.items():
        if schema.get("type") == "string":
            said = re.search(rf"^\W*{other}\b[\s*_`\"]*:[\s*_`\"]*(\S.*)$", text, re.I | re.M)
            written[other] = said[1].strip(_QUOTES) if said else ""
    return written
