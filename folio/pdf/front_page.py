"""Reads a first page by its layout: which lines are the title, and which of those below it are the authors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from folio.pdf import limits
from folio.pdf.names import MARK, NOT_A_NAME, join_lines, names_in
from folio.pdf.page_lines import TITLE_ABOVE, FrontPage, Line, body_size, same_size
from folio.text import fold, one_line

# Lines that end the block of title and authors
_ABSTRACT = re.compile(
    r"^\W{0,3}(?:a\s?b\s?s\s?t\s?r\s?a\s?c\s?t|summary|r[ée]sum[ée]|zusammenfassung)(?P<rest>\W*$|\s*[.:—–-].*|\s.*)",
    re.I,
)
_STOP = re.compile(
    r"^\W{0,2}(?:(?:\d{1,2}|I)\.?\s{0,4})?(?:(?:introduction|motivation|overview|contents|table of contents"
    r"|preface|acknowledge?ments?)\W*$"
    r"|key\s?words|index terms|categories and subject|general terms|ccs concepts|thesis committee|committee"
    r"|submitted (?:in|to)"
    r"|a (?:thesis|dissertation)|(?:edited|reviewed|communicated) by|editors?\b|permission to|article history"
    r"|article info|research article\b.{40})",
    re.I,
)
# Lines that are never a title: banners of publishers, stamps, addresses of web pages, numbered headings, notices
_NO_TITLE = re.compile(
    r"^(?:arxiv:|https?:|www\.|doi\b|issn|isbn|vol(?:ume)?\.?\s*\d|(?:pp|pages?)\.?\s*\d|page \d"
    r"|\d+(?:\.\d+)*\.?\s+\w+(?:\s\w+)?$"
    r"|(?:the )?journal of |proceedings of |proc\.|ieee transactions|acm transactions|communications of the acm"
    r"|lecture notes in"
    r"|technical report|tech\. report|research (?:report|article|paper)$|report (?:no|number)|working paper"
    r"|original (?:article|paper|research)"
    r"|review article|invited (?:paper|talk)|short (?:paper|communication)$|open access"
    r"|contents lists? available|sciencedirect|springer"
    r"|elsevier|see discussions|this (?:paper|article|document|page|version|copy)|to appear|submitted to"
    r"|draft\b|preprint"
    r"|copyright|©|\(c\)|all rights|permission|keywords?|references$|bibliography|appendix|table of contents"
    r"|contents$"
    r"|(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.? (?:\d{1,2}, )?(?:19|20)\d\d$"
    r"|figure \d|fig\.|table \d"
    r"|department of|university of|school of|institute (?:of|for)|faculty of|laboratory for|\W*$)"
    r"|@|\bissn\b|\bdoi\.org|^\S+\.(?:com|org|net|edu|html?|pdf)\b|vol(?:ume)?\.? \d+,? no|(?:transactions"
    r"|journal) on? .{5,60}\b\d",
    re.I,
)
# A line of affiliations begins with the mark that names carry at their end.
_IS_MARKED = re.compile(rf"^[(\s]*(?:[{MARK}*†‡§¶]|\d)[\s)]*[^\s,;&]")


# A title with this ending continues on another line.
DANGLING = re.compile(
    r"(?:[:,&–—-]|\b(?:of|the|and|or|for|a|an|in|on|with|to|from|by|using|via|under|between|at|as))$", re.I
)


class Title(NamedTuple):
    text: str
    lines: tuple[Line, ...]
    score: float
    margin: float  # how much better it is than the next best, at most 9


class Authors(NamedTuple):
    names: tuple[str, ...]
    clear: bool  # no other line near them may be a name
    lines: tuple[Line, ...]


# Title


def find_title(page: FrontPage, agrees: Callable[[str], bool]) -> Title | None:
    """The most likely title; None if no line is likely enough. agrees: whether a text is the title in the metadata."""
    body, abstract = body_size(page), _abstract_top(page)
    groups = [group for group in _groups(page, abstract, body) if group[0].size > 0.97 * body]
    if not groups:
        return None
    largest = max(group[0].size for group in groups)
    scored = []
    for number, group in enumerate(groups):
        score = _title_score(group, page, body, largest, abstract, agrees)
        scored.append((score, -number, group))
    scored.sort(reverse=True)
    best, _, group = scored[0]
    if best < 1:
        return None
    margin = best - scored[1][0] if len(scored) > 1 else 9.0
    # A cover may set the beginning smaller: "Updated Recommendations on" above "the Treatment of Looms".
    for line in page.lines:
        is_above = -0.3 * line.size < group[0].top - line.bottom < group[0].size and _same_column(line, group[0])
        if is_above and DANGLING.search(line.text) and " " in line.text and not _NO_TITLE.search(line.text):
            group = [line, *group]
            break
    return Title(title_text(group), tuple(group), best, min(margin, 9.0))


def title_text(lines: Sequence[Line]) -> str:
    """The lines as one title, without the marks of footnotes at its end."""
    text = ""
    for line in lines:
        marked = line.name_text if line.name_text.endswith(MARK) else line.text
        shown = re.sub(rf"\s*[{MARK}∗*†‡§¶⋆]+\s*$", "", marked)
        shown = shown if MARK not in shown else line.text
        # A hyphen at the end of a line belongs to a compound, because titles are rarely hyphenated.
        text += shown if not text or text.endswith("-") else f" {shown}"
    return one_line(text)


def _begins_abstract(text: str) -> bool:
    """Whether a line is the heading of the abstract or its beginning; not "Abstract Interpretation", a subject."""
    match = _ABSTRACT.match(text)
    if not match:
        return False
    rest = match["rest"].strip()
    return not any(map(str.isalnum, rest)) or rest[0] in ".:—–-" or _is_prose(rest)


def _abstract_top(page: FrontPage) -> float:
    return min((line.top for line in page.lines if _begins_abstract(line.text)), default=page.height)


def _groups(page: FrontPage, abstract: float, body: float) -> Iterator[list[Line]]:
    """Lines of one size and weight that follow each other closely, in the upper part of the page."""
    used: set[int] = set()
    lines = [line for line in page.lines if line.top < TITLE_ABOVE * page.height]
    lines = [line for line in lines if line.top < abstract] or lines
    for index, first in enumerate(lines):
        if index in used or sum(map(str.isalpha, first.text)) < 2:
            continue
        group = [first]
        used.add(index)
        for later in range(index + 1, len(lines)):
            line = lines[later]
            if line.top - group[-1].bottom > 1.1 * first.size or len(group) >= limits.TITLE_LINES:
                break
            if later not in used and _continues_title(group, line, body):
                group.append(line)
                used.add(later)
        yield group


def _continues_title(group: Sequence[Line], line: Line, body: float) -> bool:
    """Whether a line continues a title."""
    last = group[-1]
    if not same_size(last, line, _title_tolerance(last, line, body)) or line.bold != last.bold:
        return False
    if _begins_abstract(line.text) or _STOP.match(line.text) or "@" in line.text:
        return False
    same_row = min(last.bottom, line.bottom) - max(last.top, line.top) > 0.5 * last.size
    if not same_row and not (line.x0 < last.x1 and last.x0 < line.x1):
        return False
    if same_row and line.x0 - last.x1 > 3 * last.size:
        return False
    if len(group) > 1 and not same_row:  # the lines of a title are evenly spaced
        step = group[1].top - group[0].top
        if step > 0.5 * last.size and line.top - last.top > 1.35 * step:
            return False
    is_list = len(names_in(line.name_text)) > 1 or (MARK in line.name_text and names_in(line.name_text))
    return not is_list and not (line.font != last.font and names_in(line.name_text))


def _title_tolerance(last: Line, line: Line, body: float) -> float:
    """The largest relative difference of type size between two lines of a title: scans vary, subtitles are smaller."""
    is_large = body and min(last.size, line.size) > 1.15 * body and line.top - last.bottom < 0.5 * last.size
    if is_large and not names_in(line.name_text):
        return 0.35 if DANGLING.search(last.text) else 0.12
    return 0.06


def _title_score(
    group: Sequence[Line], page: FrontPage, body: float, largest: float, abstract: float, agrees: Callable[[str], bool]
) -> float:
    text, first = title_text(group), group[0]
    words, letters = text.split(), sum(map(str.isalpha, text))
    if letters < 3 or len(text) > limits.TITLE or _begins_abstract(text) or _STOP.match(text):
        return -9.0
    score = 0.0
    smallest = min(line.size for line in page.lines)
    # A cover has no body text, so compare with its other lines.
    ratio = first.size / body if body else 1 + 0.6 * (first.size - smallest) / max(1.0, largest - smallest)
    score += max(-3.0, min(3.0, 8 * (ratio - 1)))
    score += 1.0 if first.size >= 0.98 * largest and (body or largest > 1.02 * smallest) else 0.0
    score += 0.6 if first.bold else 0.0
    middle = (min(line.x0 for line in group) + max(line.x1 for line in group)) / 2
    score += 0.6 if abs(middle - page.width / 2) < 0.04 * page.width else 0.0
    score += 0.5 if 2 <= len(words) <= 22 else -1.0
    score -= 2.0 if len(words) > 32 else 0.0
    score -= 1.5 if len(words) == 1 and text.isupper() and len(text) < 9 else 0.0
    score -= 1.5 * first.top / page.height
    score -= 1.0 if first.top > 0.4 * page.height and body else 0.0
    score -= 1.5 if first.x0 > 0.5 * page.width and body else 0.0
    score -= 4.0 if _NO_TITLE.search(text) else 0.0
    score -= 3.0 if first.top > abstract else 0.0
    score -= 2.0 if first.bottom < 0.06 * page.height and ratio < 1.15 else 0.0
    score -= 1.5 if text.endswith(".") and len(words) > 6 else 0.0
    score -= 1.0 if text[0].islower() else 0.0
    score -= 3.0 if letters < 0.5 * len(text.replace(" ", "")) else 0.0
    score -= 2.0 if len(names_in(first.name_text)) > 1 or re.match(r"by\s", text, re.I) else 0.0
    below = [line for line in page.lines if line.top > group[-1].top + 0.5 * group[-1].size and line not in group][:4]
    score += 1.5 if any(names_in(line.name_text) for line in below) and not names_in(first.name_text) else 0.0
    score += 4.0 if agrees(text) else 0.0
    # A line below paragraphs is the heading of a section.
    above = sum(line.bottom < first.top and _is_prose(line.text) for line in page.lines) if score > 0 else 0
    score -= 6.0 if above > 3 else 0.0
    return score


# Authors


def find_authors(page: FrontPage, title: Title) -> Authors:
    """The names below the title, above the abstract or the text.

    The first line of names shows how names are set. The affiliation, address and e-mail stand below it in its column.
    A line there holds names only if it is set in the same style and begins a new entry.
    """
    names_so_far: list[str] = []
    used: set[Line] = set()
    clear, style, unexplained, between = True, None, 0, 0
    region = list(_below(page, title))
    for index, line in enumerate(region):
        if line in used:
            continue
        run = _run(region, index)
        names = names_in(join_lines([piece.name_text for piece in run])) if len(run) > 1 else []
        if not names:
            run, names = [line], names_in(line.name_text)
        if not names or _IS_MARKED.match(line.name_text):
            clear = clear and _is_explained(line)
            unexplained += not _is_explained(line)
        elif style is None or (_same_style(style, line) and not _is_affiliation(region, index, used, style, names)):
            clear = clear and not _stacked(line, used)
            style = style or line
            names_so_far += names
            used.update(run)
            between = unexplained
        else:
            clear = clear and not same_size(style, line) and len(names) == 1
    if between > 2 * len(used):  # a form or a table, not a block of authors
        return Authors((), False, ())
    # A name that occurs twice is an affiliation.
    unique = tuple(name for name in dict.fromkeys(names_so_far) if names_so_far.count(name) == 1)
    lines = tuple(line for line in region if line in used)
    is_cut_off = bool(lines) and bool(re.search(r"(?:,|\band|&)\W*$", lines[-1].text))
    is_whole = len(unique) == len(names_so_far) and not is_cut_off and all(" " in name for name in unique)
    return Authors(unique, clear and is_whole, lines)


def _is_affiliation(region: Sequence[Line], index: int, used: set[Line], style: Line, names: Sequence[str]) -> bool:
    """Whether a line that looks like names continues the entry above it in its column, as an affiliation does."""
    line = region[index]
    if any(_same_row(line, other) for other in used):
        return False
    if NOT_A_NAME.search(line.name_text) and not NOT_A_NAME.search(style.name_text):
        return True
    if len(names) == 1 and _is_domain(names[0], region):
        return True
    above = [other for other in region[:index] if _same_column(line, other) and not _same_row(line, other)]
    last = above[-1] if above else style
    if last in used or "@" in last.text or not _same_style(last, line) or line.top - last.bottom > 0.5 * line.size:
        return False
    below = (other for other in region[index + 1 :] if _same_column(line, other) and not _same_row(line, other))
    after = next(below, None)
    return after is None or "@" in after.text or not NOT_A_NAME.search(after.text)


def _is_domain(name: str, region: Sequence[Line]) -> bool:
    """Whether an e-mail's domain begins with the first word of a name, which then names an organisation."""
    first = fold(name.split()[0])
    domains = re.findall(r"@\s?([\w.-]+)", " ".join(line.text for line in region))
    return len(first) > 2 and any(part.startswith(first) for domain in domains for part in domain.lower().split("."))


def _stacked(line: Line, used: set[Line]) -> bool:
    """Whether a single name without a mark stands right below another one: it may be that person's workplace."""
    return (
        MARK not in line.name_text
        and len(names_in(line.name_text)) == 1
        and any(
            _same_column(line, other)
            and -0.5 * line.size < line.top - other.bottom < 0.5 * line.size
            and len(names_in(other.name_text)) == 1
            and not other.text.endswith(",")
            for other in used
        )
    )


def _same_row(line: Line, other: Line) -> bool:
    return min(line.bottom, other.bottom) - max(line.top, other.top) > 0.5 * min(line.size, other.size)


def _same_column(line: Line, other: Line) -> bool:
    return line.x0 < other.x1 and other.x0 < line.x1


def _run(region: Sequence[Line], index: int) -> list[Line]:
    """A line and the lines right below it in its column and style, up to an affiliation."""
    run = [region[index]]
    row = [line for line in region if _same_row(run[0], line)]
    if len(row) > 1 and not any("," in line.name_text for line in row):
        return run  # names side by side are read by row
    for line in region[index + 1 :]:
        last = run[-1]
        if line.top < last.top + 0.5 * last.size:
            if line.x0 > last.x1 + 3 * last.size:
                continue  # another column
            break
        if (
            line.top - last.bottom > last.size
            or NOT_A_NAME.search(line.name_text)
            or not (_same_style(last, line) or (last.text.endswith(",") and same_size(last, line, 0.15)))
        ):
            break
        if _IS_MARKED.match(line.name_text):
            break
        if _same_column(line, last):
            run.append(line)
    return run


def _below(page: FrontPage, title: Title) -> Iterator[Line]:
    """The lines between the title and the abstract, or the first lines of prose."""
    last = title.lines[-1]
    sparse = not body_size(page)
    prose = 0
    for line in page.lines:
        if line.top < last.top + 0.5 * last.size or line in title.lines:
            continue
        if _begins_abstract(line.text) or _STOP.match(line.text) or line.top > 0.95 * page.height:
            return
        # A list of a hundred authors fills the page.
        if line.top > 0.6 * page.height and not sparse and not (MARK in line.name_text and "," in line.text):
            return
        prose = prose + 1 if _is_prose(line.text) else 0
        if prose > 1:
            return
        yield line


def _is_prose(text: str) -> bool:
    words = text.split()
    return len(words) >= 6 and sum(word[0].islower() for word in words) > 0.5 * len(words)


def _is_explained(line: Line) -> bool:
    """Whether a line without names is clearly something else: an affiliation, an address, a date."""
    return (
        bool(NOT_A_NAME.search(line.text))
        or bool(_IS_MARKED.match(line.name_text))
        or len(line.text) < 4
        or _is_prose(line.text)
    )


def _same_style(line: Line, other: Line) -> bool:
    return same_size(line, other) and (
        line.font == other.font or (line.bold == other.bold and _family(line) == _family(other))
    )


def _family(line: Line) -> str:
    return re.sub(r"^[A-Z]{6}\+|[-,].*|\d+$", "", line.font)


def has_abstract(page: FrontPage) -> bool:
    """Whether a line of the page begins an abstract."""
    return any(_begins_abstract(line.text) for line in page.lines)
