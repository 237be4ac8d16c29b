"""Reads JSON as models write it: nearly JSON, with TeX in its strings, and in pieces. Pure.

Read besides JSON: trailing, doubled and missing commas, any kind of quotes around texts and keys or none, quotes and
apostrophes within a text, comments, Python's True, None and tuples, a bracket that was forgotten, words around the
objects, an end that is cut off. Valid JSON is read as JSON, apart from keys, which get lower case, and from the
escapes of TeX: one backslash before "beta" is no backspace before "eta".

It takes time in proportion to the text, and objects nested deeper than MOST_DEEP end the reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from folio.answer.tex import with_backslashes

MOST_DEEP = 64  # objects and lists within each other

# Opening quote -> what may close it. “ closes the German „ and opens the English ”, so models mix them.
_DOUBLE, _SINGLE = '“”„‟"', "‘’‚‛'"
_CLOSING = {'"': '"', "'": "'", "`": "`", "«": "»", "»": "«"}
_CLOSING |= dict.fromkeys("“”„‟", _DOUBLE) | dict.fromkeys("‘’‚‛", _SINGLE)
_QUOTES = "".join(_CLOSING)
_STOP = {opening: re.compile(rf"\\.|[{closing}]", re.S) for opening, closing in _CLOSING.items()}
_COLON = ":=："
_BLANK = re.compile(r"(?:[\s,;，]|(?://|#\s)[^\n]*\n|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_COMMENT = re.compile(r"//|/\*|#\s")
_SPACE = re.compile(r"\s*+")
_START = re.compile(r"[{\[]")
_BARE_KEY = re.compile(rf"([\w$-]++)\s*+[{_COLON}]")
_BARE = re.compile(r"[\w$-]")
_NO_KEY = re.compile(r"[^\w\s$-]")
_KEY = {one: re.compile(rf"{one}(?:\\.|[^\\{closing}])*+[{closing}]\s*+[{_COLON}]", re.S)
        for one, closing in _CLOSING.items()}  # fmt: skip
_NUMBER = re.compile(r"[+-]?\d{1,300}(?:\.\d*)?(?:[eE][+-]?\d{1,3})?(?![\w.])")
_WORD = re.compile(r"[^\s,\[\]{}()]++")
_BARE_TEXT = re.compile(r"[^,\n\[\]{}()]++")
_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "none": None, "undefined": None}
_ITEM = re.compile(r"[\d+{\[(\]}.-]|(?:true|false|null|none)\b", re.I)
_ESCAPE = {'"': '"', "\\": "\\", "/": "/", "\n": "\n"} | {quote: quote for quote in _QUOTES}
_CODE_POINT = re.compile(r"u[0-9a-fA-F]{4}")
_BACKSLASH = re.compile(r"\\(u[0-9a-fA-F]{4}|[A-Za-z]+|.|$)", re.S)


class CutText(str):
    """A text that the reply ends in the middle of."""


@dataclass
class LooseReader:
    """Reads a text that grows. `feed` reads as far as it is certain how to go on, `end` the rest."""

    roots: list[Any] = field(default_factory=list)  # the outermost objects and lists, also unfinished ones
    _text: str = ""
    _at: int = 0
    _open: list[dict[str, Any] | list[Any]] = field(default_factory=list)
    _keys: list[str | None] = field(default_factory=list)  # of each open object: the key whose value comes next
    _scanned: tuple[int, int] = (0, 0)  # where the unfinished text in quotes begins, and how far it has been read
    _is_final: bool = False

    def feed(self, text: str) -> None:
        """Read more text."""
        self._text += text
        while self._at < len(self._text) and self._step():
            pass

    def end(self) -> None:
        """Read the rest; no text follows."""
        self._is_final = True
        self.feed("")

    def is_open(self, value: object) -> bool:
        """Whether an object or list has not been closed so far."""
        return any(value is one for one in self._open)

    def _step(self) -> bool:
        """Read one thing; False if that needs more text."""
        if not self._open:
            start = _START.search(self._text, self._at)
            if start is None:
                self._at = len(self._text)
                return False
            self._at = start.start()
            return self._begin()
        self._at = _end(_BLANK, self._text, self._at)
        if self._at == len(self._text):
            return False
        unfinished = self._text[self._at : self._at + 2] in ("/", "#") or _COMMENT.match(self._text, self._at)
        if unfinished:  # a comment
            self._at = len(self._text) if self._is_final else self._at
            return False
        char = self._text[self._at]
        if char in "}])":
            return self._close(char)
        if isinstance(self._open[-1], dict) and self._keys[-1] is None:
            return self._key(char)
        return self._value(char)

    def _begin(self) -> bool:
        """Open an object or a list."""
        if len(self._open) == MOST_DEEP:
            self._at = len(self._text)
            return False
        new: dict[str, Any] | list[Any] = {} if self._text[self._at] == "{" else []
        if self._open:
            self._add(new)
        else:
            self.roots.append(new)
        self._open.append(new)
        self._keys.append(None)
        self._at += 1
        return True

    def _close(self, char: str) -> bool:
        """A closing bracket closes what it fits; what was not closed within is closed with it."""
        kind = dict if char == "}" else list
        fitting = any(isinstance(one, kind) for one in self._open)
        is_own = isinstance(self._open[-1], kind)
        if fitting:
            self._open.pop()
            self._keys.pop()
        if is_own or not fitting:
            self._at += 1
        return True

    def _add(self, value: Any) -> None:
        container, key = self._open[-1], self._keys[-1]
        if isinstance(container, list):
            container.append(value)
        elif key is not None:
            container[key] = value
            self._keys[-1] = None

    def _key(self, char: str) -> bool:
        if char in _CLOSING:
            found = self._quoted(char, "key")
            if found is None:
                return False
            key, end = found
        elif bare := _BARE_KEY.match(self._text, self._at):
            key, end = bare[1], bare.end(1)
        else:
            end = _end(_SPACE, self._text, max(_end(_WORD, self._text, self._at), self._at + 1))
            if end == len(self._text) and not self._is_final:
                return False  # its colon may come
            self._at = end
            return True
        after = _end(_SPACE, self._text, end)
        if after == len(self._text) or (self._text[after] == "=" and after + 1 == len(self._text)):
            self._at = len(self._text) if self._is_final else self._at
            return False
        if self._text[after] in _COLON:
            self._keys[-1] = key.strip().casefold()
            after += 2 if self._text.startswith("=>", after) else 1
        self._at = after
        return True

    def _value(self, char: str) -> bool:
        if char in "{[(":
            return self._begin()
        if char in _CLOSING:
            found = self._quoted(char, "item" if isinstance(self._open[-1], list) else "value")
            if found is None:
                return False
            text, end = found
            if self._is_key(end):  # the list before it was not closed
                self._open.pop()
                self._keys.pop()
                return True
            self._add(text)
            self._at = end
            return True
        return self._bare(char)

    def _is_key(self, end: int) -> bool:
        """Whether an item of a list, up to here, is a key of the object around the list."""
        after = _end(_SPACE, self._text, end)
        in_object = len(self._open) > 1 and isinstance(self._open[-2], dict) and isinstance(self._open[-1], list)
        return in_object and after < len(self._text) and self._text[after] in _COLON

    def _bare(self, char: str) -> bool:
        """A number, true, false, null, or words without quotes."""
        number, word = _NUMBER.match(self._text, self._at), _WORD.match(self._text, self._at)
        value: Any
        if number and number.end() < len(self._text):
            digits = number.group()
            value, end = int(digits) if digits.lstrip("+-").isdecimal() else float(digits), number.end()
        elif word and (word.end() < len(self._text) or self._is_final) and word.group().casefold() in _LITERALS:
            value, end = _LITERALS[word.group().casefold()], word.end()
        else:
            text = _BARE_TEXT.match(self._text, self._at)
            end = text.end() if text else self._at + 1
            if end == len(self._text):
                self._at = end if self._is_final else self._at
                return False
            value = _unescaped(text.group().strip()) if text else char
        self._add(value)
        self._at = end
        return True

    def _quoted(self, opening: str, place: Literal["key", "value", "item"]) -> tuple[str, int] | None:
        """A text in quotes and its end; None if more must arrive to tell."""
        begin = self._at + 1
        at = self._scanned[1] if self._scanned[0] == begin else begin
        for stop in _STOP[opening].finditer(self._text, at):
            if not stop.group().startswith("\\"):
                closes = self._closes(stop.end(), place)
                if closes is None and not self._is_final:
                    self._scanned = begin, stop.start()
                    return None
                if closes is not False:
                    return _unescaped(self._text[begin : stop.start()]), stop.end()
            at = stop.end()
        self._scanned = begin, max(at, len(self._text) - self._text.endswith("\\"))
        return (CutText(_unescaped(self._text[begin:])), len(self._text)) if self._is_final else None

    def _closes(self, end: int, place: Literal["key", "value", "item"]) -> bool | None:
        """Whether a quote before this place ends its text: what follows can only stand behind one. None: unknown."""
        at = _end(_SPACE, self._text, end)
        if at == len(self._text):
            return None
        char = self._text[at]
        if place == "key":
            return char in _COLON
        if char in "/#" and at + 1 == len(self._text):
            return None
        if char in "}])" or _COMMENT.match(self._text, at):
            return True
        if place == "item" and (char in "{[" or (char in _COLON and len(self._open) > 1)):
            return True
        if char in ",;，":
            at = _end(_SPACE, self._text, at + 1)
            if at == len(self._text):
                return None
            char = self._text[at]
            if char in "}]),;" or _COMMENT.match(self._text, at):
                return True
            if place == "item":
                is_cut = char.isalpha() and _end(_WORD, self._text, at) == len(self._text)
                return None if is_cut else char in _CLOSING or _ITEM.match(self._text, at) is not None
        return place == "value" and self._begins_key(at)

    def _begins_key(self, at: int) -> bool | None:
        """Whether a key and its colon stand here. None if the text ends before that is known."""
        char = self._text[at]
        form = _KEY[char] if char in _CLOSING else _BARE_KEY
        if form.match(self._text, at):
            return True
        if not (char in _CLOSING or _BARE.match(char)):
            return False
        ending = _STOP[char] if char in _CLOSING else _NO_KEY
        rest = next((stop for stop in ending.finditer(self._text, at + 1) if stop.group()[0] != "\\"), None)
        if rest is None or (char in _CLOSING and _end(_SPACE, self._text, rest.end()) == len(self._text)):
            return None
        return False


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a match that may be empty ends."""
    match = pattern.match(text, at)
    return match.end() if match else at


def loose_values(text: str) -> list[Any]:
    """The outermost objects and lists of a whole text, in order."""
    reader = LooseReader()
    reader.feed(text)
    reader.end()
    return reader.roots


def first_value(text: str, start: int) -> tuple[Any, int] | None:
    """The object or list that begins at `start`, and its end; None if it is not closed."""
    reader = LooseReader(_text=text, _at=start)
    while reader._step() and reader._open:
        pass
    return (reader.roots[0], reader._at) if reader.roots and not reader._open else None


def _unescaped(raw: str) -> str:
    """A text without JSON's escapes. A backslash that makes none in its place is a backslash."""
    if "\\" not in raw:
        return raw
    is_tex = with_backslashes(raw)

    def char(match: re.Match[str]) -> str:
        body = match[1]
        if _CODE_POINT.fullmatch(body):
            return chr(int(body[1:], 16))
        if not body[:1].isalpha():
            return _ESCAPE.get(body, match.group())
        if body[0] not in "bfnrt" or is_tex(match):
            return match.group()
        return {"n": "\n", "r": "\r", "t": "\t"}.get(body[0], " ") + body[1:]

    text = _BACKSLASH.sub(char, raw)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
