"""The title and the authors of a paper, found by the layout of its front page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from folio.pdf import limits
from folio.pdf.dates import MONTH
from folio.pdf.front_page import TITLE_ABOVE, FrontPage, Line, body_size, same_size
from folio.pdf.names import MARK, NOT_A_NAME, is_prose, names_in
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
_NO_TITLE_LINE = re.compile(
    r"^(?:arxiv:|https?:|www\.|doi\b|issn|isbn|vol(?:ume)?\.?\s*\d|(?:pp|pages?)\.?\s*\d|page \d"
    r"|running (?:head|title)|short title"
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
_ORGANISATION = re.compile(
    r"universi|institut|departm|laborator|\blabs?\b|school|college|academ|societ|research|hospital", re.I
)
_BYLINE = re.compile(r"by\s", re.I)
# "Alan Kay, now at" continues with a place.
_PLACE_FOLLOWS = re.compile(r"(?:^|\s)(?:at|of|in|from|with|for|the)$")
# A line of affiliations begins with the mark that names carry at their end.
_IS_MARKED = re.compile(rf"^[(\s]*(?:[{MARK}*†‡§¶]|\d)[\s)]*[^\s,;&]")
# A title with this ending continues on another line.
DANGLING = re.compile(
    r"(?:[:,&–—-]|\b(?:of|the|and|or|for|a|an|in|on|with|to|from|by|using|via|under|between|at|as))$", re.I
)


_INITIAL = re.compile(r"(?:^|\s)[^\W\d_]\.")
# A date or the number of a version, which may stand below a title
_DATED = re.compile(rf"\b(?:1[89]|20)\d\d\b|\d\.\d|\bv(?:ersion)?\W?\d|\b{MONTH}\s+\d", re.I)
# Type larger than this share of the body's, close to a title, is a part of it.
LARGER = 1.15


class Title(NamedTuple):
    text: str
    lines: tuple[Line, ...]
    score: float
    margin: float  # how much better it is than the next best, at most 9
    shown: FrontPage

    def is_continued(self, beginning: str) -> bool:
        """Whether it begins with a folded text and goes on with words of the paper."""
        if not beginning or not fold(self.text).startswith(beginning):
            return False
        rest = next((self.text[at:] for at in range(len(self.text) + 1) if fold(self.text[:at]) == beginning), "")
        return self.shown.is_wording(rest)


class Authors(NamedTuple):
    names: tuple[str, ...]
    clear: bool  # no other line near them may be a name
    lines: tuple[Line, ...]
    is_below: bool = True  # below the title, where authors usually stand


def find_title(page: FrontPage, agrees: Callable[[str], bool]) -> Title | None:
    """The most likely title; None if no line is likely enough. agrees: whether a text is the title in the metadata."""
    body = body_size(page)
    abstract = min((line.top for line in page.lines if _begins_abstract(line.text)), default=page.height)
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
    lines = _extended(group, page, body)
    return Title(title_text(lines), lines, best, min(margin, 9.0), page)


def title_text(lines: Sequence[Line]) -> str:
    """The lines as one title, without the marks of footnotes at its end."""
    text = ""
    for line in lines:
        marked = line.name_text if line.name_text.endswith(MARK) else line.text
        shown = re.sub(rf"\s*[{MARK}∗*†‡§¶⋆]+\s*$", "", marked)
        shown = shown if MARK not in shown else line.text
        # A hyphen at the end of a line belongs to a compound, because titles are rarely hyphenated.
        text += shown if not text or text.endswith("-") else f" {shown}"
    return one_line(re.sub(r"[\s,]*(?:[∗*†‡§¶⋆][\s,]*)+$", "", text))


def _begins_abstract(text: str) -> bool:
    """Whether a line is the heading of the abstract or its beginning; not "Abstract Interpretation", a subject."""
    match = _ABSTRACT.match(text)
    if not match:
        return False
    rest = match["rest"].strip()
    return not any(map(str.isalnum, rest)) or rest[0] in ".:—–-" or is_prose(rest)


def _groups(page: FrontPage, abstract: float, body: float) -> Iterator[list[Line]]:
    """Lines of one size and face that follow each other closely, in the upper part of the page: each may be the title.

    Names that follow it in the same type, as typescripts set them, do not belong to it.
    """
    used: set[int] = set()
    lines = [line for line in page.lines if line.top < TITLE_ABOVE * page.height]
    lines = [line for line in lines if line.top < abstract] or lines
    tolerance = _tolerance(page)
    for index, first in enumerate(lines):
        if index in used or sum(map(str.isalpha, first.text)) < 2:
            continue
        group = [first]
        used.add(index)
        for later in range(index + 1, len(lines)):
            line = lines[later]
            if _gap(group[-1], line) > 1.1 * first.size or len(group) >= limits.TITLE_LINES:
                break
            if later not in used and _continues_title(group, line, tolerance):
                group.append(line)
                used.add(later)
        yield _without_people(group, page)


def _tolerance(page: FrontPage) -> float:
    """The largest relative difference of type size between two lines of a title: the sizes of scans vary."""
    sizes = sorted(line.size for line in page.lines if len(line.text) > 30)
    usual = sizes[len(sizes) // 2] if sizes else 0.0
    alike = sum(abs(size - usual) < 0.03 * usual for size in sizes)
    return 0.06 if 2 * alike >= len(sizes) else 0.15


def _gap(above: Line, below: Line) -> float:
    """The space between two lines. The boxes of some fonts are lower than their type."""
    return below.top - max(above.bottom, above.top + above.size)


def _continues_title(group: Sequence[Line], line: Line, tolerance: float) -> bool:
    """Whether a line has the size and face of the lines of a title above it, and their distance."""
    last = group[-1]
    if not same_size(last, line, tolerance) or line.bold != last.bold:
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
    return True


def _without_people(group: list[Line], page: FrontPage) -> list[Line]:
    """The lines of a group before the first names in it: several, or one on a page that is in one size of type."""
    for index, (last, line) in enumerate(pairwise(group), 1):
        if line.text.lower() == "by":
            return group[:index]
        if DANGLING.search(last.text) or not page.names(line):
            continue
        if _is_list_of_people(line, page) or all(same_size(line, other) for other in page.lines):
            return group[:index]
    return group


def _is_list_of_people(line: Line, page: FrontPage) -> bool:
    """Whether a line holds names beyond doubt: several, or one with initials or with the mark of a note."""
    names = page.names(line)
    return len(names) > 1 or (bool(names) and (MARK in line.name_text or bool(_INITIAL.search(names[0]))))


def _extended(group: Sequence[Line], page: FrontPage, body: float) -> tuple[Line, ...]:
    """The title with its first words and its subtitle, where they are set in a smaller size, close to it."""
    lines = list(group)
    # A cover may set the beginning smaller: "Updated Recommendations on" above "the Treatment of Looms".
    for line in page.lines:
        is_above = -0.3 * line.size < group[0].top - line.bottom < group[0].size and _same_column(line, group[0])
        if not is_above or len(line.text) > limits.TITLE or " " not in line.text:
            continue
        if DANGLING.search(line.text) and not _NO_TITLE_LINE.search(line.text):
            lines.insert(0, line)
            break
    below = [line for line in page.lines if line.top > group[-1].top + 0.5 * group[-1].size]
    subtitle = list(_run_of_style([line for line in below if _same_column(line, group[-1])], group[-1]))
    if not subtitle or len(lines) + len(subtitle) > limits.TITLE_LINES:
        return tuple(lines)
    gap, is_open = _gap(group[-1], subtitle[0]), bool(DANGLING.search(group[-1].text))
    is_near = gap < 0.6 * group[-1].size and subtitle[0].size > LARGER * body > 0
    if (is_near or (is_open and gap < group[-1].size)) and _is_subtitle(subtitle, page):
        lines += subtitle
    return tuple(lines)


def _run_of_style(lines: Sequence[Line], above: Line) -> Iterator[Line]:
    """The first of these lines and those of its style that follow it closely."""
    for line in lines:
        is_first = above is not lines[0] and line is lines[0]
        if not is_first and (not _same_style(above, line) or _gap(above, line) > 0.6 * line.size):
            return
        yield line
        above = line


def _is_subtitle(lines: Sequence[Line], page: FrontPage) -> bool:
    """Whether lines below a title are a part of it, by their words: those of the paper, no sentence, no banner."""
    text = " ".join(line.text for line in lines)
    return (
        len(text) <= limits.TITLE
        and page.is_wording(text)
        and not text.rstrip().endswith(".")
        and not _DATED.search(text)
        and not any(page.names(line) or _NO_TITLE_LINE.search(line.text) for line in lines)
        and not any(_STOP.match(line.text) or _begins_abstract(line.text) for line in lines)
    )


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
    score -= 3.0 if len(words) == 1 and any(map(str.isdigit, text)) else 0.0  # the number of a report
    score -= 1.5 * first.top / page.height
    score -= 1.0 if first.top > 0.4 * page.height and body else 0.0
    score -= 1.5 if first.x0 > 0.5 * page.width and body else 0.0
    score -= 4.0 if _NO_TITLE_LINE.search(text) else 0.0
    score -= 3.0 if first.top > abstract else 0.0
    score -= 2.0 if first.bottom < 0.06 * page.height and ratio < 1.15 else 0.0
    score -= 1.5 if text.endswith(".") and len(words) > 6 else 0.0
    score -= 1.0 if text[0].islower() else 0.0
    score -= 3.0 if letters < 0.5 * len(text.replace(" ", "")) else 0.0
    score -= 2.0 if len(page.names(first)) > 1 or re.match(r"by\s", text, re.I) else 0.0
    below = [line for line in page.lines if line.top > group[-1].top + 0.5 * group[-1].size and line not in group][:4]
    score += 1.5 if any(page.names(line) for line in below) and not page.names(first) else 0.0
    score += 4.0 if agrees(text) else 0.0
    if body and score > 0 and below and is_prose(below[0].text) and _names_above(page, first):
        score -= 2.0  # the heading of a section below the names
    # A line below paragraphs is the heading of a section.
    above = sum(line.bottom < first.top and is_prose(line.text) for line in page.lines) if score > 0 else 0
    score -= 6.0 if above > 3 else 0.0
    return score


def _names_above(page: FrontPage, first: Line) -> bool:
    """Whether names stand above a line, which then is rather the heading of a section."""
    return any(page.names(line) for line in page.lines if line.bottom < first.top)


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
        names = page.names(*run) if len(run) > 1 else []
        if not names:
            run, names = [line], page.names(line)
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


def find_authors_elsewhere(page: FrontPage, title: Title) -> Authors:
    """Names that stand alone somewhere else on the page: above the title, below the abstract, beside a photograph.

    They are told by their form alone, so they are never certain. A byline counts most, then a list of people, then a
    single name with an address below it.
    """
    body = max(page.lines, key=lambda line: len(line.text), default=None)
    found: dict[int, list[Line]] = {}  # how clear it is -> the first lines of that kind
    for index, line in enumerate(page.lines):
        if line in title.lines or not page.names(line) or not _stands_alone(page, index):
            continue
        is_distinct = body is None or not _same_style(line, body) or line.text.isupper()
        if _BYLINE.match(line.text):
            found.setdefault(3, _with_names_below(page, index))
        elif is_distinct and not _is_heading(page, index) and _is_list_of_people(line, page):
            found.setdefault(2, _with_names_below(page, index))
        elif is_distinct and _has_address(page, index):
            found.setdefault(1, [line])
    lines = found[max(found)] if found else []
    names = tuple(dict.fromkeys(name for line in lines for name in page.names(line)))
    return Authors(names, False, tuple(lines), is_below=False)


def _with_names_below(page: FrontPage, index: int) -> list[Line]:
    """A line of names and those of its style and column that follow it closely."""
    run = [page.lines[index]]
    for line in page.lines[index + 1 :]:
        if line.top - run[-1].bottom > line.size:
            break
        if _same_style(run[0], line) and _same_column(run[0], line) and page.names(line):
            run.append(line)
    return run


def _stands_alone(page: FrontPage, index: int) -> bool:
    """Whether a line is no part of a paragraph, no banner and no note."""
    line = page.lines[index]
    if NOT_A_NAME.search(line.name_text) or _NO_TITLE_LINE.search(line.text) or _IS_MARKED.match(line.name_text):
        return False
    if _STOP.match(line.text) or line.top > 0.95 * page.height or not any(map(str.isascii, line.text)):
        return False
    return not any(
        -0.5 * line.size < max(line.top - other.bottom, other.top - line.bottom) < 0.5 * line.size
        and _same_column(line, other)
        and _same_style(line, other)
        and (is_prose(other.text) or other.text.endswith((",", "-")))
        for other in page.lines
        if other is not line
    )


def _is_heading(page: FrontPage, index: int) -> bool:
    """Whether prose follows right below a line."""
    line = page.lines[index]
    below = (other for other in page.lines[index + 1 :] if _same_column(line, other) and not _same_row(line, other))
    after = next(below, None)
    return after is not None and is_prose(after.text) and after.top - line.bottom < line.size


def _has_address(page: FrontPage, index: int) -> bool:
    """Whether an institution or an e-mail stands right below a name."""
    line = page.lines[index]
    below = (other for other in page.lines[index + 1 :] if _same_column(line, other) and not _same_row(line, other))
    after = next(below, None)
    return (
        after is not None
        and after.top - line.bottom < 1.5 * line.size
        and not is_prose(after.text)
        and ("@" in after.text or bool(_ORGANISATION.search(after.text)))
    )


def _is_affiliation(region: Sequence[Line], index: int, used: set[Line], style: Line, names: Sequence[str]) -> bool:
    """Whether a line that looks like names continues the entry above it in its column, as an affiliation does."""
    line = region[index]
    if any(_same_row(line, other) for other in used):
        return False
    before = next((other for other in reversed(region[:index]) if not _same_row(line, other)), None)
    if before is not None and _PLACE_FOLLOWS.search(before.text):
        return True
    if NOT_A_NAME.search(line.name_text) and not NOT_A_NAME.search(style.name_text):
        return True
    if len(names) == 1 and _is_domain(names[0], region):
        return True
    above = [other for other in region[:index] if _same_column(line, other) and not _same_row(line, other)]
    last = above[-1] if above else style
    if last in used and len(names) == 1 and line.top - last.bottom < 0.5 * line.size and _place_below(region, index):
        return True
    if last in used or "@" in last.text or not _same_style(last, line) or line.top - last.bottom > 0.5 * line.size:
        return False
    below = (other for other in region[index + 1 :] if _same_column(line, other) and not _same_row(line, other))
    after = next(below, None)
    return after is None or "@" in after.text or not NOT_A_NAME.search(after.text)


def _place_below(region: Sequence[Line], index: int) -> bool:
    """Whether a town or a country stands right below a line, which then is an organisation below a name."""
    line = region[index]
    below = (other for other in region[index + 1 :] if _same_column(line, other) and not _same_row(line, other))
    after = next(below, None)
    return (
        after is not None
        and after.top - line.bottom < 0.5 * line.size
        and _same_style(line, after)
        and after.text[0].isupper()
        and not names_in(after.name_text)
        and not ("@" in after.text or is_prose(after.text))
        and not (_ORGANISATION.search(after.text) or _DATED.search(after.text))
    )


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
    # The last name of a column may be an organisation, with its town below it: "Germany" continues no full name.
    while len(run) > 1 and (_is_one_word(run[-1]) and names_in(run[-2].name_text)):
        run.pop()
    if len(run) > 1 and len(names_in(run[-1].name_text)) == 1 and _place_below(region, region.index(run[-1])):
        run.pop()
    return run


def _is_one_word(line: Line) -> bool:
    return line.text.isalpha() and line.name_text == line.text


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
        prose = prose + 1 if is_prose(line.text) else 0
        if prose > 1:
            return
        yield line


def _is_explained(line: Line) -> bool:
    """Whether a line without names is clearly something else: an affiliation, an address, a date."""
    return (
        bool(NOT_A_NAME.search(line.text))
        or bool(_IS_MARKED.match(line.name_text))
        or len(line.text) < 4
        or is_prose(line.text)
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
