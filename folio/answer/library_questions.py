"""Questions about the library itself: who wrote a paper, when and where it appeared, which papers are by someone, since
a year, about something.

They are answered from what is known about the papers, each with a quote from its first pages; those that ask which
papers say something (`wanted_papers`) are searched. Pure but for the text that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from folio.answer.facts_question import papers_asked_about
from folio.answer.title_page import Span, authors_span, title_span, venue_span, year_span
from folio.answer_types import Answer, Evidence, Sentence
from folio.grounding.sentences import citation
from folio.paper_metadata import ORIGIN_WORDS, Field
from folio.search.library_question import Fact, FactsQuestion, LibraryQuestion
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


def listed_notice(listed: int, read: int, papers: int) -> str:
    """What is said below the papers that are listed for a question: how many, of how many that were looked at."""
    found = "1 paper is" if listed == 1 else f"{listed} papers are"
    return (
        f"{found} listed. All {papers:,} were ranked by their titles, abstracts, headings and passages, and the best"
        f" passage was read of the first {read}: others may say something of it too."
    )


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
