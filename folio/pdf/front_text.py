"""The abstract, from the text of the first pages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from folio.paper_metadata import Field
from folio.pdf import limits
from folio.text import one_line

_BEGINS = re.compile(
    r"^[ \t]*(?:extended\s+)?(?:a\s?b\s?s\s?t\s?r\s?a\s?c\s?t|summary)\b(?!\s+of\b)[ \t]*[\s.:—–-]*", re.I | re.M
)
_ENDS = re.compile(
    r"^[ \t]*(?:(?:\d{1,2}|I)[.:]?[ \t]*\n?[ \t]*(?:introduction|overview|motivation|background|the problem"
    r"|[A-Z][A-Za-z]+(?: [A-Za-z]+){0,4}$)"
    r"|introduction\b|statement of need|key\s?words|index terms|categories and subject|general terms"
    r"|ccs concepts|contents$"
    r"|(?:ams|msc|jel|pacs)\b[^\n]{0,30}classif|permission to|acknowledge?ments?|\d{4} mathematics subject"
    r"|copyright\b|©"
    r"|a (?:replication|reproduction) of\b|a preliminary version|[∗*†‡⋆] ?[A-Z])",
    re.I | re.M,
)
_SHORTEST = 100  # characters of an abstract that counts as certain


def find_abstract(texts: Sequence[str]) -> Field[str]:
    """The abstract below its heading, as one paragraph; Field("") if there is none.

    texts: the texts of the first pages. It is certain if it has at least _SHORTEST characters.
    """
    for number, text in enumerate(texts):
        head = text[: limits.FRONT_CHARACTERS]
        if begun := _BEGINS.search(head):
            # It may continue at the top of the next page.
            rest = (
                head[begun.end() :] + "\n" + (texts[number + 1][: limits.ABSTRACT] if number + 1 < len(texts) else "")
            )
            ended = _ENDS.search(rest, 20)
            abstract = _paragraph(rest[: ended.start() if ended else limits.ABSTRACT + 1])
            if ended is None or len(abstract) > limits.ABSTRACT:
                continue
            return Field(abstract, "page", len(abstract) >= _SHORTEST) if abstract else Field("")
    return Field("")


def _paragraph(text: str) -> str:
    """The lines joined into one, and hyphenated words rejoined."""
    return one_line(re.sub(r"(?<=[a-z])[-\u00ad]\n\s*(?=[a-z])", "", text))
