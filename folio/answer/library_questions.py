"""Answers questions about the library from metadata: who wrote a paper, when and where, which papers are by someone.

Each answer has a quote from the paper's first pages. Questions such as "which papers use X" need a search instead
(question/library.py, `wanted_papers`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from folio.answer_types import Answer, Evidence, Sentence
from folio.grounding.sentences import citation
from folio.papers.metadata import ORIGIN_WORDS, Field
from folio.papers.model import Paper
from folio.question.library import OF_A_PAPER, Fact, FactsQuestion, LibraryQuestion
from folio.search.filters import by_author
from folio.search.names import PaperNames
from folio.shown_text import name_line
from folio.text import one_line, stripped, tokenize, without_accents

if TYPE_CHECKING:
    from folio.question.question import Question

Span = tuple[int, int]  # [start, end) in the text of the first pages
# A paper -> its first pages, with its first passage
FrontOf = Callable[[Paper], Evidence | None]

MOST_PAPERS = 10  # listed in one answer
_LONGEST_TITLE = 100  # characters of a title in a remark

# Words of a question about facts that do not identify a paper
_FRAME = frozenset(
    tokenize(
        "please tell give show list name know whose whos who's write wrote written author authored writer publish"
        " published publication paper article study report document manuscript preprint thesis book notes essay memo"
        " replication reproduction do submit appear come came release released year date old recent new person people"
        " team behind make made create invent propose introduce develop design first original call title full"
    )
)
# Words of a question about a paper as a whole
_WHOLE_PAPER = frozenset(
    tokenize(
        "summary summarize summarise summarizing overview gist synopsis nutshell sum short brief quick main key point"
        " idea message topic goal purpose say said tell explain describe about what"
    )
)
_PLACES = frozenset(tokenize("present journal conference venue workshop proceedings magazine"))
_SEVERAL = re.compile(r"\b(?:papers|articles|studies|publications|books)\b", re.I)
_MOST_DESCRIBED = 3  # papers; a description that fits more identifies none
_FRONT = 2500  # characters of a title page that are searched for title and authors
_LONGEST = 600  # characters of a quote
_LINE = 200  # characters of a line of front matter; prose has longer ones


def listed_notice(listed: int, read: int, papers: int) -> str:
    """The notice below a list of papers: how many are listed, ranked and read."""
    count = "1 paper is" if listed == 1 else f"{listed} papers are"
    return (
        f"{count} listed. All {papers:,} were ranked by title, abstract, headings and passages; the best passage of"
        f" each of the first {read} was read. Other papers may be relevant, too."
    )


def answer(
    question: Question, papers: Sequence[Paper], names: Callable[[], PaperNames], front_of: FrontOf
) -> Answer | None:
    """The answer from the metadata of these papers; None if it needs a search."""
    wanted, text = question.about_library, question.text
    if isinstance(wanted, FactsQuestion):
        about = papers_meant(wanted, papers, names())[:MOST_PAPERS]
        return _facts(text, [(paper, fact) for paper in about for fact in wanted.facts], front_of)
    if wanted is None:
        return None
    matching = list(papers) if wanted.kind == "all" else _matching(wanted, papers)
    if wanted.is_count and (matching or wanted.kind in ("all", "years")):
        return Answer(text, text, (), remark=_count_remark(wanted, len(matching)))
    fronts = [front for paper in matching[:MOST_PAPERS] if (front := front_of(paper))]
    spans = [(front, title_span(front.paper, front.text)) for front in fronts]
    quoted = [_quoted(front, span, number) for number, (front, span) in enumerate(spans, 1) if span[0] < span[1]]
    if not quoted:
        return None
    more = len(matching) - len(quoted)
    notice = f"{more:,} more {'paper' if more == 1 else 'papers'} not shown." if more else ""
    evidence, sentences = zip(*quoted, strict=True)
    return Answer(text, text, sentences, evidence, notice=notice)


def _facts(question: str, wanted: Sequence[tuple[Paper, Fact]], front_of: FrontOf) -> Answer | None:
    """These facts, each quoted from the paper's first pages; a remark says which are not sure or not known."""
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
    """A quote of a paper's first pages, and the passage that it is in. short: the words of the short answer."""
    start, end = front.start + span[0], front.start + span[1]
    chunk = front.hits[0].chunk
    first, last = (chunk.start, chunk.end) if chunk.start <= start and end <= chunk.end <= front.end else (start, end)
    text = front.text[first - front.start : last - front.start]
    part = Evidence(number, front.paper, first, last, text, front.hits)
    quote = citation(part, start - first, end - first, 1.0)
    words = one_line(quote.quote)
    at = words.find(short) if short else -1
    return part, Sentence(words, (quote,), short=(at, at + len(short)) if at >= 0 else None)


def _remark(paper: Paper, fact: Fact, *, is_quoted: bool) -> str:
    """The remark on a fact: not sure, not known, or known from elsewhere; "" for a sure one that is quoted."""
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


def _matching(wanted: LibraryQuestion, papers: Sequence[Paper]) -> list[Paper]:
    """The papers that a question asks for; only sure matches."""
    if wanted.kind == "by":
        return list(filter(by_author(wanted.words), papers))
    if wanted.kind == "years":
        first, last = wanted.years
        return [paper for paper in papers if paper.year is not None and first <= paper.year <= last]
    words = frozenset(tokenize(wanted.words))
    topics = {p.id: tokenize(" ".join((p.title, p.metadata.abstract.value, *p.metadata.tags.value))) for p in papers}
    return [paper for paper in papers if words and words.issubset(topics[paper.id])]


def _count_remark(wanted: LibraryQuestion, number: int) -> str:
    papers = "1 paper" if number == 1 else f"{number:,} papers"
    if wanted.kind == "about":
        return f"{papers} {'is' if number == 1 else 'are'} about this, by title, abstract or tags."
    if wanted.kind == "by":
        return f"The library has {papers} by this author."
    return f"The library has {papers}{'' if wanted.kind == 'all' else ' from these years'}."


# The papers that a question means


def papers_meant(wanted: FactsQuestion, papers: Sequence[Paper], names: PaperNames) -> list[Paper]:
    """The papers that a question about facts means; none if it has words that belong to no paper.

    A question names a paper, or describes it by words of its title, file and authors. A name that other papers use for
    it (search/names.py) counts for "who wrote X" but not for "who invented X": X may be someone else's invention.
    """
    frame = _FRAME | _PLACES if "where" in wanted.facts else _FRAME
    words = [word for word in wanted.question.split() if not frame.issuperset(tokenize(word))]
    among = {paper.id for paper in papers}
    by_use = wanted.of_a_paper or "who" not in wanted.facts
    named = [paper for paper in names.meant(wanted.question, by_use=by_use) if paper.id in among]

    def explains(paper: Paper, word: str) -> bool:
        known = _words_of(paper) | frozenset(tokenize(paper.metadata.abstract.value))
        return known.issuperset(tokenize(word)) or paper in names.called(word.strip("?.,;:!()\"'“”"))

    if whole := [paper for paper in named if all(explains(paper, word) for word in words)]:
        return whole
    if named and all(any(explains(paper, word) for paper in named) for word in words):
        return named
    tokens = frozenset(tokenize(" ".join(words)))
    if not tokens:
        return list(papers) if wanted.of_a_paper and len(papers) == 1 else []
    return _described(wanted, tokens, papers)


def papers_described(question: str, papers: Sequence[Paper]) -> list[Paper]:
    """The papers that a question about a whole paper describes without a name: "a summary of the X paper"."""
    tokens = frozenset(tokenize(question)) - _FRAME - _WHOLE_PAPER
    wanted = FactsQuestion(question, (), OF_A_PAPER.search(question) is not None)
    return _described(wanted, tokens, papers) if tokens else []


def _described(wanted: FactsQuestion, tokens: frozenset[str], papers: Sequence[Paper]) -> list[Paper]:
    """The papers that these tokens describe, at most _MOST_DESCRIBED.

    The tokens are a whole title, or all of them are in title, file and authors. If they fit only one paper, up to half
    of them may be from its abstract instead.
    """
    if whole := [paper for paper in papers if _title(paper) - _FRAME == tokens]:
        return whole
    if not wanted.of_a_paper or _SEVERAL.search(wanted.question):
        return []
    if matching := [paper for paper in papers if tokens <= _words_of(paper)]:
        return matching if len(matching) <= _MOST_DESCRIBED else []
    half = [paper for paper in papers if 2 * len(tokens & _title(paper)) >= len(tokens)]
    matching = [p for p in half if tokens <= _words_of(p) | frozenset(tokenize(p.metadata.abstract.value))]
    return matching if len(matching) == 1 else []


def _title(paper: Paper) -> frozenset[str]:
    return frozenset(tokenize(paper.title))


def _words_of(paper: Paper) -> frozenset[str]:
    """The search tokens of its title, file name and authors."""
    stem = re.sub(r"[_-]", " ", PurePath(paper.file).stem)
    return frozenset(tokenize(" ".join((paper.title, paper.file, stem, *paper.authors))))


# Where title, authors, year and venue are printed on the first pages


def title_span(paper: Paper, text: str) -> Span:
    """Where the title is printed; the first line if it is not found."""
    if match := _title_match(paper, text):
        return stripped(text, *match.span())
    line = text.lstrip().partition("\n")[0]
    start = text.find(line)
    return stripped(text, start, start + min(len(line), _LONGEST))


def authors_span(paper: Paper, text: str) -> Span | None:
    """The lines with the authors, preferably after the title; None if no author is found."""
    title = _title_match(paper, text)
    for begin in dict.fromkeys((title.end() if title else 0, 0)):
        front = text[begin:_FRONT]
        places = [place for author in paper.metadata.authors.value if (place := _name(author.family, front))]
        if places:
            first = min(place.start() for place in places)
            last = max(place.end() for place in places if place.end() - first <= _LONGEST)
            start, end = _lines(front, first, last)
            return stripped(text, begin + start, begin + min(end, start + _LONGEST))
    return None


def year_span(paper: Paper, text: str) -> Span | None:
    """The line with the paper's year, front matter before prose; None if the year is not printed."""
    return _line_with(rf"(?<!\d){paper.year}(?!\d)", text) if paper.year else None


def venue_span(paper: Paper, text: str) -> Span | None:
    """The line with the venue; None if it is not printed in the form of the metadata."""
    words = re.findall(r"\w+", paper.metadata.venue.value)
    return _line_with(r"\W*".join(map(re.escape, words)), text) if words else None


def _title_match(paper: Paper, text: str) -> re.Match[str] | None:
    words = r"\W*".join(re.escape(word) for word in re.findall(r"\w+", paper.title))
    # "[Re] Otters" begins with a bracket
    return re.search(rf"[\[(“\"]?{words}", text[:_FRONT], re.I) if words else None


def _name(family: str, text: str) -> re.Match[str] | None:
    """A family name in a text; accents may be separate characters, as in old typesetting."""
    pairs = [(re.escape(letter), re.escape(without_accents(letter))) for letter in family]
    letters = "".join(one if one == plain else rf"(?:{one}|[^\w\s]?{plain}[^\w\s]?)" for one, plain in pairs)
    return re.search(rf"(?<!\w){letters}(?![^\W\d_])", text, re.I)


def _line_with(pattern: str, text: str) -> Span | None:
    """The first short line that matches, or else the first line that does."""
    lines: list[Span] = []
    for match in re.finditer(pattern, text, re.I):
        start, end = _lines(text, *match.span())
        lines.append(stripped(text, max(start, match.end() - _LONGEST), min(end, match.end() + _LONGEST)))
    short = [(start, end) for start, end in lines if end - start <= _LINE]
    return next(iter([*short, *lines]), None)


def _lines(text: str, start: int, end: int) -> Span:
    """The whole lines around a span."""
    after = text.find("\n", end)
    return text.rfind("\n", 0, start) + 1, len(text) if after < 0 else after


# The quote for each fact, and its name in a remark
_SPANS: dict[Fact, Callable[[Paper, str], Span | None]] = {
    "who": authors_span, "when": year_span, "where": venue_span,
}  # fmt: skip
_FIELD_NAMES: dict[Fact, str] = {"who": "authors", "when": "year", "where": "journal or conference"}
