"""Reads a draft in Markdown: pandoc's citations, authors with years, numbers with a list of references. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from folio.drafts.draft import NARRATIVE, Cited, Draft, Paragraph, TextMarker, without_marks
from folio.papers import references

# What is no text, with its lines kept
_FRONT = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_CODE = re.compile(r"^(?P<fence>```+|~~~+)[^\n]*\n.*?(?:^(?P=fence)[`~]*[ \t]*$|\Z)", re.S | re.M)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_MATH = re.compile(r"\$\$.*?\$\$", re.S)
_HEADING = re.compile(
    r"^(?:#{1,6}[ \t]+(?P<title>[^\n]*?)[ \t#]*|(?P<under>[^\n#>*\s][^\n]{0,100})\n(?:=+|-{3,})[ \t]*)$", re.M
)
_REFERENCES = re.compile(r"\W*\d*\W*(?:references|bibliography|works cited|literature(?: cited)?|sources)\W*", re.I)
_PLAIN_HEADING = re.compile(
    r"^(\d*\.?[ \t]*(?:References|Bibliography|Works cited|Literature(?: cited)?|REFERENCES|BIBLIOGRAPHY))[ \t]*$", re.M
)
_BIBLIOGRAPHY = re.compile(r"^bibliography:(?P<names>[^\n]*(?:\n[ \t]*-[^\n]*)*)", re.M)
_PARAGRAPH = re.compile(r"(?:^[^\n]*\S[^\n]*(?:\n|\Z))+", re.M)
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+", re.M)
_ROW = re.compile(r"^[ \t]*\|.*$|^[ \t]*[-|: ]{3,}$", re.M)
# Pandoc: "[see @key, p. 3; -@other]" and "@key [p. 3]"
_KEY = r"-?@(?:\{(?P<braced>[^{}\s]+)\}|(?P<bare>[\w][\w:.#$%&+?<>~/-]*[\w/]|\w))"
_BRACKETED = re.compile(r"\[(?P<all>[^\[\]@]{0,80}-?@[^\[\]]{1,500})\]")
_IN_TEXT = re.compile(rf"(?<![\w@.\\]){_KEY}(?:[ ]\[[^\[\]]{{0,60}}\])?")
_EACH = re.compile(_KEY)
_LINK = re.compile(r"!?\[(?P<text>[^\[\]]*)\]\((?P<to>[^()\s]*)[^()]*\)")
_EMPHASIS = re.compile(r"(?<!\w)(?:\*{1,3}|_{1,3})(?=\S)|(?<=\S)(?:\*{1,3}|_{1,3})(?!\w)|`+|^>+[ \t]?", re.M)
_IDENTIFIED = re.compile(r"doi\.org/|arxiv\.org/", re.I)


def read(text: str) -> Draft:
    """A draft from Markdown or plain text."""
    text = without_marks(text)
    for what in (_FRONT, _CODE, _COMMENT, _MATH):
        text = what.sub(lambda found: "\n" * found.group().count("\n"), text)
    body, listed = _without_references(text)
    marker = _MarkdownMarker()
    paragraphs = [Paragraph(line, marker.marked(each, line)) for line, each in _paragraphs(body)]
    cleaned = tuple(Paragraph(each.line, _EMPHASIS.sub("", each.text)) for each in paragraphs)
    return Draft(cleaned, tuple(marker.groups), listed)


def read_plain(text: str) -> Draft:
    """A draft from text without markup, in paragraphs; a list of references begins after a line that says so."""
    return read(_PLAIN_HEADING.sub(r"# \1\n\n", text.replace("`", "'")))


def bib_files(text: str) -> list[str]:
    """The names of the bibliographies that a draft's front matter names, for pandoc."""
    front = _FRONT.match(text)
    named = _BIBLIOGRAPHY.search(front.group()) if front else None
    names = re.findall(r"[^\s,\[\]\"'-][^\s,\[\]\"']*\.(?:bib|json)\b", named["names"]) if named else []
    return list(dict.fromkeys(names))


class _MarkdownMarker(TextMarker):
    def marked(self, text: str, line: int) -> str:
        def keys(found: re.Match[str]) -> str:
            at = line + found.string.count("\n", 0, found.start())
            cited = [Cited("key", key["braced"] or key["bare"], shown=f"@{key['braced'] or key['bare']}")
                     for key in _EACH.finditer(found.group())]  # fmt: skip
            mark = self.mark(at, cited)
            return f"{NARRATIVE if found.re is _IN_TEXT else ''}{mark} " if mark else found.group()

        text = _IN_TEXT.sub(keys, _BRACKETED.sub(keys, _LINK.sub(_link, text)))
        return super().marked(text, line)


def _link(found: re.Match[str]) -> str:
    """The text of a link, with its address if that names a work."""
    return f"{found['text']} {found['to']}" if _IDENTIFIED.search(found["to"]) else found["text"]


def _without_references(text: str) -> tuple[str, tuple[references.Entry, ...]]:
    """The text without its list of references, and the entries of the list."""
    headings = list(_HEADING.finditer(text))
    for place, heading in enumerate(headings):
        if _REFERENCES.fullmatch(heading["title"] or heading["under"] or ""):
            end = headings[place + 1].start() if place + 1 < len(headings) else len(text)
            listed = references.split(text, heading.end(), end) or _short_list(text, heading.end(), end)
            blank = "\n" * text.count("\n", heading.start(), end)
            return text[: heading.start()] + blank + text[end:], tuple(listed)
    return text, ()


_NUMBERED = re.compile(
    r"^[ \t]*(?:\[(?P<a>\d{1,3})\]:?|(?P<b>\d{1,3})[.)])[ \t]+(?P<text>\S[^\n]*(?:\n[ \t]+\S[^\n]*)*)", re.M
)


def _short_list(text: str, start: int, end: int) -> list[references.Entry]:
    """The entries of a numbered list, also of one or two."""
    found = _NUMBERED.finditer(text, start, end)
    return [references.Entry(each.start("text"), each.end(), each["text"], each["a"] or each["b"]) for each in found]


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Each paragraph, and each item of a list, with the number of its first line."""
    text = _ROW.sub("", _HEADING.sub(lambda found: "\n" * found.group().count("\n"), text))
    for block in _PARAGRAPH.finditer(text):
        starts = [block.start(), *(item.start() for item in _ITEM.finditer(text, block.start(), block.end()))]
        for start, end in zip(starts, [*starts[1:], block.end()], strict=True):
            if each := _ITEM.sub("", text[start:end], count=1).strip("\n"):
                yield text.count("\n", 0, start) + 1, each
