"""Text -> the sentences in it, as spans."""

from __future__ import annotations

import re

# A sentence's end with what closes behind it, and a marker that is written without a space: "It is so.[1] Then"
_END = re.compile(
    r"(?<![.!?…。！？])[.!?…。！？]+(?:[\"'”’»)\]*]|\s»)*(?:[\[【]\d[\d,;\s–-]*[\]】])*(?=\s|$)"
    r"|[。！？]|\n\s*\n|\n(?=\s*(?:[•▪‣*–-]|\d{1,2}[.)])\s)"
)
_NEXT_STARTS = re.compile(r"\s+[\"'“‘«(\[]*[^\Wa-z_]|\s+[\"'“‘«(\[•▪‣–-]|\s*$|\s*\n\s*\n")
_ABBREVIATIONS = frozenset(
    "al alg approx cf ch chap col dept dr ed eds e.g eq eqs etc fig figs i.e inc jr lt ltd mr mrs ms nos p pp para"
    " prof ref refs resp sec sect st suppl tab th thm u.s v ver viz vol vs".split()
)
# These are also words, and abbreviations only before a number: "No. 5", but "The answer is no."
_BEFORE_A_NUMBER = frozenset({"app", "ex", "no"})
_NUMBER_FOLLOWS = re.compile(r"\s+\d")
# The number of a list item, which the markers of the sentence before may precede: "It is so. [1] 2. Then"
_ITEM_NUMBER = re.compile(r"\s*(?:[\[【(]+[^\[\]【】()]{1,40}[\]】)]+\s*)*\d+")
_LAST_WORD = re.compile(r"[\w.&]+$")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Spans [start, end) of the sentences of a text, without white space around them; list items count as sentences.

    A full stop ends a sentence when it is not an abbreviation's, an initial's or a number's, and what follows can begin
    one.
    """
    spans, start = [], 0
    for match in _END.finditer(text):
        if "\n" not in match.group() and not _ends_here(text, start, match):
            continue
        spans.append((start, match.end()))
        start = match.end()
    spans.append((start, len(text)))
    return [span for span in (stripped(text, *span) for span in spans) if span[0] < span[1]]


def _ends_here(text: str, start: int, match: re.Match[str]) -> bool:
    if match.group()[0] in "。！？":
        return True
    if not _NEXT_STARTS.match(text, match.end()):
        return False
    if match.group()[0] != ".":
        return True
    word = _LAST_WORD.search(text, max(start, match.start() - 24), match.start())
    if word is None:
        return True
    last = word.group()
    is_initial = len(last) == 1 and last.isupper() and last not in "IV"
    begins_list_item = _ITEM_NUMBER.fullmatch(text, start, match.start())
    before_number = last.casefold() in _BEFORE_A_NUMBER and _NUMBER_FOLLOWS.match(text, match.end())
    return not (is_initial or begins_list_item or before_number or last.casefold() in _ABBREVIATIONS)


def stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """The span [start, end) without the white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
