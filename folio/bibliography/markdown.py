"""Foreign text in Markdown: it never becomes a link, a tag or a heading. Pure.

It is escaped for CommonMark (https://spec.commonmark.org/0.31.2/) and for the extensions of GitHub and pandoc.
"""

from __future__ import annotations

import re

from folio.shown_text import plain_line

LINE_BREAK = "\\\n"
_ACTIVE = re.compile(
    r"[\\`*_{}\[\]<>#|~$&@^]"  # anywhere
    r"|:(?=//)|(?<=www)\."  # in URLs, which GitHub turns into links
    r"|\A[-+=:]"  # at the start of a line
)
_NUMBER = re.compile(r"\A\d{1,9}(?=[.)])")  # list numbers at the start of a line


def escaped(text: str) -> str:
    """Foreign text on one line, escaped."""
    return line_escaped(plain_line(text))


def line_escaped(line: str) -> str:
    """A line, escaped; the start of a Markdown line."""
    return _NUMBER.sub(r"\g<0>\\", _ACTIVE.sub(r"\\\g<0>", line))
