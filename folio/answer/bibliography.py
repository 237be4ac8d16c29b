"""Lists what an answer cites: pages with their quotes, references. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from folio.answer_types import Citation, Quote
from folio.citation_label import published_in, sure_venue, sure_year
from folio.shown_text import name_line
from folio.text import one_line
from folio.types import Paper

MAX_LABEL = 40  # characters of a printed page label
MAX_AUTHORS = 3  # named in a reference; more become "et al."


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
    published: str = ""  # venue and year, as far as they are sure
    notice: str = ""  # that the paper was retracted or corrected, in words

    @property
    def where(self) -> str:
        """The page as people write it: "p. 7", "p. 7 (printed iv)"."""
        return _where(self.page, self.label)


def cited_pages(citations: Iterable[Quote]) -> tuple[CitedPage, ...]:
    """Every cited page once, in the order of the answer."""
    return merge_by_page(
        CitedPage(
            cited.paper.id,
            cited.paper.file,
            cited.paper.title,
            cited.page,
            cited.label,
            ((cited.quote, cited.support if isinstance(cited, Citation) else 1.0),),
            tuple(filter(None, [cited.section])),
            published=published_in(sure_venue(cited.paper.metadata), sure_year(cited.paper.metadata)),
            notice=cited.paper.flag.text if cited.paper.flag else "",
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


def stands_in(quote: str, texts: Iterable[str]) -> bool:
    """Whether one of these texts, which are shown, has this quote word for word: it need not be shown again."""
    line = one_line(quote)
    return any(line in one_line(text) for text in texts)


def reference(paper: Paper, pages: Sequence[int]) -> str:
    """One line: "A. Otter and B. Seal (2021). On Sea Otters. Sea Life. otters.pdf, pp. 1, 3". pages: physical."""
    *others, last = map(name_line, paper.authors) if paper.authors else ("",)
    who = f"{', '.join(others)} and {last}" if others else last
    if len(paper.authors) > MAX_AUTHORS:
        who = f"{others[0]} et al."
    when = f"({paper.year})" if paper.year else ""
    place = f"arXiv:{paper.arxiv}" if paper.arxiv else name_line(paper.file)
    names = " ".join(filter(None, [who, when]))
    line = reference_line(names, name_line(paper.title), place, pages, name_line(sure_venue(paper.metadata)))
    return f"{line}. {paper.flag.text}" if paper.flag else line


def reference_line(who: str, title: str, place: str, pages: Sequence[int], venue: str = "") -> str:
    """A reference from its parts. All but the place may be empty."""
    names = "".join(f"{part.strip().rstrip('.')}. " for part in (who, title, venue) if part.strip())
    listed = ", ".join(map(str, pages))
    on_pages = f", {'p.' if len(pages) == 1 else 'pp.'} {listed}" if pages else ""
    return one_line(f"{names}{place}{on_pages}")


def _where(page: int, label: str) -> str:
    return f"p. {page}" if label in ("", str(page)) else f"p. {page} (printed {name_line(label, MAX_LABEL)})"
