"""The front matter of a paper, from its first pages, the PDF's metadata and the name of its file.

The page counts for more than the metadata, which programs fill with titles of templates, logins and file names.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from folio.identifiers import DOI_ADDRESS, DOI_START
from folio.paper_metadata import Field, Metadata, PersonName
from folio.pdf import limits
from folio.pdf.dates import find_year
from folio.pdf.front_page import (
    DANGLING,
    Authors,
    Title,
    find_authors,
    find_title,
    has_abstract,
    title_text,
)
from folio.pdf.front_text import find_abstract
from folio.pdf.identifiers import arxiv_id, paper_doi
from folio.pdf.names import NOT_A_NAME, compose_accents, names_in
from folio.pdf.page_lines import FrontPage, body_size, front_page
from folio.pdf.publication import find_publication
from folio.people import families, split_name
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
# A title that only the page gives is certain from this score and margin.
_SURE_SCORE, _SURE_MARGIN = 3.0, 1.5


class PageText:
    """One of the first pages of a file: its text, and its lines by layout, which are computed on first use."""

    def __init__(self, blocks: Sequence[Mapping[str, Any]], width: float, height: float, text: str) -> None:
        self._blocks, self._width, self._height, self.text = blocks, width, height, text

    @cached_property
    def page(self) -> FrontPage:
        return front_page(self._blocks, self._width, self._height)


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
    best = _best_page(pages, given_title)
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


# Which page


def _best_page(pages: Sequence[PageText], given_title: str) -> _Candidate | None:
    """The page with the title and the authors: the first one, unless it is a cover."""
    if not pages:
        return None
    first = _candidate(pages[0], given_title)
    is_sheet, is_sparse = bool(_COVER.search(pages[0].text)), not body_size(pages[0].page)
    if first.title and first.authors.names and not is_sheet and not is_sparse:
        return first
    on_first = fold(pages[0].text)
    for page in pages[1:]:
        other = _candidate(page, given_title)
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


def _candidate(page: PageText, given_title: str) -> _Candidate:
    folded = fold(given_title)

    def agrees(text: str) -> bool:
        on_page = fold(text)
        return bool(on_page) and (
            on_page == folded
            or (len(on_page) > 12 and (folded.startswith(on_page) or (on_page.startswith(folded) and len(folded) > 12)))
        )

    title = find_title(page.page, agrees)
    if title is None:
        return _Candidate(None, Authors((), False, ()), page)
    authors = find_authors(page.page, title)
    if (
        not authors.names
        and len(title.lines) > 1
        and not agrees(title.text)
        and (names := names_in(title.lines[-1].name_text))
    ):
        # Typescripts set the author like the title.
        title = title._replace(lines=title.lines[:-1], text=title_text(title.lines[:-1]), margin=0.0)
        authors = Authors(tuple(names), False, title.lines[-1:])
    return _Candidate(title, authors, page)


def _first_texts(pages: Sequence[PageText], best: _Candidate | None) -> list[PageText]:
    """The pages up to the one with the title, and the next one if the title is on a cover with little text."""
    at = next((number for number, page in enumerate(pages) if best and page is best.text), 0)
    until = at + 2 if pages and not body_size(pages[at].page) else at + 1
    return list(pages[:until])


# Title


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
    if printed is None:
        return Field(stated[: limits.TITLE].strip(), "pdf metadata") if stated else Field("")
    page_key, stated_key = fold(printed.text), fold(stated)
    title = printed.text[: limits.TITLE].lstrip(" :;,.")  # left by an unreadable sign before it
    if page_key == stated_key:
        # Both agree. Where the page sets the title in capitals, the metadata has its ordinary form.
        return Field(stated if printed.text.isupper() else printed.text, "page", True)
    on_page = len(stated_key) > 8 and " " in stated and any(stated_key in fold(_top(page)) for page in pages)
    if on_page and not (len(page_key) > 12 and stated_key.startswith(page_key) and printed.margin > _SURE_MARGIN):
        sure = not page_key.startswith(stated_key) or len(page_key) > 2 * len(stated_key)
        return Field(stated[: limits.TITLE].strip(), "page", sure)
    agreed = len(page_key) > 12 and stated_key.startswith(page_key)
    clear = printed.score >= _SURE_SCORE and printed.margin >= _SURE_MARGIN and _is_readable(printed.text)
    supported = bool(best and (best.authors.names or has_abstract(best.text.page)))
    contradicted = len(stated.split()) > 2  # by a title in the metadata that is not on the page
    return Field(title, "page", agreed or (clear and supported and not contradicted))


def _top(page: PageText) -> str:
    """The text of the upper half of the page: a title in the references below is another paper's."""
    return " ".join(line.text for line in page.page.lines if line.top < 0.5 * page.page.height)


def _is_readable(title: str) -> bool:
    letters = sum(c.isalpha() or c.isspace() for c in title)
    begins_well = title[0].isalnum() or title[0] in "[(“\"'‘¿"
    is_text = letters > 0.75 * len(title) and "\ufffd" not in title
    return is_text and begins_well and not DANGLING.search(title)


# Authors


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
        heads = fold(" ".join(compose_accents(_top(page)) for page in pages))
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


# XMP


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
