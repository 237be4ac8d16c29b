"""The front matter of a paper, from its first pages, the PDF's metadata and the name of its file.

The page counts for more than the metadata, which programs fill with titles of templates, logins and file names. Its
layout shows which lines are the title, and which of the lines below it are the authors. The place of publication is a
separate line, such as "In Proceedings of" or "Vol. 3, No. 1", in the margins or below the title: a venue inside a
sentence belongs to another paper or to an earlier version.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise
from statistics import median_low
from typing import Any, NamedTuple

from folio.papers.identifiers import DOI_ADDRESS, DOI_START
from folio.papers.metadata import MASTER, PHD, TECHNICAL, Field, Metadata, PersonName
from folio.papers.people import families, split_name
from folio.pdf import limits
from folio.pdf.accents import compose_accents
from folio.pdf.dates import MONTH, find_year
from folio.pdf.identifiers import arxiv_id, paper_doi
from folio.pdf.mupdf import without_lines
from folio.pdf.names import MARK, NOT_A_NAME, common_words, is_prose, join_lines, names_in, without_contact
from folio.text import fold, one_line

# Titles that programs fill in by themselves
_NO_TITLE = re.compile(
    r"^(?:untitled.*|no title|title|document\d*|microsoft \w+ - .*|powerpoint presentation|slide 1"
    r"|proceedings template.*"
    r"|.*\btemplate\b.*|latex with hyperref.*|paper title.*|print|temp|\d[\d\W]*|gnuplot plot|instructions for .*"
    r"|.*\.(?:pdf|docx?|tex|dvi|ps|indd|pptx?|rtf|odt|qxd|eps|wpd|fm|sxw|html?)|/.*|[a-z]:\\.*|https?:.*|www\..*"
    r"|arxiv:\S+.*|doi:?\s*\S+|10\.\d{4,}/\S+|abstract|introduction|\d+\.? .{0,30}introduction)$",
    re.I,
)
_NO_AUTHOR = re.compile(
    r"^(?:unknown|anonymous|author|admin\w*|user|owner|root|latex.*|.*\.com|.*[@/\\\d].*|microsoft.*|adobe.*"
    r"|ieee|acm)$",
    re.I,
)
# Cover sheets that libraries and networks put in front of a paper
_COVER = re.compile(
    r"see discussions, stats|researchgate|jstor|this content downloaded|hal (?:is a|id:)|archives-ouvertes"
    r"|citation for published"
    r"|downloaded from|see profile|this version is available|link to publication|terms of use|to cite this version",
    re.I,
)
_BETWEEN = re.compile(r"\s*(?:[,;·•|]\s*(?:and|&)\s+|[,;·•|]|\s(?:and|&|und|et)\s)\s*")
_XMP_ITEM = re.compile(r"<rdf:li[^>]{0,100}>([^<]{1,1000})</rdf:li>")
_XMP_DOI = re.compile(
    r"(?:prism:doi|pdfx?:doi|dc:identifier)(?:>|=\")\s*(?:doi:\s*"
    rf"|{DOI_ADDRESS})?({DOI_START}[^<\"\s]{{1,200}})",
    re.I,
)
# The words of the paper are collected from this many characters of its first pages and its end.
_WORDS_WITHIN = 12_000
# A title that only the page gives is certain from this score and margin.
_SURE_SCORE, _SURE_MARGIN = 3.0, 1.5


class PageText:
    """One of the first pages of a file: its text, and its lines by layout, which are computed on first use."""

    def __init__(self, blocks: Sequence[Mapping[str, Any]], width: float, height: float, text: str) -> None:
        self._blocks, self._width, self._height, self.text = blocks, width, height, text

    @cached_property
    def page(self) -> FrontPage:
        return front_page(self._blocks, self._width, self._height)

    def without(self, places: Set[tuple[float, float]], text: str) -> PageText:
        """The page with this text and without the lines at these places: their left and top, in points."""
        blocks = without_lines(self._blocks, places)
        return PageText(blocks, self._width, self._height, text)


class _Candidate(NamedTuple):
    title: Title | None
    authors: Authors
    text: PageText


def read_front_matter(
    metadata: Mapping[str, str], pages: Sequence[PageText], margin: Sequence[str], file: str, end: str
) -> Metadata:
    """The metadata of a paper; fields without a value have Metadata's defaults.

    metadata: from MuPDF, with "xmp" for the XMP packet. pages: the first pages, at most limits.FRONT_PAGES.
    margin: the texts that run up or down the first page. file: the file's name. end: the end of the paper's text.
    """
    metadata = {**metadata, **_from_xmp(metadata.get("xmp", ""))}
    given_title = _metadata_title(metadata.get("title", ""))
    given_authors = _metadata_authors(metadata.get("author", ""))
    common = common_words("\n".join([*(page.text for page in pages), end])[:_WORDS_WITHIN])
    best = _best_page(pages, given_title, common)
    title = _title(best, pages, given_title)
    authors = _authors(best, pages, given_authors, metadata.get("author", ""), title.sure)
    if any(set(map(fold, str(name).split())) & set(map(fold, title.value.split())) for name in authors.value):
        authors = replace(authors, sure=False)  # "Loom Authors" for a paper on "Loom" is a group, not a person
    texts = "\n".join(page.text for page in _first_texts(pages, best))[: limits.FRONT_CHARACTERS]
    arxiv = arxiv_id(metadata, margin, file)
    publication = find_publication(texts, title.value, [name.family for name in authors.value])
    stated = publication.year if publication.venue.sure else None
    with_doi = {key: value for key, value in metadata.items() if key in ("doi", "subject", "title")}
    return Metadata(
        title=title,
        authors=authors,
        year=find_year("\n".join((texts, *margin)), arxiv.value, metadata.get("creationDate", ""), end, stated),
        doi=paper_doi(with_doi, texts),
        arxiv=arxiv,
        venue=publication.venue,
        kind=publication.kind,
        genre=publication.genre,
        volume=publication.volume,
        issue=publication.issue,
        pages=publication.pages,
        abstract=find_abstract([page.text for page in pages]),
    )


def _best_page(pages: Sequence[PageText], given_title: str, common: frozenset[str]) -> _Candidate | None:
    """The page with the title and the authors: the first one, unless it is a cover."""
    if not pages:
        return None
    first = _candidate(pages[0], given_title, common)
    is_sheet, is_sparse = bool(_COVER.search(pages[0].text)), not body_size(pages[0].page)
    if first.title and first.authors.names and not is_sheet and not is_sparse:
        return first
    on_first = fold(pages[0].text)
    for page in pages[1:]:
        other = _candidate(page, given_title, common)
        if other.title is None or not other.authors.names:
            continue
        is_repeated = len(fold(other.title.text)) > 8 and fold(other.title.text) in on_first
        if (has_abstract(page.page) and (is_sheet or is_sparse or first.title is None)) and (
            is_repeated or not first.authors.names
        ):
            return other
        if is_repeated and (not first.authors.names or is_sheet):
            return other
    return first


def _candidate(page: PageText, given_title: str, common: frozenset[str]) -> _Candidate:
    folded = fold(given_title)

    def agrees(text: str) -> bool:
        on_page = fold(text)
        return bool(on_page) and (
            on_page == folded
            or (len(on_page) > 12 and (folded.startswith(on_page) or (on_page.startswith(folded) and len(folded) > 12)))
        )

    front = page.page._replace(common=common)
    title = find_title(front, agrees)
    if title is None:
        return _Candidate(None, Authors((), False, ()), page)
    authors = find_authors(front, title)
    if authors.names:
        return _Candidate(title, authors, page)
    if len(title.lines) > 1 and not agrees(title.text) and (names := front.names(title.lines[-1])):
        # Typescripts set the author like the title.
        title = title._replace(lines=title.lines[:-1], text=title_text(title.lines[:-1]), margin=0.0)
        authors = Authors(tuple(names), False, title.lines[-1:])
    else:
        authors = find_authors_elsewhere(front, title)
    return _Candidate(title, authors, page)


def _first_texts(pages: Sequence[PageText], best: _Candidate | None) -> list[PageText]:
    """The pages up to the one with the title, and the next one if the title is on a cover with little text."""
    at = next((number for number, page in enumerate(pages) if best and page is best.text), 0)
    until = at + 2 if pages and not body_size(pages[at].page) else at + 1
    return list(pages[:until])


def _metadata_title(title: str) -> str:
    title = _tidy(title)
    letters = sum(character.isalpha() for character in title)
    # One word with an underscore or a digit is a file name.
    is_name = " " not in title and re.search(r"[_\d]", title)
    return "" if letters < 4 or "\ufffd" in title or is_name or _NO_TITLE.match(title) else title


def _tidy(text: str) -> str:
    """The text on one line, without ligatures and unprintable characters."""
    text = unicodedata.normalize("NFC", html.unescape(text) if "&" in text else text)
    for ligature, letters in (("ﬁ", "fi"), ("ﬂ", "fl"), ("ﬀ", "ff"), ("ﬃ", "ffi"), ("ﬄ", "ffl")):
        text = text.replace(ligature, letters)
    return one_line("".join(c if c.isprintable() else " " for c in text))


def _title(best: _Candidate | None, pages: Sequence[PageText], stated: str) -> Field[str]:
    printed = best.title if best else None
    if printed and stated and _is_sentence(printed):  # the page shows no title, but may begin with its words
        is_named = len(fold(stated)) > 8 and " " in stated and fold(stated) in fold(printed.text)
        return Field(stated[: limits.TITLE].strip(), "page" if is_named else "pdf metadata", is_named)
    if printed is None:
        return Field(stated[: limits.TITLE].strip(), "pdf metadata") if stated else Field("")
    page_key, stated_key = fold(printed.text), fold(stated)
    title = printed.text[: limits.TITLE].lstrip(" :;,.")  # left by an unreadable sign before it
    if page_key == stated_key:
        # Both agree. Where the page sets the title in capitals, the metadata has its ordinary form.
        return Field(stated if printed.text.isupper() else printed.text, "page", True)
    if printed.is_continued(stated_key):  # metadata often has the first line of a title, or lacks the subtitle
        return Field(title, "page")
    shown = _first_texts(pages, best)  # a running head on a later page may have a short title
    on_page = len(stated_key) > 8 and " " in stated and any(_has_lines(page, stated_key) for page in shown)
    if on_page and not (len(page_key) > 12 and stated_key.startswith(page_key) and printed.margin > _SURE_MARGIN):
        return Field(stated[: limits.TITLE].strip(), "page", not page_key.startswith(stated_key))
    agreed = len(page_key) > 12 and stated_key.startswith(page_key)
    clear = printed.score >= _SURE_SCORE and printed.margin >= _SURE_MARGIN and _is_readable(printed.text)
    supported = bool(best and ((best.authors.names and best.authors.is_below) or has_abstract(best.text.page)))
    contradicted = len(stated.split()) > 2  # by a title in the metadata that is not on the page
    return Field(title, "page", agreed or (clear and supported and not contradicted))


def _top(page: PageText) -> str:
    """The text of the upper half of the page: a title in the references below is another paper's."""
    return " ".join(line.text for line in page.page.lines if line.top < 0.5 * page.page.height)


def _is_sentence(title: Title) -> bool:
    """Whether what would be the title is a sentence in the type of the text: the page has none."""
    first, body = title.lines[0], body_size(title.shown)
    is_text = title.text.endswith(".") and len(title.text.split()) > 6
    return is_text and not first.bold and first.size < _LARGER * (body or first.size)


def _has_lines(page: PageText, folded: str) -> bool:
    """Whether lines of the upper half of the page begin with a folded text; a sentence that begins so is none."""
    texts = [(line.text, fold(line.text)) for line in page.page.lines if line.top < 0.5 * page.page.height]
    for start in range(len(texts)):
        joined = ""
        for text, key in texts[start : start + limits.TITLE_LINES]:
            joined += key
            if joined.startswith(folded):
                if len(joined) < len(folded) + 3 or not is_prose(text):
                    return True
                break
            if not folded.startswith(joined):
                break
    return False


def _is_readable(title: str) -> bool:
    letters = sum(c.isalpha() or c.isspace() for c in title)
    begins_well = title[0].isalnum() or title[0] in "[(“\"'‘¿"
    is_text = letters > 0.75 * len(title) and "\ufffd" not in title
    # One word alone is more often the heading of a section.
    return is_text and begins_well and " " in title and not _DANGLING.search(title)


def _metadata_authors(author: str) -> tuple[str, ...]:
    author = re.sub(r",?\s*\bet\.? al\b\.?", "", _tidy(author))
    if not author or "\ufffd" in author or _NO_AUTHOR.match(author):
        return ()
    if ";" in author:
        people = [_given_name_first(part) for part in author.split(";")]
    else:
        # BibTeX's form is "Last, First and Last, First": every part has one comma.
        parts = re.split(r"\s+(?:and|&)\s+", author)
        if all(part.count(",") == 1 for part in parts) and (len(parts) > 1 or " " not in author.split(",")[0]):
            people = [_given_name_first(part) for part in parts]
        else:
            people = _BETWEEN.split(author)
    people = [one_line(person) for person in people if person.strip() and not NOT_A_NAME.search(person)]
    if people and all(" " in person for person in people):
        return tuple(dict.fromkeys(people))
    return ()  # a single word is a login, a program, or part of an organisation's name


def _given_name_first(person: str) -> str:
    last, comma, first = person.partition(",")
    return f"{first.strip()} {last.strip()}" if comma and "," not in first else person.strip()


def _authors(
    best: _Candidate | None, pages: Sequence[PageText], stated: tuple[str, ...], author: str, title_sure: bool
) -> Field[tuple[PersonName, ...]]:
    printed = best.authors.names if best else ()
    if any(len(name) > limits.AUTHOR for name in (*printed, *stated)) or len(printed) + len(stated) > limits.AUTHORS:
        return Field(())
    shortened = re.search(r"\bet\.? al\b", author)
    if stated and not shortened:
        heads = fold(" ".join(compose_accents([_top(page) for page in pages])))
        on_page = [fold(split_name(name).family) in heads for name in stated]
        same = {fold(name) for name in stated} == {fold(name) for name in printed}
        if same or (all(on_page) and len(stated) > 1 and len(stated) >= len(printed)):
            # The top of a page also holds names of companies, so only names printed as authors are certain.
            printed_families = families(map(split_name, printed))
            sure = same or families(map(split_name, stated)) == printed_families
            return Field(_people(printed if same else stated), "page", sure)
        if not printed:
            return Field(_people(stated), "pdf metadata")
    contradicted = len(stated) > 1 and not families(map(split_name, stated)) <= families(map(split_name, printed))
    clear = bool(best and best.authors.clear and title_sure and not contradicted)
    return Field(_people(printed), "page", clear) if printed else Field(())


def _people(names: Sequence[str]) -> tuple[PersonName, ...]:
    if len(names) == 1 and NOT_A_NAME.search(names[0]):  # an organisation
        return (PersonName(names[0]),)
    return tuple(map(split_name, names))


def _from_xmp(packet: str) -> dict[str, str]:
    """The values of an XMP packet under MuPDF's metadata keys. Read by patterns, because a packet may be broken."""
    values: dict[str, str] = {}
    titles, creators = _xmp_items(packet, "dc:title"), _xmp_items(packet, "dc:creator")
    if titles and _metadata_title(titles[0]):
        values["title"] = titles[0]
    if len(creators) > 1:  # a single creator is often a login, and the Info dictionary has it too
        values["author"] = "; ".join(creators)
    if match := _XMP_DOI.search(packet):
        values["doi"] = match[1]
    return values


def _xmp_items(packet: str, name: str) -> list[str]:
    _, _, rest = packet.partition(f"<{name}>")
    return [_tidy(item) for item in _XMP_ITEM.findall(rest.partition(f"</{name}>")[0])]


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
_DANGLING = re.compile(
    r"(?:[:,&–—-]|\b(?:of|the|and|or|for|a|an|in|on|with|to|from|by|using|via|under|between|at|as))$", re.I
)


_INITIAL = re.compile(r"(?:^|\s)[^\W\d_]\.")
# A date or the number of a version, which may stand below a title
_DATED = re.compile(rf"\b(?:1[89]|20)\d\d\b|\d\.\d|\bv(?:ersion)?\W?\d|\b{MONTH}\s+\d", re.I)
# Type larger than this share of the body's, close to a title, is a part of it.
_LARGER = 1.15


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
    lines = [line for line in page.lines if line.top < _TITLE_ABOVE * page.height]
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
        if _DANGLING.search(last.text) or not page.names(line):
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
        if _DANGLING.search(line.text) and not _NO_TITLE_LINE.search(line.text):
            lines.insert(0, line)
            break
    below = [line for line in page.lines if line.top > group[-1].top + 0.5 * group[-1].size]
    subtitle = list(_run_of_style([line for line in below if _same_column(line, group[-1])], group[-1]))
    if not subtitle or len(lines) + len(subtitle) > limits.TITLE_LINES:
        return tuple(lines)
    gap, is_open = _gap(group[-1], subtitle[0]), bool(_DANGLING.search(group[-1].text))
    is_near = gap < 0.6 * group[-1].size and subtitle[0].size > _LARGER * body > 0
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


class Publication(NamedTuple):
    """Where a paper was published. A field that no line states is "", and the year None."""

    venue: Field[str] = Field("")
    kind: Field[str] = Field("")
    genre: Field[str] = Field("")
    volume: Field[str] = Field("")
    issue: Field[str] = Field("")
    pages: Field[str] = Field("")
    year: int | None = None


_YEAR = r"(?P<year>(?:18|19|20)\d\d)\b"
_MEETING = re.compile(
    r"\bproc(?:eedings|\.)|\b(?:conference|symposium|workshop|meeting|congress)\b|[’'‘`]\s?\d\d\b"
    r"|^(?-i:[A-Z][\w&/@-]*[A-Z])[\w&/@-]*(?: [\w&/@-]+)? (?:19|20)\d\d$",
    re.I,
)
_SERIAL = re.compile(
    r"\b(?:journal|transactions|annals|letters|bulletin|communications|magazine|review|quarterly|working papers)\b",
    re.I,
)
# Words before the venue which state that this paper appeared there
_APPEARED_IN = re.compile(
    r"\W{0,3}(?:this (?:paper|article|work|chapter) (?:is|was|has been)\s+|originally\s+|to\s+)?"
    r"(?:(?:included|appear(?:s|ed|ing)?|published|presented|accepted)(?: as an? [\w ]{3,30}?)?\s+(?:in|at|by|to)"
    r"|(?-i:In)\b:?)\s+(?:the\s+)?(?=(?-i:[A-Z0-9]))",
    re.I,
)
# The beginning of a line that names a venue: "Proceedings of", "37th Conference on", "2013 Conference on"
_NAMED = re.compile(
    r"\W{0,3}(?:[Tt]he\s+)?"
    r"(?=[Pp]roc(?:eedings|\.)\s|PROCEEDINGS\s|(?:\d+(?:st|nd|rd|th)|(?:19|20)\d\d)\s+[A-Z])"
)
_ACRONYM = re.compile(r"\W{0,3}(?P<venue>[A-Z][\w&/@-]*(?: [A-Z][\w&/@-]*)?\s?[’'‘`]\s?(?P<short>\d\d))(?=\W|$)")
# Words about an earlier version, or one that has not appeared
_OTHER_VERSION = re.compile(
    r"preliminary|earlier|previous|prior|initial|abridged|extended|announcement|version|revis|under review|submi"
    r"|reprint|based on",
    re.I,
)
# "A Journal, Vol. 3, No. 1", "A Journal 56 (1988) 3-57", "A Journal, 7(80), 200", "A Journal 2, 4, November, 1984"
_ISSUES = tuple(
    re.compile(rf"(?P<venue>(?-i:[A-Z]).{{3,120}}?),?\s{pattern}", re.I)
    for pattern in (
        r"[(\[]?vol(?:ume)?\b\.?\s*(?P<volume>\d+|[IVXLC]+)\b",
        rf"(?P<volume>\d{{1,4}})\s?\({_YEAR}\)\s?[:,]?\s*(?:pp?\.\s*)?(?P<pages>\d+\s?[-–—]+\s?\d+)",
        r"(?P<volume>\d{1,4})\s?\((?P<issue>\d{1,4}(?:[-–]\d+)?)\)\s?[:,]\s*(?P<pages>\d+(?:\s?[-–]\s?\d+)?)",
        rf"(?P<volume>\d{{1,3}}),\s?(?P<issue>\d{{1,3}}),\s[^\n]{{0,20}}{_YEAR}",
        # "A Journal 8.1 (#3) - Lovelace and Babbage 1843": only if an author is named
        rf"(?P<volume>\d{{1,3}})\.(?P<issue>\d{{1,3}})\b(?P<people>.*)\b{_YEAR}\W*$",
    )
)
_ISSUE = re.compile(r"\b(?:no|number|issue)\b\.?:?\s*(\d+(?:[-–]\d+)?)", re.I)
_PAGES = re.compile(r"\b(?:pages?|pp?)\b\.?:?\s*(\d+\s?[-–—]+\s?\d+)", re.I)
_ANY_YEAR = re.compile(rf"(?<![\d-]){_YEAR}(?!-)")
# Text after the name of a venue
_VENUE_ENDS = re.compile(
    r"[,.;:(]?\s*(?:\bvol(?:ume)?\b\.?\s*\w|\bno\.|\bnumber \d|\bpages?\b|\bpp?\.|\d+\s?\(|[;:]|https?:|\bdoi\b|©"
    rf"|\bcopyright|,\s*(?:\d|{MONTH}\W)).*$|\s\s?\d{{1,4}}$(?<!\s(?:18|19|20)\d\d)",
    re.I,
)
_SENTENCE = re.compile(r"(?:(?<=[a-z]{5})|(?<=\d\d)|(?<=\)))\.(?:\s.*)?$")
_SMALL = frozenset("of on in and for the at to a an & de der des du für und et".split())
_OPEN = re.compile(r"(?:[-,]|\([^)]*|\b(?:of|on|in|and|for|the|at|&))$")
_DEGREE = re.compile(r"\bpartial\s+fulfil+ment\b[^.]{0,80}?\bdegree\s+of\s+(?P<degree>[A-Z]\w+)", re.I)
_REPORT = re.compile(
    r"\W{0,3}(?:[A-Z][\w&-]*\s){0,4}(?:technical|tech\.?|research)\s(?:report|memo(?:randum)?)\b"
    r"[\s:#,]*(?:(?:no|number)\b\.?\s*)?(?P<issue>[\w./-]*\d[\w./-]*)\W*$",
    re.I,
)
# What a cover sheet says of the paper below it: JSTOR's "Source: A Journal, Vol. 3", ResearchGate's "Article in A
# Journal · May 2018", and the reference with which a repository asks to cite it.
_SOURCE = re.compile(r"\s*(?:source|publication)\s*:\s*(?=[^\W\d_])", re.I)
_ENTRY = re.compile(
    rf"(?:article|(?:conference )?paper|chapter|preprint)\s+in\s+(?P<venue>[^·•]{{4,200}}?)\s*[·•]\s*{MONTH}\s+"
    r"(?P<year>(?:19|20)\d\d)\b",
    re.I,
)
_TO_CITE = re.compile(r"\b(?:to cite this|citation for published|please cite|cite (?:as|this))\b", re.I)
_CITED_VENUE = re.compile(
    rf"\W*(?:[Ii]n:?\s+)?(?P<venue>(?!\d{{4}}\b)\w.{{3,150}}?)[,.]?\s+(?=\(?\d|(?i:vol\b|{MONTH}\s+\d))(?P<rest>.{{0,200}})"
)
_VOLUME = re.compile(r"(?<!\d)(?P<volume>\d{1,4})\s?[(:]\s?(?P<issue>\d{1,3}(?:[-–]\d{1,3})?)\b")
_INSTITUTIONS = (re.compile(r"universit", re.I), re.compile(r"institut|laborator|college|academy", re.I))


def find_publication(text: str, title: str, families: Sequence[str] = ()) -> Publication:
    """The publication in the clearest line.

    text: the text of the first pages. title: the paper's. families: the family names of the paper's authors.
    """
    lines = [one_line(line) for line in unicodedata.normalize("NFKC", text).split("\n")]
    folded_title = fold(title)
    if _COVER.search(text) and (publication := _on_cover(lines, folded_title)):
        return publication
    statements = [stated for stated in _statements(lines, families) if fold(stated.venue.value) not in folded_title]
    sure = next((stated for stated in statements if stated.venue.sure), None)
    return sure or _thesis(lines) or _report(lines) or next(iter(statements), Publication())


def _on_cover(lines: Sequence[str], folded_title: str) -> Publication | None:
    """The publication that the cover sheet of a library, a network or a repository states."""
    for number, line in enumerate(lines):
        following = " ".join(lines[number + 1 : number + 3])
        if (source := _SOURCE.match(line)) and (publication := _serial(f"{line[source.end() :]} {following}", False)):
            return publication
        if entry := _ENTRY.match(line):
            venue = _venue(entry["venue"])
            kind = "paper-conference" if _MEETING.search(venue) else "article-journal"
            if venue:
                return Publication(Field(venue, "page", True), Field(kind, "page", True), year=int(entry["year"]))
        if _TO_CITE.search(line):
            return _own_reference(" ".join(lines[number : number + 12])[:2000], folded_title)
    return None


def _own_reference(text: str, folded_title: str) -> Publication | None:
    """The publication in a reference to this paper: what stands after the paper's title."""
    letters = [(letter, index) for index, character in enumerate(text) for letter in fold(character)]
    at = "".join(letter for letter, _ in letters).find(folded_title) if folded_title else -1
    if at < 0:
        return None
    begin, end = letters[at][1], letters[at + len(folded_title) - 1][1] + 1
    stated = _CITED_VENUE.match(text[end:])
    venue = _venue(stated["venue"]) if stated else ""
    if not stated or not venue:
        return None
    numbers, pages = _VOLUME.search(stated["rest"]), re.search(r"(?<!\d)\d+\s?[-–—]+\s?\d+", stated["rest"])
    year = _ANY_YEAR.search(stated["rest"]) or re.search(rf"\({_YEAR}", text[:begin])
    kind = "paper-conference" if _MEETING.search(venue) else "article-journal"
    return Publication(
        Field(venue, "page", True), Field(kind, "page", True), Field(""),
        _dashed(numbers["volume"] if numbers else "", True),
        _dashed(numbers["issue"] if numbers else "", True), _dashed(pages[0] if pages else "", True),
        int(year["year"]) if year else None,
    )  # fmt: skip


def _statements(lines: Sequence[str], families: Sequence[str]) -> Iterator[Publication]:
    for number, line in enumerate(lines):
        before = lines[number - 1] if number else ""
        if not 4 < len(line) < 400 or _OPEN.search(before):
            continue
        after = lines[number + 1 : number + 3]
        named = any(family and fold(family) in fold(line) for family in families[:3])
        # The paper's own citation, or an incomplete name, continues on the next line.
        if after and ((named and re.search(r"\(\d{4}\)", line)) or _OPEN.search(line)):
            line, after = (line[:-1] if line.endswith("-") else f"{line} ") + after[0], after[1:]
        context = "" if before.endswith((".", ":")) else before.rpartition(". ")[2]
        if _OTHER_VERSION.search(context):
            continue
        if publication := _serial(line, named) or _meeting(line, after) or _bare(line):
            yield publication


def _meeting(line: str, after: Sequence[str]) -> Publication | None:
    """The conference that a line names, with the year and the paper's pages from that line or the next two."""
    appeared = _APPEARED_IN.match(line)
    short = None if appeared else _ACRONYM.match(line)
    beginning = appeared or _NAMED.match(line)
    if not beginning and not short:
        return None
    venue = short["venue"] if short else _venue(line[beginning.end() :] if beginning else "")
    is_meeting = bool(_MEETING.search(venue))
    if not venue or not (is_meeting or _SERIAL.search(venue)):
        return None
    all_lines = " ".join((line, *(following for following in after if len(following) < 80)))
    dates = [int(match["year"]) for match in _ANY_YEAR.finditer(all_lines)]
    in_century = int(short["short"]) if short else 0
    year = in_century + (1900 if in_century > 60 else 2000) if short else next(iter(dates), None)
    pages = _PAGES.search(all_lines)
    sure = year in dates if short else bool(appeared or dates or pages)
    return Publication(
        Field(venue, "page", sure),
        Field("paper-conference" if is_meeting else "article-journal", "page", sure),
        pages=_dashed(pages[1] if pages else "", sure),
        year=year,
    )


def _serial(line: str, named: bool) -> Publication | None:
    """The journal that a line names with its volume: at its beginning, or at the end of the paper's own citation.

    named: whether the line names an author of the paper.
    """
    appeared = _APPEARED_IN.match(line)
    parts = [line[appeared.end() :] if appeared else line]
    if named:
        parts += re.split(r"(?<=[.?!])\s+", line)[1:]
    for part in parts:
        for pattern in _ISSUES:
            match = pattern.match(part)
            if not match or ("people" in pattern.groupindex and not named):
                continue
            values = match.groupdict()
            issue, pages, year = (
                values.get(name) or (number[1] if (number := search.search(line)) else "")
                for name, search in (("issue", _ISSUE), ("pages", _PAGES), ("year", _ANY_YEAR))
            )
            venue = _venue(match["venue"])
            is_whole = venue == match["venue"].strip(" ,.;[")
            is_journal = _SERIAL.search(venue) or "people" in values or (year and values.get("pages"))
            if is_whole and is_journal and (issue or pages) and not (_MEETING.search(venue) and not issue):
                volume = _dashed(values["volume"], True)
                return Publication(
                    Field(venue, "page", True), Field("article-journal", "page", True), Field(""), volume,
                    _dashed(issue, True), _dashed(pages, True), int(year) if year else None,
                )  # fmt: skip
    return None


def _bare(line: str) -> Publication | None:
    """A journal's name alone on a line, which is uncertain: nothing states that the paper appeared there."""
    if (match := _SERIAL.search(line)) and line[match.end() :].startswith((" of ", " on ")) and _venue(line) == line:
        return Publication(Field(line, "page"))
    return None


def _dashed(value: str, sure: bool) -> Field[str]:
    """The value with en dashes in its ranges; Field("") if it is empty."""
    return Field(re.sub(r"\s?[-–—]+\s?", "–", value), "page", sure) if value else Field("")


def _venue(text: str) -> str:
    """The venue at the beginning of a text, without places, dates and pages after it; "" if there is none."""
    name = _SENTENCE.sub("", _VENUE_ENDS.sub("", text)).strip(" ,.;[")
    first, *parts = re.split(r",\s+", name)
    name_parts = [first]
    for number, part in enumerate(parts):  # "Acoustics, Speech, and Signal Processing" continues; a place ends it
        if not re.search(r"\b(?:and|&)\s", ", ".join(parts[number:])) or re.search(r"\d", part):
            break
        name_parts.append(part)
    name = ", ".join(name_parts)
    words = [word.strip("()[],.:'’‘\"“”") for word in name.split()]
    is_name = all(not word or not word[0].islower() or word in _SMALL for word in words)
    fits = 1 <= len(words) <= 25 and 3 < len(name) <= limits.VENUE
    return name if is_name and fits and words[-1] not in _SMALL else ""


def _thesis(lines: Sequence[str]) -> Publication | None:
    if not (match := _DEGREE.search(" ".join(lines)[:10_000])):
        return None
    genre = PHD if match["degree"].lower().startswith(("doctor", "ph")) else MASTER
    return Publication(_institution(lines), Field("thesis", "page", True), Field(genre, "page", True))


def _report(lines: Sequence[str]) -> Publication | None:
    match = next(filter(None, map(_REPORT.match, lines)), None)
    if not match:
        return None
    genre = Field(TECHNICAL, "page", True)
    return Publication(
        _institution(lines), Field("report", "page", True), genre, issue=Field(match["issue"], "page", True)
    )


def _institution(lines: Sequence[str]) -> Field[str]:
    """The university or else the institute that a line of the page names."""
    for pattern in _INSTITUTIONS:
        for line in lines:
            part = next(filter(pattern.search, line.split(",")), "").strip(" .∗*†‡")
            if part and len(part) < 80 and all(word[0].isupper() or word in _SMALL for word in part.split()):
                return Field(part, "page", True)
    return Field("")


# Type smaller than this share of its line's largest marks a footnote or an affiliation.
_SUPERSCRIPT = 0.8
# PyMuPDF's flags of a span: TEXT_FONT_SUPERSCRIPT and TEXT_FONT_BOLD
_RAISED, _BOLD = 1, 16
_ONE_INITIAL = re.compile(r"[^\W\d_a-z]\.")
_LIGATURES = str.maketrans({"ﬁ": "fi", "ﬂ": "fl", "ﬀ": "ff", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "ft", "ﬆ": "st"})

_PUNCTUATION = frozenset(".,;:-–—'’‘\"()")
_CONTINUES = re.compile(rf"^[{MARK}\s]*(?:[,;·•]|(?:and|&)\s)")
# A title begins in this share of the page from its top.
_TITLE_ABOVE = 0.65
_SPARSE_PAGE = 1500  # characters: a page with fewer is a cover, and has no body to compare sizes with


class Line(NamedTuple):
    """A piece of a line without wide gaps. Coordinates are in points from the top left of the page."""

    x0: float
    top: float
    x1: float
    bottom: float
    size: float  # of most of its letters, in points
    bold: bool
    font: str
    text: str
    name_text: str  # the text with MARK in the place of superscripts


class FrontPage(NamedTuple):
    """The lines of a page from top to bottom, those of one row from left to right, and the size of the page."""

    lines: tuple[Line, ...]
    width: float
    height: float
    common: frozenset[str] = frozenset()  # the words that the paper writes small

    def is_wording(self, text: str) -> bool:
        """Whether a text consists of words that the paper uses in its sentences, as a title does."""
        words = re.findall(r"[^\W\d_]{3,}", text)
        return 2 * sum(word.casefold() in self.common for word in words) >= len(words) > 0

    def names(self, *lines: Line) -> list[str]:
        """The names in lines of authors that follow each other; [] if they are something else."""
        text = join_lines([line.name_text for line in lines]) if len(lines) > 1 else lines[0].name_text
        return names_in(text, self.common)


def front_page(blocks: Sequence[Mapping[str, Any]], width: float, height: float) -> FrontPage:
    """The page of MuPDF's blocks. Leaves out text that does not run from left to right, such as stamps."""
    level = (line for block in blocks for line in block.get("lines", ()) if line["dir"][0] > 0.9)
    # Below the title and the authors, only the text and its size are needed.
    lines = [
        _line(spans, spans[0]["bbox"][1] < _TITLE_ABOVE * height)
        for spans in islice(_joined(level), limits.FRONT_LINES)
    ]
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.top + line.bottom, line.x0)):
        middle = (line.top + line.bottom) / 2
        if rows and rows[-1][0].top < middle < rows[-1][0].bottom and line.size > 0.6 * rows[-1][0].size:
            rows[-1].append(line)
        else:
            rows.append([line])
    return FrontPage(
        tuple(line for row in rows for line in _with_continuations(sorted(row))), max(width, 1.0), max(height, 1.0)
    )


def _with_continuations(row: Sequence[Line]) -> list[Line]:
    """The lines of a row. A line that begins with a comma or "and" joins the one before: an icon separates them."""
    merged: list[Line] = []
    for line in row:
        last = merged[-1] if merged else line
        if merged and _CONTINUES.match(line.name_text) and same_size(last, line) and line.x0 - last.x1 < 3 * last.size:
            text, name_text = f"{last.text} {line.text}", f"{last.name_text}{MARK}{line.name_text}"
            top, bottom = min(last.top, line.top), max(last.bottom, line.bottom)
            merged[-1] = last._replace(x1=line.x1, top=top, bottom=bottom, text=text, name_text=name_text)
        else:
            merged.append(line)
    return merged


def _joined(lines: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The spans of each line. Neighbouring pieces of one row without a wide gap count as one line."""
    spans: list[Mapping[str, Any]] = []
    for line in lines:
        with_text = [span for span in line["spans"] if span["text"]]
        if not any(span["text"].strip() for span in with_text):
            continue
        if spans and _continues(spans, with_text):
            spans.extend(with_text)
            continue
        if spans:
            yield spans
        spans = with_text
    if spans:
        yield spans


def _continues(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> bool:
    last, first = before[-1]["bbox"], after[0]["bbox"]
    size = max(before[-1]["size"], after[0]["size"])
    overlap = min(last[3], first[3]) - max(last[1], first[1])
    gap = first[0] - last[2]
    is_level = overlap > 0.4 * min(last[3] - last[1], first[3] - first[1])
    return bool(is_level and -0.3 * size < gap < 0.5 * size)


def _line(spans: Sequence[Mapping[str, Any]], in_detail: bool) -> Line:
    """The line of these spans. in_detail: whether to look for superscripts, accents and bold type."""
    x0, top, x1, bottom = spans[0]["bbox"]
    for span in spans[1:]:
        box = span["bbox"]
        x0, top, x1, bottom = min(x0, box[0]), min(top, box[1]), max(x1, box[2]), max(bottom, box[3])
    longest = max(spans, key=lambda span: len(span["text"])) if len(spans) > 1 else spans[0]
    plain = "".join(span["text"] for span in spans)
    if not in_detail:
        text = one_line(plain)
        return Line(x0, top, x1, bottom, round(longest["size"], 1), False, longest["font"], text, text)
    size = round(longest["size"], 1)
    if len(spans) > 1 and plain.upper() == plain:  # small capitals are drawn as capitals in a smaller size
        size = max((round(span["size"], 1) for span in spans if any(map(str.isalpha, span["text"]))), default=size)
    text, name_text, right = "", "", x0
    marked = False
    for span in spans:
        gap = "   " if span["bbox"][0] - right > 1.2 * size else ""
        right = span["bbox"][2]
        printable = _printable(span["text"])
        text += gap + printable
        # The comma of "1,2" is raised with its numbers; elsewhere, OCR reports small commas.
        marked = _is_mark(span, size, plain) and (marked or not _PUNCTUATION.issuperset(printable.strip()))
        name_text += gap + (MARK if marked and printable.strip() else printable)
    bold = sum(len(span["text"]) for span in spans if span["flags"] & _BOLD or "bold" in span["font"].lower())
    text, name_text = compose_accents([text, without_contact(name_text)])
    return Line(x0, top, x1, bottom, size, 2 * bold > len(plain), longest["font"], one_line(text), name_text.strip())


def _printable(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = text.translate(_LIGATURES)
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _is_mark(span: Mapping[str, Any], size: float, text: str) -> bool:
    """Whether a span is a superscript, and not the small letters of small capitals."""
    if _ONE_INITIAL.fullmatch(span["text"].strip()):  # in scans, each word has a size of its own
        return False
    small = bool(span["size"] < _SUPERSCRIPT * size)
    is_raised = bool(span["flags"] & _RAISED) and bool(span["size"] < 0.95 * size)
    return is_raised or (
        small and not (text.upper() == text and span["text"].strip().isalpha() and len(span["text"].strip()) > 1)
    )


def body_size(page: FrontPage) -> float:
    """The type size of most of the page's text; 0 for a cover."""
    sizes = [line.size for line in page.lines for _ in range(0, len(line.text), 10)]
    return median_low(sizes) if sum(len(line.text) for line in page.lines) >= _SPARSE_PAGE else 0.0


def same_size(line: Line, other: Line, tolerance: float = 0.08) -> bool:
    return abs(line.size - other.size) <= tolerance * line.size
