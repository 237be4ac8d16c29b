"""Removes Markdown emphasis, HTML tags, links and terminal escapes from a model's output. Pure."""

from __future__ import annotations

import re
import unicodedata

_LIST_ITEM = re.compile(r"(?:(?:[-–•▪‣*+]|#+|\d{1,2}[.)])\s+)+")
_EMPHASIS = re.compile(
    r"(?<![\w*])\*(?=[^\s*])((?:[^*.!?…。！？\n]|[.!?…](?=[^\s*]))+)(?<=\S)\*(?=[^\w*])"
    r"|(?<!\w)__?(?=[^\s_])((?:[^_.!?…。！？\n]|[.!?…](?=[^\s_]))+)(?<=\S)__?(?=\W)"
)
_LINK = re.compile(r"(!)?\[([^\[\]]*)\]\((?:[a-z][\w+.-]*:|www\.|\.{0,2}/|#)[^\s()]*(?:\s+\"[^\"]*\")?\)", re.I)
_TAG = re.compile(
    r"</?(?:(?P<block>p|br|hr|div|ul|ol|li|h[1-6]|tr|table|blockquote|pre)|b|i|u|em|strong|s|sub|sup|small|mark|code|span"
    r"|font|a|img|td|th|evidence|answer)(?:\s(?:[^<>.!?…。！？\n]|[.!?…](?=\S)){0,200})?/?>",
    re.I,
)
_LONGEST_STRING = 2000  # characters of a terminal escape string, such as a link's address
_STRING = rf"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{{0,{_LONGEST_STRING}}}"
_ESCAPES = re.compile(
    rf"(?:\x1b\[|\x9b)[0-?]{{0,99}}[ -/]{{0,9}}[@-~]|{_STRING}(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]{{0,9}}[0-;=-~]"
)
CUT_ESCAPE = re.compile(
    rf"(?:\x1b\[|\x9b)[0-?]{{0,99}}[ -/]{{0,9}}\Z|{_STRING}\x1b?\Z|\x1b[ -/]{{0,9}}\Z|\r\Z"
    r"|<(?:/?(?:t|th|thi|thin|think|thinki|thinkin|thinking)?)\Z",
    re.I,
)
# Zero-width joiners belong to other scripts; next to ASCII they only hide something.
_LOST_JOINER = re.compile(r"(?<![\u200c\u200d])[\u200c\u200d]+(?=[\x00-\x7f])|(?<=[\x00-\x7f])[\u200c\u200d]+")


def printable(text: str) -> str:
    """The text without terminal escapes and invisible characters."""
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(char if char.isprintable() or char in "\n\u200c\u200d" else _replacement(char) for char in plain)


def _replacement(char: str) -> str:
    return "" if unicodedata.category(char) == "Cf" else " "


def simplified(text: str) -> str:
    """The text without bold marks, code fences, stray joiners and HTML tags."""
    text = _LOST_JOINER.sub("", text.replace("**", "").replace("```", ""))
    text = _EMPHASIS.sub(lambda words: words[1] or words[2], text)
    if "<" in text:
        text = _TAG.sub(lambda tag: "\n\n" if tag["block"] else "", text)
    return text


def unadorned(sentence: str) -> str:
    """A sentence without its list number or bullet, emphasis and link targets."""
    text = sentence.replace("**", "").strip()
    if item := _LIST_ITEM.match(text):
        text = text[item.end() :]
    text = _LINK.sub(lambda link: "" if link[1] else f"[{link[2]}]" if link[2].isdecimal() else link[2], text)
    return _EMPHASIS.sub(lambda words: words[1] or words[2], f"{text} ").strip()
