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
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from folio.papers.identifiers import DOI_ADDRESS, DOI_START
from folio.papers.metadata import Field, Metadata, PersonName
from folio.papers.people import families, split_name
from folio.pdf import limits
from folio.pdf.accents import compose_accents
from folio.pdf.dates import find_year
from folio.pdf.front_page import FrontPage, body_size, front_page
from folio.pdf.identifiers import arxiv_id, paper_doi
from folio.pdf.mupdf import without_lines
from folio.pdf.names import NOT_A_NAME, common_words, is_prose
from folio.pdf.publication import COVER, find_publication
from folio.pdf.title_and_authors import (
    DANGLING,
    LARGER,
    Authors,
    Title,
    find_authors,
    find_authors_elsewhere,
    find_title,
    has_abstract,
    title_text,
)
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
    is_sheet, is_sparse = bool(COVER.search(pages[0].text)), not body_size(pages[0].page)
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
    return is_text and not first.bold and first.size < LARGER * (body or first.size)


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
    return is_text and begins_well and " " in title and not DANGLING.search(title)


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
