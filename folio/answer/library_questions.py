"""Questions about the library itself: who wrote a paper, when and where it appeared, which papers are by someone, since
a year, about something.

They are answered from what is known about the papers, each with a quote from its first pages; those that ask which
papers say something (`wanted_papers`) are searched. Pure but for the text that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from folio.answer.facts_question import Fact, FactsQuestion, facts_question, papers_asked_about
from folio.answer.title_page import Span, authors_span, title_span, venue_span, year_span
from folio.answer_types import Answer, Evidence, Sentence
from folio.grounding.sentences import citation
from folio.paper_metadata import ORIGIN_WORDS, Field
from folio.search.paper_filter import by_author
from folio.search.paper_names import PaperNames
from folio.shown_text import name_line
from folio.text import one_line, tokenize
from folio.types import Paper

if TYPE_CHECKING:
    from folio.search.question import Question

# The first pages of a paper, with its first passage
FrontOf = Callable[[Paper], Evidence | None]

MOST_PAPERS = 10  # that are listed
_LONGEST_TITLE = 100  # characters of one in a remark

_COUNT = re.compile(
    r"\W*(?:how many|what number of) (?:papers?|pdfs?|documents?|articles?|files?)\b(?P<rest>.*)", re.I | re.S
)
_IN_ALL = re.compile(
    r"\s*(?:(?:are|is|do|have|can)\s+)?(?:there|you|we|i|here)?\s*(?:have|know|see|search|read)?\s*"
    r"(?:in all|in total|altogether|here|(?:in|are in) (?:the|my|your|this) (?:library|index|collection|folder))?\W*",
    re.I,
)
_WHICH = re.compile(
    r"\W*(?:(?:(?:which|what)(?: of (?:my|our|the|these|those|your))?"
    r"|list(?: all| the)?|show(?: me)?(?: all| the)?|are there(?: any)?) )?"
    r"(?:papers?|articles?|studies|publications?)\s+(?:(?:are|were|is|do you have|that are|there are)\s+)?"
    r"(?P<rest>.+?)\W*",
    re.I | re.S,
)
_BY = re.compile(
    r"(?:(?:written|authored|published|made)\s+)?by\s+(?P<name>.+)|did\s+(?P<did>.+?)\s+(?:write|publish|author)"
    r"|(?:have|has|with|list|name)\s+(?P<having>.+?)\s+(?:as (?:an? |the )?(?:co-?)?|among (?:the |their )?)authors?",
    re.I | re.S,
)
_ABOUT = re.compile(r"(?:(?:is|are|that)\s+)?(?:about|on|dealing with|concerning)\s+(?P<topic>.+)", re.I | re.S)
_YEARS = re.compile(
    r"(?:(?:written|published|appeared|came out|from|made)\s+)*"
    r"(?:(?P<since>since)|(?P<after>after)|(?P<before>before)|between|(?P<until>until|up to)|in|from|of)\s+"
    r"(?P<one>(?:1[5-9]|20)\d\d)(?:\s*(?:and|to|-|–)\s*(?P<two>(?:1[5-9]|20)\d\d)|(?P<on>\s+on(?:wards?)?))?",
    re.I,
)
# "which papers", "is there a study", "what do I have on": a question whose answer is papers
_PAPERS = re.compile(
    r"\W*(?:(?:please )?(?:which|what|list|name|show|find|give|are there|do (?:i|we|you) have)?"
    r"\s*(?:(?:me|any|all|some|other|of|the|my|these|those)\s+)*(?P<kind>(?:[\w-]+ ){0,2}?)"
    r"(?:papers|articles|publications|studies)"
    r"|(?:is there|do (?:i|we|you) have) (?:an?|any|one) (?:paper|article|publication|study))\b(?P<rest>.*)"
    r"|\W*(?:(?:what(?:['’]s)?|is there|are there|do (?:i|we|you) have|have (?:i|we)|got) )*"
    r"(?:(?:else|do (?:i|we|you) have|is there|have (?:i|we)|got|anything|something|here|in)\s)+"
    r"(?P<have>(?:on|about)\b.*)",
    re.I | re.S,
)
# What may stand between these words and the subject: "that deal with", "do I have here about", "which use or evaluate"
_FILLER = frozenset(
    """
    a about address addresses all also an and any anything are articles be been by can collection compare compares
    concern concerning concerns contain contains could cover covering covers deal dealing deals describe describes
    describing did discuss discusses discussing do does evaluate evaluates explain explains folder for from give
    gives got had has have here i in introduce introduces is it library looks look mention mentions mentioning my of
    on or papers present presenting presents propose proposes regarding relate related relates report reports say
    says show shows something studies study studying talk talking talks tell tells that the their there these they
    this to treat treats use uses using was we were what which who with work works you
    """.split()
)


@dataclass(frozen=True, slots=True)
class LibraryQuestion:
    """What a question wants to know of the library."""

    kind: Literal["all", "by", "years", "about"]
    words: str = ""  # the person or the subject
    years: tuple[int, int] = (0, 9999)  # first and last
    is_count: bool = False  # it asks how many these are


def library_question(question: str) -> LibraryQuestion | FactsQuestion | None:
    """The question about the library that this is; None if it is one about what the papers say."""
    plain = one_line(question)
    if match := _COUNT.fullmatch(plain):
        if _IN_ALL.fullmatch(match["rest"]):
            return LibraryQuestion("all", is_count=True)
        found = _restricted(re.sub(r"\s*(?:are|were|do (?:we|you|i) have|are there)\s+", "", match["rest"], count=1))
        return replace(found, is_count=True) if found else None
    match = _WHICH.fullmatch(plain)
    if match and (found := _restricted(match["rest"])) and found.kind != "about":
        return found
    return facts_question(plain)


def wanted_papers(question: str) -> str:
    """What the papers say that a question asks for; "" if it asks for none, or for those of a person or of some years.

    >>> wanted_papers("which papers deal with hazard pointers?"), wanted_papers("What does the paper say?")
    ('hazard pointers', '')
    """
    plain = one_line(question).strip(" ?.!")
    match = _PAPERS.fullmatch(plain)
    if match is None or library_question(plain) is not None:
        return ""
    words = (match["rest"] or match["have"] or "").split()
    while words and words[0].strip(",;:").casefold() in _FILLER:
        del words[0]
    return " ".join([(match["kind"] or "").strip(), *words]).strip() if words else ""


def listed_notice(listed: int, read: int, papers: int) -> str:
    """What is said below the papers that are listed for a question: how many, of how many that were looked at."""
    found = "1 paper is" if listed == 1 else f"{listed} papers are"
    return (
        f"{found} listed. All {papers:,} were ranked by their titles, abstracts, headings and passages, and the best"
        f" passage was read of the first {read}: others may say something of it too."
    )


def _restricted(rest: str) -> LibraryQuestion | None:
    """Which papers are meant by what follows the word "papers"; None if what they say decides it."""
    rest = rest.strip(" ?.!")
    if by := _BY.fullmatch(rest):
        return LibraryQuestion("by", by["name"] or by["did"] or by["having"])
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


def answer(
    question: Question, papers: Sequence[Paper], names: Callable[[], PaperNames], front_of: FrontOf
) -> Answer | None:
    """The answer from what is known about these papers; None if the papers have to be searched for it."""
    asked, text = question.about_library, question.text
    if isinstance(asked, FactsQuestion):
        about = papers_asked_about(asked, papers, names())[:MOST_PAPERS]
        return _facts(text, [(paper, fact) for paper in about for fact in asked.facts], front_of)
    if asked is None:
        return None
    found = list(papers) if asked.kind == "all" else _found(asked, papers)
    if asked.is_count and (found or asked.kind in ("all", "years")):
        return Answer(text, text, (), remark=_counted(asked, len(found)))
    fronts = [front for paper in found[:MOST_PAPERS] if (front := front_of(paper))]
    spans = [(front, title_span(front.paper, front.text)) for front in fronts]
    quoted = [_quoted(front, span, number) for number, (front, span) in enumerate(spans, 1) if span[0] < span[1]]
    if not quoted:
        return None
    more = len(found) - len(quoted)
    notice = f"{more:,} more {'paper' if more == 1 else 'papers'} not shown." if more else ""
    evidence, sentences = zip(*quoted, strict=True)
    return Answer(text, text, sentences, evidence, notice=notice)


def _facts(question: str, wanted: Sequence[tuple[Paper, Fact]], front_of: FrontOf) -> Answer | None:
    """What is known of these facts, each quoted from the paper's first pages; what is not sure is said to be so."""
    evidence: list[Evidence] = []
    sentences: list[Sentence] = []
    remarks: list[str] = []
    for paper, fact in wanted:
        front = front_of(paper)
        span = _SPANS[fact](paper, front.text) if front else None
        if front is not None and span is not None:
            part, sentence = _quoted(front, span, len(evidence) + 1, str(paper.year) if fact == "when" else "")
            evidence.append(part)
            sentences.append(sentence)
        remarks.append(_remark(paper, fact, is_quoted=span is not None))
    remark = " ".join(filter(None, remarks))
    if sentences:
        return Answer(question, question, tuple(sentences), tuple(evidence), notice=remark)
    return Answer(question, question, (), remark=remark) if remark else None


def _quoted(front: Evidence, span: Span, number: int, short: str = "") -> tuple[Evidence, Sentence]:
    """A quote of a paper's first pages, and the passage that it is in. short: what in it is the short answer."""
    start, end = front.start + span[0], front.start + span[1]
    chunk = front.hits[0].chunk
    first, last = (chunk.start, chunk.end) if chunk.start <= start and end <= chunk.end <= front.end else (start, end)
    text = front.text[first - front.start : last - front.start]
    part = Evidence(number, front.paper, first, last, text, front.hits)
    quote = citation(part, start - first, end - first, 1.0)
    said = one_line(quote.quote)
    at = said.find(short) if short else -1
    return part, Sentence(said, (quote,), short=(at, at + len(short)) if at >= 0 else None)


def _remark(paper: Paper, fact: Fact, *, is_quoted: bool) -> str:
    """What has to be said of a fact besides its quote: that it is not sure, not known, or known from elsewhere."""
    data, title = paper.metadata, f"“{name_line(paper.title or paper.file, _LONGEST_TITLE)}”"
    fields: dict[Fact, Field[Any]] = {"who": data.authors, "when": data.year, "where": data.venue}
    field = fields[fact]
    name = _FIELD_NAMES[fact]
    if is_quoted:
        return "" if field.sure else f"Not sure of the {name} of {title}: see the page."
    value = name_line("; ".join(paper.authors) if fact == "who" else str(field.value or ""))
    if not value or (paper.year is None and fact == "when"):
        return f"The {name} of {title} {'are' if fact == 'who' else 'is'} not known: its first pages do not say."
    doubt = "" if field.sure else "Not sure: "
    # A line at the edge of a page, from which it was read, may not be in the paper's text.
    elsewhere = "" if field.origin == "page" else "; its first pages do not say"
    return f"{doubt}{value} for {title} ({ORIGIN_WORDS[field.origin]}{elsewhere})."


def _found(asked: LibraryQuestion, papers: Sequence[Paper]) -> list[Paper]:
    """The papers that a question is about, sure matches alone."""
    words = frozenset(tokenize(asked.words))
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


# What is quoted of the first pages, and what it is called
_SPANS: dict[Fact, Callable[[Paper, str], Span | None]] = {
    "who": authors_span, "when": year_span, "where": venue_span,
}  # fmt: skip
_FIELD_NAMES: dict[Fact, str] = {"who": "authors", "when": "year", "where": "journal or conference"}
