"""Questions about the library itself: who wrote a paper, when and where it appeared, which papers are by someone, since
a year, about something.

They are answered from what is known about the papers, each with a quote from its first pages; those that ask which
papers say something (`wanted_papers`) are searched. Pure but for the text that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
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


# The papers that a question about facts or a whole paper means: it names them or describes them. Pure.

_FRAME = frozenset(
    tokenize(
        "please tell give show list name know whose whos who's write wrote written author authored writer publish"
        " published publication paper article study report document manuscript preprint thesis book notes essay memo"
        " replication reproduction do submit appear come came release released year date old recent new person people"
        " team behind make made create invent propose introduce develop design first original call title full"
    )
)
# Words of a question about a paper as a whole
_OF_THE_WHOLE = frozenset(
    tokenize(
        "summary summarize summarise summarizing overview gist synopsis nutshell sum short brief quick main key point"
        " idea message topic goal purpose say said tell explain describe about what"
    )
)
_PLACES = frozenset(tokenize("present journal conference venue workshop proceedings magazine"))
_SEVERAL = re.compile(r"\b(?:papers|articles|studies|publications|books)\b", re.I)
_MOST_DESCRIBED = 3  # papers that a description may fit


def papers_asked_about(asked: FactsQuestion, papers: Sequence[Paper], names: PaperNames) -> list[Paper]:
    """The papers whose facts are asked for; none if the question has words that belong to none of them.

    A paper is named, or described by words of its title, file and authors. What a paper merely is known by
    (search/names.py) may be another's invention: it does for "who wrote", and not for "who invented".
    """
    frame = _FRAME | _PLACES if "where" in asked.facts else _FRAME
    words = [word for word in asked.question.split() if not frame.issuperset(tokenize(word))]
    among = {paper.id for paper in papers}
    by_use = asked.of_a_paper or "who" not in asked.facts
    named = [paper for paper in names.meant(asked.question, by_use=by_use) if paper.id in among]

    def explains(paper: Paper, word: str) -> bool:
        known = _words_of(paper) | _abstract(paper)
        return known.issuperset(tokenize(word)) or paper in names.called(word.strip("?.,;:!()\"'“”"))

    if whole := [paper for paper in named if all(explains(paper, word) for word in words)]:
        return whole
    if named and all(any(explains(paper, word) for paper in named) for word in words):
        return named
    tokens = frozenset(tokenize(" ".join(words)))
    if not tokens:
        return list(papers) if asked.of_a_paper and len(papers) == 1 else []
    return _described(asked, tokens, papers)


def papers_described(question: str, papers: Sequence[Paper]) -> list[Paper]:
    """The papers that a question about one as a whole describes, without their names: "a summary of the X paper"."""
    tokens = frozenset(tokenize(question)) - _FRAME - _OF_THE_WHOLE
    asked = FactsQuestion(question, (), OF_A_PAPER.search(question) is not None)
    return _described(asked, tokens, papers) if tokens else []


def _described(asked: FactsQuestion, tokens: frozenset[str], papers: Sequence[Paper]) -> list[Paper]:
    """The papers that these tokens describe, if they are few: with all words of a title, or with no other words.

    Up to half of the words may be of an abstract, if they are of only one.
    """
    if whole := [paper for paper in papers if _title(paper) - _FRAME == tokens]:
        return whole
    if not asked.of_a_paper or _SEVERAL.search(asked.question):
        return []
    if found := [paper for paper in papers if tokens <= _words_of(paper)]:
        return found if len(found) <= _MOST_DESCRIBED else []
    half = [paper for paper in papers if 2 * len(tokens & _title(paper)) >= len(tokens)]
    found = [paper for paper in half if tokens <= _words_of(paper) | _abstract(paper)]
    return found if len(found) == 1 else []


def _title(paper: Paper) -> frozenset[str]:
    return frozenset(tokenize(paper.title))


def _abstract(paper: Paper) -> frozenset[str]:
    return frozenset(tokenize(paper.metadata.abstract.value))


def _words_of(paper: Paper) -> frozenset[str]:
    """The words of its title, its file and its authors, as search tokens."""
    stem = re.sub(r"[_-]", " ", PurePath(paper.file).stem)
    return frozenset(tokenize(" ".join((paper.title, paper.file, stem, *paper.authors))))


# Where a paper's title, authors, year and venue stand on its first pages: spans of their text. Pure.

Span = tuple[int, int]

# Characters of a title page in which title and authors are looked for, of a quote of them, of a line of front matter
_FRONT, _LONGEST, _LINE = 2500, 600, 200


def title_span(paper: Paper, text: str) -> Span:
    """Where the title stands; the first line where it is not found."""
    if found := _title_match(paper, text):
        return stripped(text, *found.span())
    line = text.lstrip().partition("\n")[0]
    start = text.find(line)
    return stripped(text, start, start + min(len(line), _LONGEST))


def authors_span(paper: Paper, text: str) -> Span | None:
    """The lines that name the authors, behind the title if they are there; None where no author is found."""
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
    """The line with the paper's year, rather one of front matter than of prose; None where the year is not printed."""
    return _line_with(rf"(?<!\d){paper.year}(?!\d)", text) if paper.year else None


def venue_span(paper: Paper, text: str) -> Span | None:
    """The line with the venue; None where it is not printed as it is known."""
    words = re.findall(r"\w+", paper.metadata.venue.value)
    return _line_with(r"\W*".join(map(re.escape, words)), text) if words else None


def _title_match(paper: Paper, text: str) -> re.Match[str] | None:
    words = r"\W*".join(re.escape(word) for word in re.findall(r"\w+", paper.title))
    # "[Re] Otters" begins with a bracket
    return re.search(rf"[\[(“\"]?{words}", text[:_FRONT], re.I) if words else None


def _name(family: str, text: str) -> re.Match[str] | None:
    """Where a family name stands; its accents may be signs of their own, as old typesetting writes them."""
    letters = "".join(_letter(letter) for letter in family)
    return re.search(rf"(?<!\w){letters}(?![^\W\d_])", text, re.I)


def _letter(letter: str) -> str:
    plain = without_accents(letter)
    return re.escape(letter) if plain == letter else rf"(?:{re.escape(letter)}|[^\w\s]?{re.escape(plain)}[^\w\s]?)"


def _line_with(pattern: str, text: str) -> Span | None:
    """The first short line that has this, at the beginning of it, or else the first line."""
    lines = list(_lines_with(pattern, text))
    short = [(start, end) for start, end in lines if end - start <= _LINE]
    return next(iter([*short, *lines]), None)


def _lines_with(pattern: str, text: str) -> Iterator[Span]:
    for found in re.finditer(pattern, text, re.I):
        start, end = _lines(text, *found.span())
        yield stripped(text, max(start, found.end() - _LONGEST), min(end, found.end() + _LONGEST))


def _lines(text: str, start: int, end: int) -> Span:
    """The lines that have this span."""
    after = text.find("\n", end)
    return text.rfind("\n", 0, start) + 1, len(text) if after < 0 else after


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
