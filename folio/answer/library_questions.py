"""Questions about the library itself: who wrote a paper, which papers are by someone, since a year, about something.

They are answered from what is known about the papers, each with a quote from its title page. Pure but for the passages
that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from folio.answer_types import Answer, Evidence, Sentence
from folio.grounding.sentences import citation
from folio.search.paper_filter import by_author
from folio.search.paper_names import papers_meant
from folio.text import stripped, tokenize
from folio.types import Hit, Paper

# The first passage of a paper
TitlePassage = Callable[[Paper], Hit | None]

MOST_PAPERS = 10  # that are listed
# Characters of a title page in which title and authors are looked for, and of a quote of them.
_FRONT, _LONGEST = 2500, 600

_COUNT = re.compile(
    r"\W*(?:how many|what number of) (?:papers?|pdfs?|documents?|articles?|files?)\b(?P<rest>.*)", re.I | re.S
)
_IN_ALL = re.compile(
    r"\s*(?:(?:are|is|do|have|can)\s+)?(?:there|you|we|i|here)?\s*(?:have|know|see|search|read)?\s*"
    r"(?:in all|in total|altogether|here|(?:in|are in) (?:the|my|your|this) (?:library|index|collection|folder))?\W*",
    re.I,
)
_WROTE = re.compile(
    r"\W*(?:who (?:wrote|authored|published|are the (?:authors?|writers?) of|is the author of)|(?:the )?authors? of)\s+"
    r"(?P<what>.+?)\W*$",
    re.I | re.S,
)
_PUBLISHED = re.compile(
    r"\W*(?:(?:when|(?:in )?(?:what|which) year) (?:was|were|did)\s+(?P<what>.+?)\s+"
    r"(?:(?:first )?published|released|written|come out|appear)|(?:publication (?:date|year)|year of publication) of\s+"
    r"(?P<of>.+?))\W*",
    re.I | re.S,
)
_WHICH = re.compile(
    r"\W*(?:(?:which|what|list(?: all| the)?|show(?: me)?(?: all| the)?|are there(?: any)?) )?"
    r"(?:papers?|articles?|studies|publications?)\s+(?:(?:are|were|is|do you have|that are|there are)\s+)?"
    r"(?P<rest>.+?)\W*",
    re.I | re.S,
)
_BY = re.compile(
    r"(?:(?:written|authored|published|made)\s+)?by\s+(?P<name>.+)|did\s+(?P<did>.+?)\s+(?:write|publish|author)",
    re.I | re.S,
)
_ABOUT = re.compile(r"(?:(?:is|are|that)\s+)?(?:about|on|dealing with|concerning)\s+(?P<topic>.+)", re.I | re.S)
_YEARS = re.compile(
    r"(?:(?:written|published|appeared|came out|from|made)\s+)*"
    r"(?:(?P<since>since)|(?P<after>after)|(?P<before>before)|between|(?P<until>until|up to)|in|from|of)\s+"
    r"(?P<one>(?:1[5-9]|20)\d\d)(?:\s*(?:and|to|-|–)\s*(?P<two>(?:1[5-9]|20)\d\d)|(?P<on>\s+on(?:wards?)?))?",
    re.I,
)


@dataclass(frozen=True, slots=True)
class LibraryQuestion:
    """What a question wants to know of the library."""

    kind: Literal["all", "wrote", "published", "by", "years", "about"]
    words: str = ""  # the paper, the person or the subject
    years: tuple[int, int] = (0, 9999)  # first and last
    is_count: bool = False  # it asks how many these are


def library_question(question: str) -> LibraryQuestion | None:
    """The question about the library that this is; None if it is one about what the papers say."""
    plain = " ".join(question.split())
    if match := _COUNT.fullmatch(plain):
        if _IN_ALL.fullmatch(match["rest"]):
            return LibraryQuestion("all", is_count=True)
        found = _restricted(re.sub(r"\s*(?:are|were|do (?:we|you|i) have|are there)\s+", "", match["rest"], count=1))
        return replace(found, is_count=True) if found else None
    if match := _WROTE.fullmatch(plain):
        return LibraryQuestion("wrote", match["what"])
    if match := _PUBLISHED.fullmatch(plain):
        return LibraryQuestion("published", match["what"] or match["of"])
    if match := _WHICH.fullmatch(plain):
        return _restricted(match["rest"])
    return None


def _restricted(rest: str) -> LibraryQuestion | None:
    """Which papers are meant by what follows the word "papers"; None if what they say decides it."""
    rest = rest.strip(" ?.!")
    if by := _BY.fullmatch(rest):
        return LibraryQuestion("by", by["name"] or by["did"])
    if years := _YEARS.fullmatch(rest):
        return LibraryQuestion("years", years=_span(years))
    if about := _ABOUT.fullmatch(rest):
        return LibraryQuestion("about", about["topic"])
    return None


def _span(match: re.Match[str]) -> tuple[int, int]:
    one, two = int(match["one"]), int(match["two"] or match["one"])
    if match["after"]:
        return one + 1, 9999
    if match["before"]:
        return 0, one - 1
    if match["until"]:
        return 0, one
    if (match["since"] or match["on"]) and not match["two"]:
        return one, 9999
    return one, two


def answer(question: str, papers: Sequence[Paper], title_passage: TitlePassage) -> Answer | None:
    """The answer from what is known about these papers; None if the papers have to be searched for it."""
    asked = library_question(question)
    if asked is None:
        return None
    found = list(papers) if asked.kind == "all" else _found(asked, papers)
    if asked.is_count and (found or asked.kind in ("all", "years")):
        return Answer(question, question, (), remark=_counted(asked, len(found)))
    if not found:
        return None
    evidence: list[Evidence] = []
    sentences: list[Sentence] = []
    for paper in found[:MOST_PAPERS]:
        hit = title_passage(paper)
        if hit is None:
            continue
        piece = Evidence(len(evidence) + 1, paper, hit.chunk.start, hit.chunk.end, hit.text, (hit,))
        start, end = _LINES.get(asked.kind, title_line)(piece)
        if start < end:
            evidence.append(piece)
            quote = citation(piece, start, end, 1.0)
            said = " ".join(quote.quote.split())
            year = said.find(str(paper.year)) if asked.kind == "published" else -1
            sentences.append(Sentence(said, (quote,), short=(year, year + 4) if year >= 0 else None))
    if not sentences:
        return None
    more = len(found) - len(sentences)
    notice = f"{more:,} more {'paper' if more == 1 else 'papers'} not shown." if more else ""
    return Answer(question, question, tuple(sentences), tuple(evidence), notice=notice)


def _found(asked: LibraryQuestion, papers: Sequence[Paper]) -> list[Paper]:
    """The papers that a question is about, sure matches alone."""
    words = frozenset(tokenize(asked.words))
    if asked.kind in ("wrote", "published"):
        named = list(papers_meant(asked.words, papers))
        generic = frozenset(tokenize("paper article study work report this"))
        wanted = words - generic
        return named or [
            paper for paper in papers if wanted and wanted <= frozenset(tokenize(f"{paper.title} {paper.file}"))
        ]
    if asked.kind == "by":
        return list(filter(by_author(asked.words), papers))
    if asked.kind == "years":
        first, last = asked.years
        return [paper for paper in papers if paper.year is not None and first <= paper.year <= last]
    return [paper for paper in papers if words and words <= _subject(paper)]


def _counted(asked: LibraryQuestion, number: int) -> str:
    papers = "1 paper" if number == 1 else f"{number:,} papers"
    if asked.kind == "about":
        return f"{papers} {'is' if number == 1 else 'are'} about this, by title, abstract or tags."
    if asked.kind == "by":
        return f"The library has {papers} by this author."
    return f"The library has {papers}{'' if asked.kind == 'all' else ' from these years'}."


def _subject(paper: Paper) -> frozenset[str]:
    data = paper.metadata
    return frozenset(tokenize(" ".join((paper.title, data.abstract.value, *data.tags.value))))


def title_line(piece: Evidence) -> tuple[int, int]:
    """The span of the paper's title on its first page; of the first line where it is not found."""
    words = r"\W*".join(re.escape(word) for word in re.findall(r"\w+", piece.paper.title))
    front = _front(piece)
    if words and (match := re.search(rf"[\[(“\"]?{words}", front, re.I)):  # "[Re] Otters" begins with a bracket
        return stripped(piece.text, *match.span())
    line = front.lstrip().partition("\n")[0]
    start = front.find(line)
    return stripped(piece.text, start, start + min(len(line), _LONGEST))


def authors_line(piece: Evidence) -> tuple[int, int]:
    """The span of the lines on the first page that name the authors; of the title where they are not found."""
    front = _front(piece).casefold()
    places = []
    for author in piece.paper.metadata.authors.value:
        if match := re.search(rf"(?<!\w){re.escape(author.family.casefold())}(?!\w)", front):
            places.append(match)
    if not places:
        return title_line(piece)
    first = min(match.start() for match in places)
    last = max(match.end() for match in places if match.end() - first <= _LONGEST)
    start = front.rfind("\n", 0, first) + 1
    end = front.find("\n", last)
    end = len(front) if end < 0 else end
    return stripped(piece.text, start, min(end, start + _LONGEST))


def year_line(piece: Evidence) -> tuple[int, int]:
    """The span of the first line that has the paper's year, at the beginning of it; nothing where there is none."""
    front = piece.text[:_FRONT]
    found = re.search(rf"(?<!\d){piece.paper.year}(?!\d)", front) if piece.paper.year else None
    if found is None:
        return 0, 0
    start, end = front.rfind("\n", 0, found.start()) + 1, front.find("\n", found.end())
    return stripped(piece.text, max(start, found.end() - _LONGEST), len(front) if end < 0 else end)


def _front(piece: Evidence) -> str:
    """The beginning of the title page, no further than the page."""
    _, page_end = piece.paper.pages.bounds(piece.paper.pages.page_at(piece.start), piece.paper.length)
    return piece.text[: min(_FRONT, page_end - piece.start)]


# What is quoted of a title page
_LINES = {"wrote": authors_line, "published": year_line}
