"""Lists what an answer cites: pages with their quotes, references, BibTeX entries. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from folio.answer.markup import printable
from folio.answer_types import Citation
from folio.shown_text import name_line
from folio.text import STOP_WORDS
from folio.types import Paper

MAX_LABEL = 40  # characters of a printed page label
MAX_AUTHORS = 3  # named in a reference; more become "et al."
_OTHERS = re.compile(r"(?:,?\s+|^)et\.?\s+al\.?$", re.I)
# A name that BibTeX would split, such as that of an organisation.
_SPLITTABLE = re.compile(r",|\band\b", re.I)
# Characters special to LaTeX, or printed differently in its OT1 font encoding. Braces need names: BibTeX counts even
# escaped ones, so an unpaired brace would end the field in the wrong place.
_LATEX = str.maketrans(
    {
        **{char: f"\\{char}" for char in "$&#_%"},
        "\\": r"\textbackslash{}",
        "{": r"\textbraceleft{}",
        "}": r"\textbraceright{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)
# Letters that Unicode does not decompose into a base letter and a mark.
_PLAIN_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)


@dataclass(frozen=True, slots=True)
class CitedPage:
    """A cited page with its quotes."""

    paper: str  # SHA-256 of its file
    file: str
    title: str
    page: int
    label: str
    quotes: tuple[tuple[str, float], ...]  # each with its support
    sections: tuple[str, ...] = ()  # of the quotes, in words
    zotero: str = ""  # the link that opens the page in Zotero, if the paper is there

    @property
    def where(self) -> str:
        """The page as people write it: "p. 7", "p. 7 (printed iv)"."""
        return _where(self.page, self.label)


def cited_pages(citations: Iterable[Citation]) -> tuple[CitedPage, ...]:
    """Every cited page once, in the order of the answer."""
    return merge_by_page(
        CitedPage(
            cited.paper.id,
            cited.paper.file,
            cited.paper.title,
            cited.page,
            cited.label,
            ((cited.quote, cited.support),),
            tuple(filter(None, [cited.section])),
        )
        for cited in citations
    )


def merge_by_page(parts: Iterable[CitedPage]) -> tuple[CitedPage, ...]:
    """Every page once, in order of first occurrence, with all its quotes."""
    pages: dict[tuple[str, int], CitedPage] = {}
    for part in parts:
        known = pages.setdefault((part.paper, part.page), part)
        quotes = tuple({**dict(known.quotes), **dict(part.quotes)}.items())
        sections = tuple(dict.fromkeys((*known.sections, *part.sections)))
        pages[part.paper, part.page] = replace(known, quotes=quotes, sections=sections)
    return tuple(pages.values())


def reference(paper: Paper, pages: Sequence[int]) -> str:
    """One line such as "A. Otter and B. Seal (2021). On Sea Otters. otters.pdf, pp. 1, 3". pages: physical."""
    *others, last = map(name_line, paper.authors) if paper.authors else ("",)
    who = f"{', '.join(others)} and {last}" if others else last
    if len(paper.authors) > MAX_AUTHORS:
        who = f"{others[0]} et al."
    when = f"({paper.year})" if paper.year else ""
    place = f"arXiv:{paper.arxiv}" if paper.arxiv else name_line(paper.file)
    return reference_line(" ".join(filter(None, [who, when])), name_line(paper.title), place, pages)


def reference_line(who: str, title: str, place: str, pages: Sequence[int]) -> str:
    """A reference from its parts. All but the place may be empty."""
    names = "".join(f"{part.strip().rstrip('.')}. " for part in (who, title) if part.strip())
    listed = ", ".join(map(str, pages))
    on_pages = f", {'p.' if len(pages) == 1 else 'pp.'} {listed}" if pages else ""
    return " ".join(f"{names}{place}{on_pages}".split())


def bibtex(paper: Paper, page: int | None = None) -> str:
    """A paper as a BibTeX entry. page: the cited page, physical.

    The fields for arXiv follow https://info.arxiv.org/help/hypertex/bibstyles/index.html. Any other paper is identified
    by its file, as its place of publication is unknown. Text is UTF-8; the key is ASCII.
    """
    place = [] if paper.arxiv else [paper.file]
    if page is not None:
        place.append(_where(page, paper.pages.label(page)))
    title = _latex(paper.title)
    fields = {
        "author": " and ".join(_bibtex_authors(paper.authors)),
        "title": f"{{{title}}}" if title else "",  # the inner braces keep its capitals
        "year": str(paper.year or ""),
        "eprint": _latex(paper.arxiv),
        "archivePrefix": "arXiv" if paper.arxiv else "",
        "note": ", ".join(map(_latex, place)),
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@misc{{{_bibtex_key(paper)},\n{lines}}}\n"


def _bibtex_authors(authors: Sequence[str]) -> list[str]:
    named = [_OTHERS.sub("", author) for author in authors]
    written = [f"{{{_latex(name)}}}" if _SPLITTABLE.search(name) else _latex(name) for name in named]
    more = ["others"] if any(_OTHERS.search(author) for author in authors) else []
    return [*filter(None, written), *more]


def _bibtex_key(paper: Paper) -> str:
    """The first author's last name, the year and the first content word of the title: "otter2021sea"."""
    names = _OTHERS.sub("", paper.authors[0]).split() if paper.authors else []
    family = _ascii(names[-1]) if names else ""
    words = (word for word in re.findall(r"\w+", paper.title) if word.lower() not in STOP_WORDS)
    first = next((plain for word in words if (plain := _ascii(word))), "")
    if family or first:
        return f"{family}{paper.year or ''}{first}"
    return _ascii(paper.key) or f"paper{paper.id[:8]}"


def _ascii(text: str) -> str:
    """The letters and digits of a text, in lower case, without diacritics."""
    plain = unicodedata.normalize("NFKD", text).lower().translate(_PLAIN_LETTERS)
    return "".join(char for char in plain if char.isascii() and char.isalnum())


def _latex(text: str) -> str:
    """A name or title on one line, escaped for LaTeX."""
    return name_line(printable(text)).translate(_LATEX)


def _where(page: int, label: str) -> str:
    return f"p. {page}" if label in ("", str(page)) else f"p. {page} (printed {name_line(label, MAX_LABEL)})"
