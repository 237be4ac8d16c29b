"""Answers questions about the library from metadata: who wrote a paper, when and where, which papers are by someone.

A fact that is printed is quoted from the paper's first pages, and a listed paper by its title. Questions such as "which
papers use X" need a search instead (question/library.py, `wanted_papers`); "which do not use X" are answered here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from folio.answer.library_lists import (
    NothingKnown,
    Shelf,
    chosen,
    local_day,
    none_known,
    ordered,
    understood,
    values_answer,
)
from folio.answer_types import Answer, Evidence, Sentence
from folio.grounding.sentences import citation
from folio.papers.metadata import ORIGIN_WORDS, Field
from folio.papers.model import Paper
from folio.question.library import DETAILS, OF_A_PAPER, Fact, FactsQuestion, LibraryQuestion, WantedPapers
from folio.search.names import PaperNames
from folio.shown_text import counted, name_line
from folio.store.readings import Use
from folio.text import find_words, one_line, sentence_spans, stripped, tokenize, without_accents

if TYPE_CHECKING:
    from folio.question.question import Question

Span = tuple[int, int]  # [start, end) in the text of the first pages

MOST_PAPERS, MOST_LINES = 10, 100  # listed in one answer
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
_DETAIL_WORDS = frozenset(
    tokenize(
        "many long language page number count add import ingest read open look last ever already note take tag doi"
        " contain"
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


def answer(question: Question, shelf: Shelf) -> Answer | None:
    """The answer from the metadata of these papers, or what they do not mention; None if it needs a search."""
    wanted, text = question.about_library, question.text
    try:
        if isinstance(wanted, FactsQuestion):
            about = _papers_of(wanted, shelf)[:MOST_PAPERS]
            return _facts(text, [(paper, fact) for paper in about for fact in wanted.facts], shelf)
        if wanted and not wanted.is_searched and (listed := _listed(text, wanted, shelf)):
            return listed
    except NothingKnown as unknown:
        return Answer(text, text, (), remark=str(unknown))
    left, meant = _meeting_conditions(question, shelf)
    if not left:
        return Answer(text, text, (), remark=f"{meant} The library has no such papers.")
    return None if question.topic else _without(question, left, meant, shelf)


def _papers_of(wanted: FactsQuestion, shelf: Shelf) -> list[Paper]:
    """The papers whose facts are asked for. Raises NothingKnown."""
    among = chosen(wanted.which, shelf) if wanted.which else None
    if wanted.which is None or among is None:
        return papers_meant(wanted, shelf.papers, shelf.names())
    return _in_order(among[0], wanted.which, among[1], shelf)


def _in_order(papers: Sequence[Paper], wanted: LibraryQuestion, said: str, shelf: Shelf) -> list[Paper]:
    """The papers in the order that is asked for. Raises NothingKnown if none of them has a place in it."""
    found = ordered(papers, wanted, shelf)
    if wanted.order and papers and not found:
        raise NothingKnown(none_known(wanted.order, papers, said))
    return found


def _listed(text: str, wanted: LibraryQuestion, shelf: Shelf) -> Answer | None:
    """A count, or a list with the beginning of each paper; None if it needs a search. Raises NothingKnown."""
    among = chosen(wanted, shelf)
    if among is None:
        return None
    papers, said, option = among
    if wanted.by:
        return values_answer(text, papers, wanted.by, said)
    by_words = any(condition.field == "about" for condition in wanted.conditions)
    if by_words and not papers:
        return None  # their texts may be about it
    papers = _in_order(papers, wanted, said, shelf)
    count = f"{counted(len(papers), 'paper')}{' ' + said if said else ''}"
    if wanted.asks == "count" or not papers:
        return Answer(text, text, (), remark=f"The library has {count if papers else 'no ' + count[2:]}.")
    is_lines = wanted.asks == "lines"
    most = MOST_LINES if is_lines else MOST_PAPERS
    meant = understood(wanted, said, option)
    if is_lines:
        meant = f"{meant} {_lines_notice(papers)}"
    return _list(text, papers, shelf, meant, most, abstract_span if is_lines else None)


def _list(
    text: str,
    papers: Sequence[Paper],
    shelf: Shelf,
    meant: str,
    most: int = MOST_PAPERS,
    span_of: Callable[[Paper, str], Span] | None = None,
    *,
    is_counted: bool = True,
) -> Answer | None:
    """A quote from the beginning of each paper, at most so many. meant: a notice to show below, then their number.

    span_of: what to quote (default: the title).
    """
    fronts = [front for paper in papers[:most] if (front := shelf.front_of(paper))]
    spans = [(front, (span_of or title_span)(front.paper, front.text)) for front in fronts]
    quoted = [_quoted(front, span, number) for number, (front, span) in enumerate(spans, 1) if span[0] < span[1]]
    if not quoted:
        return None
    listed, more = counted(len(papers), "paper"), len(papers) - len(quoted)
    total = f"{listed}, the first {len(quoted)} of which are shown." if more else f"{listed}." * is_counted
    evidence, sentences = zip(*quoted, strict=True)
    return Answer(text, text, sentences, evidence, notice=f"{meant} {total}".strip())


def _lines_notice(papers: Sequence[Paper]) -> str:
    without = sum(not paper.metadata.abstract.value for paper in papers)
    of_title = f" No abstract is known of {without:,}: their titles are quoted instead." if without else ""
    return f"Each line is the first sentence of a paper's abstract.{of_title}"


def _without(question: Question, among: Sequence[Paper], meant: str, shelf: Shelf) -> Answer | None:
    """The papers in which nothing about some topics was found; None if the question denies no topic."""
    text, wanted = question.text, question.papers
    if not (wanted.without or wanted.other_than):
        return None
    out, said = _left_out(wanted, shelf)
    papers = [paper for paper in among if paper.id not in out]
    of = f"{len(papers):,} of {counted(len(among), 'paper')}"
    if not papers:
        return Answer(text, text, (), remark=f"{meant} Each of the {of[5:]} mentions {said}.".strip())
    others = len(among) - len(papers)
    them = "one of them" if len(wanted.without) > 1 else "it"
    rest = f" The other {others:,} mention {them}, which need not mean more than a mention." if others else ""
    these = "these " if len(papers) > 1 else ""
    looked = f"Nothing about {said} was found in {these}{of}: none of their passages has these words.{rest}"
    return _list(text, papers, shelf, f"{meant} {looked}".strip(), is_counted=False)


def _left_out(wanted: WantedPapers, shelf: Shelf) -> tuple[set[str], str]:
    """The ids of the papers that mention a topic, or are a paper, that is denied; and these in words."""
    others = {name: {paper.id for paper in shelf.names().called(name)} for name in wanted.other_than}
    ids = {id for name, named in others.items() for id in named or shelf.mentions(name)}
    ids |= {id for topic in wanted.without for id in shelf.mentions(topic)}
    return ids, " or ".join(f"“{name_line(topic)}”" for topic in (*wanted.without, *wanted.other_than))


def _meeting_conditions(question: Question, shelf: Shelf) -> tuple[list[Paper], str]:
    """The papers that meet the conditions of a question for papers, and these in words; "" for none."""
    wanted = question.about_library
    if not isinstance(wanted, LibraryQuestion):
        return list(shelf.papers), ""
    others = tuple(each for each in wanted.conditions if each.field not in ("about", "paper"))
    try:
        among = chosen(LibraryQuestion(others), shelf)
    except NothingKnown as unknown:
        return list(shelf.papers), f"{unknown} All papers were searched."
    if among is None:
        unclear = "Only the topic was understood. All papers were searched."
        return list(shelf.papers), unclear if wanted.is_searched else ""
    return among[0], understood(LibraryQuestion(others), *among[1:])


def narrowed(question: Question, shelf: Shelf) -> tuple[list[Paper], str]:
    """The papers to search for a question's topic, and a notice about those that it excludes; "" for none."""
    papers, notice = _meeting_conditions(question, shelf)
    notices = [notice]
    out, said = _left_out(question.papers, shelf)
    if said:
        left = [paper for paper in papers if paper.id not in out]
        of = f"{len(left):,} of {counted(len(papers), 'paper')}"
        is_named = any(map(shelf.names().called, question.papers.other_than))
        meant = "other than" if is_named else "in which nothing was found about"
        notices.append(f"Only papers {meant} {said} were searched: {of}.")
        papers = left
    if not question.papers.is_understood:
        notices.append(
            "Folio did not understand what is denied, and shows what the papers say about the rest, which may be the"
            " opposite. Ask for papers that do not mention a word."
        )
    return papers, " ".join(filter(None, notices))


def _facts(question: str, wanted: Sequence[tuple[Paper, Fact]], shelf: Shelf) -> Answer | None:
    """These facts, each quoted from the paper's first pages; a remark says which are not sure, known or printed."""
    evidence: list[Evidence] = []
    sentences: list[Sentence] = []
    remarks: list[str] = []
    for paper, fact in wanted:
        if fact in DETAILS:
            remarks.append(_detail(paper, fact, shelf))
            continue
        front = shelf.front_of(paper)
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


def _detail(paper: Paper, fact: Fact, shelf: Shelf) -> str:
    """A fact that no page states: the number of pages, when it was added."""
    title = f"“{name_line(paper.title or paper.file, _LONGEST_TITLE)}”"
    use = shelf.uses().get(paper.id, Use("", "", 0))
    tags, doi = ", ".join(map(name_line, paper.metadata.tags.value)), paper.metadata.doi.value
    added, opened = (local_day(time) if time else None for time in (use.added, use.opened))
    said: dict[Fact, str] = {
        "pages": f"{title} has {counted(paper.page_count, 'page')}.",
        "added": f"{title} was added on {added}." if added else f"It is not known when {title} was added.",
        "opened": f"You last opened {title} on {opened}." if opened else f"You never opened {title}.",
        "notes": f"You have {counted(use.notes, 'note')} on {title}.",
        "tags": f"The tags of {title}: {tags}." if tags else f"{title} has no tags.",
        "language": f"The language of {title} is not known: Folio does not store it.",
        "doi": f"The DOI of {title} is {doi or 'not known'}.",
        "authors": f"{title} has {counted(len(paper.authors), 'author')}, as far as its first pages say.",
    }
    return said[fact]


# The papers that a question means


def papers_meant(wanted: FactsQuestion, papers: Sequence[Paper], names: PaperNames) -> list[Paper]:
    """The papers that a question about facts means; none if it has words that belong to no paper.

    A question names a paper, or describes it by words of its title, file and authors. A name that other papers use for
    it (search/names.py) counts for "who wrote X" but not for "who invented X": X may be someone else's invention.
    """
    frame = _FRAME | _PLACES if "where" in wanted.facts else _FRAME
    frame |= _DETAIL_WORDS if DETAILS.intersection(wanted.facts) else frozenset()
    # "To the public" says more than "publication", whose stem it has.
    typed = wanted.question.split()
    words = [word for word in typed if not frame.issuperset(tokenize(word)) or word.strip("?.,!") == "public"]
    among = {paper.id for paper in papers}
    by_use = wanted.of_a_paper or "who" not in wanted.facts
    named = [paper for paper in names.meant(wanted.question, by_use=by_use) if paper.id in among]

    def explains(paper: Paper, word: str) -> bool:
        known = _words_of(paper)
        if wanted.of_a_paper:  # else "When was Isis released to the public?" is about the thing
            known |= frozenset(tokenize(paper.metadata.abstract.value))
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


def abstract_span(paper: Paper, text: str) -> Span:
    """Where the first sentence of the abstract is printed; the title if it is not found."""
    abstract = paper.metadata.abstract.value
    for start, end in sentence_spans(abstract)[:1]:
        for place in find_words(text, abstract[start:end]):
            first, last = paper.pages.pages_of(*place)
            if first == last and place[1] - place[0] <= _LONGEST:
                end_of_sentence = place[1] + (text[place[1] : place[1] + 1] in (".", "?", "!"))
                return stripped(text, place[0], end_of_sentence)
    return title_span(paper, text)


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
