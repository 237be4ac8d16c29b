"""Blocks of a paper's text that have no heading: captions, footnotes, licence lines, affiliations. Pure.

A block is recognised by the beginning of its paragraph, and a footnote by its place on the page. In doubt, a paragraph
is ordinary text, because search leaves out licences and the like.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from folio.ingest.headings import clean_line
from folio.sections import Kind, PaperSection, SectionMap, overlap
from folio.types import PageMap

Span = tuple[int, int]

_PARAGRAPH = re.compile(r"[^\n]+(?:\n[^\n]+)*")
_CAPTION = re.compile(
    r"[ ]*(?P<name>(?:supplementary |supplemental |extended data )?"
    r"(?:fig(?:ure|\.)?|table|listing|algorithm|scheme|box))"
    r"[ ]*(?P<number>[A-Z]{0,2}[-.]?\d{1,3}(?:[.-]\d{1,3})?|[IVX]{1,6})[ ]?[.:|](?!\d)[ ]+\S",
    re.I,
)
_LEADERS = re.compile(r"(?:\.[ ]?){5,}")
# The first words of licences and of standard statements
_FORM = re.compile(
    r"[ ]*(?:permission (?:to (?:make|copy|reprint|republish|reproduce|use)|is (?:hereby )?granted)"
    r"|copyright\s*(?:©|\(c\)|held\b|is held\b|(?:19|20)\d\d)"
    r"|(?:©|\(c\))\s*(?:copyright\b|(?:the )?authors?\b|(?:19|20)\d\d)"
    r"|licen[cs]e\s*\n|licensed under\b|this is an? open[- ]access\b|open access this article"
    r"|this (?:work|article|paper|document|publication) (?:is|was)"
    r" (?:licensed|distributed|published|made available) under\b"
    r"|authors? of papers? retain\b|the authors? retains? (?:the )?copyright\b"
    r"|(?:the )?authors? (?:have )?declared? (?:that )?(?:no\b|they have no|there (?:is|are) no|that no)"
    r"|(?:competing|conflicts? of|declaration of (?:competing )?)\s*interests?(?: statement)?\s*[:.\n—–-]"
    r"|author(?:s|’s|'s|s’|s')? contributions?\s*[:.\n—–-]"
    r"|(?:\W{0,2}\s*)?correspond(?:ing author|ence)\b(?: should be (?:addressed|sent) to\b|[^.\n]{0,40}[:@]))",
    re.I,
)
_FORM_CHARACTERS = 1500
# A sentence in such a paragraph that is about the work itself; some PDFs have no spaces between its words
_CONTENT = re.compile(
    r"[ ]*(?:the[ ]?)?(?:code|data|open[ ]?peer[ ]?review|source|software)[^.\n]{0,40}(?:is|are)", re.I
)
_DATED = re.compile(
    r"[ ]*\W{0,2}[ ]*(?:manuscript )?"
    r"(?:received|accepted|submitted|published|revised|available online|first published)\b"
    r"(?:(?: on| in| online| for publication| in final form)*[ ]*[:;,]?[ ]*)(?:$|\n|[A-Z][a-z]{2,8}\.?[ ]\d|\d)",
    re.I,
)
_DATED_CHARACTERS = 250
# Affiliations
_INSTITUTION = re.compile(
    r"\b(?:universit\w+|università|institut\w*|departe?ment\w*|dept\b|laborator\w+|laboratoire|school of|college"
    r"|facult\w+|cent(?:er|re) for|academy|hospital|polytechnic\w*|inria|cnrs)\b",
    re.I,
)
_EMAIL = re.compile(r"[\w.}+-]+[ ]?@[ ]?[\w-]+(?:\.[\w-]+)+")
_MARKED = re.compile(r"[ ]*(?:\d{1,2}|[*∗†‡§¶a-h](?=[ ]?[A-Z]))[ ]?(?=[A-Z])")
_VERBS = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|we|our|it|this|that|these|which|can|will|would|should|they|not"
    r"|provides?|presents?|shows?|describes?|propose[sd]?|using|used)\b",
    re.I,
)
_AFFILIATION_CHARACTERS = 900
# This many characters of a bibliography without a year or an address are a table or a figure among its entries.
_STRETCH = 900
_CITED = re.compile(r"\b(?:1[5-9]|20)\d\d[a-z]?\b|[’']\d\d\b|https?:|doi|arXiv", re.I)
_APPENDIX = re.compile(r"[ ]*(?:appendi(?:x|ces)|supplement)", re.I)
# At least this share of a paragraph's characters are letters, if it is prose.
_LETTERS = 0.6


def blocks(
    text: str, pages: PageMap, sections: Sequence[PaperSection], footnotes: Sequence[Span]
) -> tuple[PaperSection, ...]:
    """The blocks of a text, ordered by their start, each within one of the sections or before them.

    text: the cleaned text. sections: those with headings, ordered by their start. footnotes: their spans.
    """
    starts = {section.start for section in sections}
    borders = sorted(starts.union(section.end for section in sections))
    cited = SectionMap(tuple(sections)).spans(lambda section: section.kind == "references")
    blocks_so_far: list[PaperSection] = []
    spans: list[Span] = []
    for kind, title, number, (start, end) in (
        *(("footnote", "", "", span) for span in footnotes if not overlap(cited, *span)),
        *_paragraph_blocks(text, pages, sections),
        *_foreign_blocks(text, sections),
    ):
        after = bisect_right(borders, start)
        end = min(end, borders[after]) if after < len(borders) else end
        end = start + len(text[start:end].rstrip())
        place = bisect_left(spans, (start, end))
        is_free = (place == 0 or spans[place - 1][1] <= start) and (place == len(spans) or end <= spans[place][0])
        if start < end and start not in starts and is_free:
            spans.insert(place, (start, end))
            blocks_so_far.append(PaperSection(start, end, 0, number, title, kind))
    return _joined(sorted(blocks_so_far, key=lambda block: block.start), text)


def _joined(separate: Sequence[PaperSection], text: str) -> tuple[PaperSection, ...]:
    """The blocks, with adjacent ones of the kind "other" joined."""
    joined: list[PaperSection] = []
    for block in separate:
        last = joined[-1] if joined else None
        if last and last.kind == block.kind == "other" and not text[last.end : block.start].strip():
            joined[-1] = replace(last, end=block.end)
        else:
            joined.append(block)
    return tuple(joined)


_Block = tuple[Kind, str, str, Span]  # kind, title, number, span


def _paragraph_blocks(text: str, pages: PageMap, sections: Sequence[PaperSection]) -> Iterator[_Block]:
    # Only text before the first heading on the first page can be an affiliation.
    front = min([pages.bounds(1, len(text))[1], *(section.start for section in sections if section.level)])
    for index, paragraph in enumerate(_PARAGRAPH.finditer(text)):
        start, end = paragraph.span()
        caption = _CAPTION.match(text, start, end)
        if caption and not _LEADERS.search(text, start, end):
            yield "caption", f"{clean_line(caption['name']).capitalize()} {caption['number']}", "", (start, end)
        elif (form := _FORM.match(text, start, end)) and end - start <= _FORM_CHARACTERS:
            yield "boilerplate", "", "", (start, _content_after(text, form.end(), end))
        elif _is_dates(text[start:end]) or (index > 0 and end <= front and _is_affiliation(text[start:end])):
            yield "boilerplate", "", "", (start, end)


def _content_after(text: str, start: int, end: int) -> int:
    """The start of the first line about the work itself; the end if there is none."""
    lines = (match.end() for match in re.compile("\n").finditer(text, start, end))
    return next((line for line in lines if _CONTENT.match(text, line, end)), end)


def _is_dates(paragraph: str) -> bool:
    """Whether a paragraph consists of dates of a manuscript: "Received 3 May 1843; accepted ..."."""
    if len(paragraph) > _DATED_CHARACTERS or not _DATED.match(paragraph):
        return False
    words = re.findall(r"[^\W\d_]{3,}", paragraph)
    return len(words) <= 14 and not _VERBS.search(paragraph)


def _is_affiliation(paragraph: str) -> bool:
    if len(paragraph) > _AFFILIATION_CHARACTERS or _VERBS.search(paragraph):
        return False
    if not _INSTITUTION.search(paragraph):
        return bool(_EMAIL.search(paragraph)) and len(paragraph) <= 200
    lines = paragraph.split("\n")
    begins = any(_MARKED.match(line) or _INSTITUTION.match(line.strip()) for line in lines)
    return begins or bool(_EMAIL.search(paragraph)) or (len(lines) > 1 and "," in paragraph)


def _foreign_blocks(text: str, sections: Sequence[PaperSection]) -> Iterator[_Block]:
    """Blocks among references or acknowledgements that are neither: a table, an appendix without a heading."""
    for section, after in pairwise((*sections, None)):
        assert section is not None
        end = min(section.end, after.start if after else section.end)
        paragraphs = [match.span() for match in _PARAGRAPH.finditer(text, section.start, end)]
        if section.kind == "acknowledgements":
            thanks = list(takewhile(lambda span: _is_thanks(text[slice(*span)]), paragraphs))
            for span in paragraphs[max(1, len(thanks)) :]:
                yield "other", "", "", span
        elif section.kind == "references":
            cited = [match.start() for match in _CITED.finditer(text, section.start, end)]
            for low, high in pairwise((*cited, end)):
                if high - low > _STRETCH:
                    inside = [span for span in paragraphs if low < span[0] and span[1] < high]
                    for span in inside if inside and inside[-1][1] - inside[0][0] > _STRETCH else ():
                        yield "other", "", "", span


def _is_thanks(paragraph: str) -> bool:
    """Whether a paragraph may continue the acknowledgements: it is prose and does not begin an appendix."""
    if _APPENDIX.match(paragraph):
        return False
    letters = sum(map(str.isalpha, paragraph))
    return letters >= _LETTERS * sum(not character.isspace() for character in paragraph)
