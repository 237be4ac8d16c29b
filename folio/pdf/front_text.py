"""What the text of the first pages says in words: the abstract, and the journal or the conference."""

from __future__ import annotations

import re
from collections.abc import Sequence

from folio.paper_metadata import Field
from folio.pdf import limits

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
_SHORTEST = 100  # characters of an abstract that is sure
_VENUE_WORD = re.compile(
    r"proc|conference|symposium|workshop|journal|transactions|annals|letters|bulletin|communications|[’'‘]\s?\d\d\b",
    re.I,
)
# A line that begins with the name of a journal or a conference, or says that the paper appeared there
_VENUE = re.compile(
    r"^\W{0,3}(?:(?:[Tt]o appear|[Aa]ppear(?:s|ed)?|[Pp]ublished|[Pp]resented)\s+(?:in|at)\s+(?:the\s+)?|[Ii]n:?\s+)?"
    r"((?:[Pp]roceedings|PROCEEDINGS|[Pp]roc\.)\s+(?:of\s+)?(?:the\s+)?.{8,120}"
    r"|(?:[Tt]he\s+)?(?:[A-Z][\w&]+\s+){0,4}(?:Transactions|Journal|Annals|Letters|Bulletin|Communications|JOURNAL)"
    r"\s+(?:of|on|in|OF|ON)\s+(?:the\s+)?[A-Z].{2,80}"
    r"|(?:\d{4}\s+)?(?:[A-Z0-9][\w/&]*\s+){1,8}(?:Conference|Symposium|Workshop)\b.{0,80}"
    r"|[A-Z][A-Za-z&/ ]{2,15}\s?[’'‘]\s?\d\d\b)"
)
_VENUE_ENDS = re.compile(
    r",?\s*(?:\bvol(?:ume)?\b\.?|\bno\.|\bpages?\b|\bpp?\.|\d+\s?\(|,\s*\d|\s\d+$|,\s*\w+ (?:19|20)\d\d\b|[;:]"
    r"|https?:|\bdoi\b).*$",
    re.I,
)


def find_abstract(texts: Sequence[str]) -> Field[str]:
    """The abstract below its heading, as a paragraph; sure if a heading follows it. texts: of the first pages."""
    for number, text in enumerate(texts):
        head = text[: limits.FRONT_CHARACTERS]
        if begun := _BEGINS.search(head):
            # It may go on at the top of the next page.
            rest = (
                head[begun.end() :] + "\n" + (texts[number + 1][: limits.ABSTRACT] if number + 1 < len(texts) else "")
            )
            ended = _ENDS.search(rest, 20)
            found = _paragraph(rest[: ended.start() if ended else limits.ABSTRACT + 1])
            if ended is None or len(found) > limits.ABSTRACT:
                continue
            return Field(found, "page", len(found) >= _SHORTEST) if found else Field("")
    return Field("")


def find_venue(text: str, title: str) -> Field[str]:
    """The journal or the conference that a line names. Never sure: the line may be about an earlier version."""
    for line in text.split("\n"):
        if not _VENUE_WORD.search(line) or not (match := _VENUE.match(line.strip())):
            continue
        venue = " ".join(_VENUE_ENDS.sub("", match[1]).split()).strip(" ,.;")
        if 4 < len(venue) <= limits.VENUE and venue.casefold() not in title.casefold():
            return Field(venue, "page")
    return Field("")


def _paragraph(text: str) -> str:
    """The lines as one, with words joined that a hyphen breaks."""
    return " ".join(re.sub(r"(?<=[a-z])[-\u00ad]\n\s*(?=[a-z])", "", text).split())
