"""Ranks the excerpts of the evidence for a question, and chooses those that are shown.

An excerpt is a paragraph or a part of one, a whole list, or a row of a table below its caption: what can be read by
itself. Each sentence gets a share of the chance that it answers; an excerpt has the shares of its sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from folio.answer.excerpts import MOST_BEFORE, SHORTEST_SENTENCE, Block, Part, Span, blocks
from folio.answer_types import Evidence
from folio.grounding.conflicts import conflict
from folio.grounding.quantities import Quantity, quantities
from folio.papers.model import Hit, Paper, Passage, Reading, Vectors
from folio.papers.sections import NOT_EVIDENCE, Kind
from folio.protocols import PassageReader, TokenEmbedder
from folio.question.kind import Aspect, QuestionType
from folio.question.question import Question
from folio.search.builtin_reranker import MOST_ODDS, Matches, above, odds, passage_of, read_alone
from folio.text import STOP_WORDS, tokenize

# Finds the short answer of an asked type in a sentence: a number with its unit, a date, an acronym's words. Pure.
#
# A short answer is shown before everything else, so it is given only where the sentence leaves no choice.

AnswerSpan = tuple[int, int]

# How much of a question a sentence covers, at least, whose value is shown above an answer (LOG.md)
LEAST_COVERED = 0.6

_MONTH = "(?:jan|febr)uary|march|april|may|june|july|august|(?:sept|nov|dec)ember|october"
_YEAR = re.compile(r"(?<![\w.])(?:1[5-9]|20)\d\d(?![\w%]|\.\d)")
_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?:{_MONTH})\s+(?:\d{{1,2}}(?:st|nd|rd|th)?,?\s+)?(?:1[5-9]|20)\d\d\b"
    rf"|{_YEAR.pattern}",
    re.I,
)
# A year in brackets is a cited work's: "(Otter, 2019)", "Otter (2019)".
_CITED = re.compile(r"\([^()]*\)")
_CAPITAL = r"[^\W\d_a-z][\w’'-]*[a-z][\w’'-]*"
_PERSON = re.compile(rf"\b{_CAPITAL}(?:\s+[^\W\d_a-z]\.)*(?:\s+(?:van|von|de|der|del|la|den)\b)*\s+{_CAPITAL}")
_PLACE = re.compile(
    rf"\b(?:in|at|from|near|off|on)\s+(?P<place>(?:the\s+)?{_CAPITAL}(?:[,\s]+(?:(?:of|the|and)\s+)?{_CAPITAL})*)"
)
# What may stand behind a number as its unit, or as what it counts: "64 MB", "5%", "12 lessons", "3 km/h"
_UNIT = re.compile(r"[\s-]?(?P<unit>[%‰]|°\s?[CF]\b|[^\W\d_]+(?:/[^\W\d_]+)?)(?!\w)")
# What says how a number is meant, right before it
_QUALIFIER = re.compile(
    r"\b(?:(?:(?:(?:no )?(?:more|less|fewer)|greater|higher|lower|larger|smaller|better) than|at (?:least|most)|up to"
    r"|about|around|approximately|roughly|nearly|almost|over|under|above|below|only|exceeding|as (?:many|few) as)\s+"
    r"|[~≈<>≤≥±]\s?)$",
    re.I,
)
# What makes a number a part of a formula, right before and right behind it: "2t + 1 replicas", "3 × 4"
_OPERATOR = r"[+×*/^=−]"
_FORMULA_BEFORE = re.compile(rf"[\w)]\s?{_OPERATOR}\s?$")
_FORMULA_BEHIND = re.compile(rf"\s?{_OPERATOR}\s?[\w(]")
_ACRONYM = re.compile(r"\b[A-Z][A-Za-z-]*[A-Z]s?\b")
# A place that is none: "in Table 3", "in Section 2"
_PARTS = re.compile(r"(?:the\s+)?(?:table|fig|sec|eq|chapter|appendix|algorithm|step|phase|part|page)", re.I)


def has_type(question: Question, text: str) -> bool:
    """Whether a text has something of the type that a question asks for; True for a kind of question without one."""
    kind = question.type.kind
    if kind == "number":
        return bool(_quantities(text, question))
    if kind == "date":
        return bool(_DATE.search(text))
    if kind == "person":
        return any(_new(text[slice(*span)], question) for span in _spans(_PERSON, text)) or "et al" in text
    if kind == "place":
        return any(True for _ in _places(text, question))
    return True


def meets_conditions(question: Question, tokens: Set[str], covered: float) -> bool:
    """Whether a sentence may give the value that a question asks for: it is about that, and under the same conditions.

    tokens: of the sentence and of what stands above it. covered: how much of the question these cover, 0 to 1. All
    numbers of the question are conditions, and the name of a measure is what the value is of.
    """
    named = {*tokenize(question.measure), *question.numbers}
    return covered >= LEAST_COVERED and named <= tokens


def short_answer(question: Question, text: str) -> AnswerSpan | None:
    """The span of the short answer in a sentence; None where it has none, or more than one that could be meant.

    A number begins with what qualifies it: "less than 1 ms". People and places have none: words with capitals are too
    often a course, a product, a title.
    """
    kind = question.type.kind
    found: list[AnswerSpan] = []
    if kind == "number":
        found = _asked_numbers(text, question)
    elif kind == "date":
        without = _CITED.sub(lambda cited: " " * len(cited[0]), text)
        found = [span for span in _spans(_DATE, without) if text[slice(*span)] not in question.text]
    elif kind == "definition":
        found = list(_written_out(text, question))
    return found[0] if len(found) == 1 else None


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[AnswerSpan]:
    return (match.span() for match in pattern.finditer(text))


def _new(text: str, question: Question) -> bool:
    """Whether a text says something that the question does not."""
    return question.terms.isdisjoint(tokenize(text))


def _places(text: str, question: Question) -> Iterator[AnswerSpan]:
    for match in _PLACE.finditer(text):
        place = match["place"]
        if _new(place, question) and not _PARTS.match(place):
            yield match.span("place")


def _quantities(text: str, question: Question) -> list[Quantity]:
    """The numbers that count or measure something and that the question does not have."""
    asked = {number.written for number in quantities(question.text, units=False)}
    years = re.search(r"\byears?\b", question.text, re.I)
    return [
        number
        for number in quantities(text, units=False)
        if not number.is_reference and number.written not in asked and (years or not _YEAR.fullmatch(number.written))
        if not re.search(rf"{re.escape(number.written)}\s?%\s+(?:CI\b|credible|confidence)", text)
    ]


def _asked_numbers(text: str, question: Question) -> list[AnswerSpan]:
    """Where the numbers stand that a question asks for: those that count its words, or else all."""
    numbers = _quantities(text, question)
    words = question.terms - STOP_WORDS
    if not re.search(r"\bhow many\b", question.text, re.I):
        numbers = [number for number in numbers if not number.is_spelled]
    if re.search(r"\bhow many\b", question.text, re.I):
        numbers = [number for number in numbers if number.counted & words]
    elif re.search(r"\bper ?cent(?:age)?\b|\bshare\b|\bfraction\b|\bproportion\b", question.text, re.I):
        numbers = [number for number in numbers if number.unit == "%"] or numbers
    written = dict.fromkeys(number.written for number in numbers)
    if len(written) != 1:
        return []
    pattern = r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", next(iter(written)))))
    found = re.search(rf"(?<![\w.,]){pattern}", text)
    if found is None:
        return []
    if _FORMULA_BEFORE.search(text, 0, found.start()) or _FORMULA_BEHIND.match(text, found.end()):
        return []
    qualified = _QUALIFIER.search(text, 0, found.start())
    return [(qualified.start() if qualified else found.start(), _unit_end(text, found.end()))]


def _unit_end(text: str, end: int) -> int:
    """Where the unit or the counted noun behind a number ends; the number's end if there is none."""
    unit = _UNIT.match(text, end)
    return unit.end() if unit and unit["unit"].casefold() not in STOP_WORDS else end


def _written_out(text: str, question: Question) -> Iterator[AnswerSpan]:
    """An acronym's words where they stand beside it: "conflict-free replicated data types (CRDTs)"."""
    for name in _ACRONYM.findall(question.text):
        letters = name.rstrip("s").replace("-", "")
        words = r"\b[\s-]+(?:(?:of|and|the|for|in)\s+)?".join(rf"{re.escape(letter)}[\w’'-]+?" for letter in letters)
        acronym = rf"\(?{re.escape(name.rstrip('s'))}s?\b"
        for match in re.finditer(
            rf"\b(?P<one>{words}\b)\s*\({acronym}|\b{acronym}\s*[(,:]\s*(?P<two>{words}\b)", text, re.I
        ):
            yield match.span("one" if match["one"] else "two")


# A question about a paper as a whole -> the passages that answer it: of its abstract, introduction, conclusion. Pure.
#
# Such a question shares hardly a word with its answer, so search alone brings other passages, or other papers.

# Where the answer stands, the best place first.
SECTIONS: dict[Aspect, tuple[Kind, ...]] = {
    "about": ("abstract", "introduction", "conclusion"),
    "contributions": ("introduction", "abstract", "conclusion"),
    "method": ("abstract", "methods", "introduction"),
    "results": ("abstract", "results", "conclusion"),
    "limitations": ("limitations", "discussion", "conclusion"),
    "conclusion": ("conclusion", "discussion", "abstract"),
}
# What an abstract answers
OF_THE_WHOLE = "What is this paper about?"
# What a summary has behind the abstract: the heading, the question that it answers, and the kind of section that does
SUMMARY_PARTS: tuple[tuple[str, str, Kind], ...] = (
    ("Contributions", "What are the main contributions of this paper?", "introduction"),
    ("Method", "What method does this paper use?", "methods"),
    ("Results", "What are the main results of this paper?", "results"),
    ("Limits", "What are the limitations of this paper?", "limitations"),
)
# Passages of each kind of section in a summary's evidence, at most
_OF_EACH = 3
# Passages of one kind of section, at most: an introduction has its contributions at its end.
_PER_SECTION = 2


def whole_paper_hits(question: Question, passages: Sequence[Hit], found: Sequence[Hit], most: int) -> list[Hit]:
    """At most this many passages of a paper for a question about it as a whole, those to be cited first at the front.

    passages: all of the paper, in its order. found: what a search in it has found. The first page is always there.
    """
    aspect = question.type.aspect or "about"
    if aspect == "summary":
        kinds: list[Kind] = ["abstract", *(kind for _, _, kind in SUMMARY_PARTS), "conclusion"]
        each = [[hit for hit in passages if kind in _kinds(hit)][:_OF_EACH] for kind in kinds]
        return list({hit.chunk.id: hit for hits in (passages[:1], *each) for hit in hits}.values())
    chosen: list[Hit] = []
    for kind in SECTIONS.get(aspect, ()):
        inside = [hit for hit in passages if kind in _kinds(hit)]
        if kind == "introduction" and aspect == "contributions":
            inside.sort(key=lambda hit: -len(question.terms & frozenset(tokenize(hit.text))))
        chosen += inside[:_PER_SECTION]
    kept = list({hit.chunk.id: hit for hit in (*chosen, *found)}.values())[:most]
    if passages and all(hit.chunk.id != passages[0].chunk.id for hit in kept):
        kept = [*kept[: most - 1], passages[0]]
    return kept


def _kinds(hit: Hit) -> set[Kind]:
    return kinds_of(hit.paper, hit.chunk.start, hit.chunk.end)


def kinds_of(paper: Paper, start: int, end: int) -> set[Kind]:
    """The kinds of the sections that the characters [start, end) of a paper are in, those around them included."""
    return {section.kind for section in paper.sections.sections if section.start < end and start < section.end}


# Words of an excerpt: the paragraph that answers is shown if it has so many, or is cut down or added to.
LEAST_WORDS, MOST_WORDS = 40, 120
# Words of an abstract that a summary begins with, at most
LONGEST_ABSTRACT = 200
# Other places that are shown behind it in about LEAST_WORDS, at most, and the share of the first one's chance that each
# needs.
MOST_POINTERS, POINTER_SHARE = 2, 0.08
# Excerpts of a report's analysis and the words of all of them, at most, and the share that each needs.
MOST_DETAILS, DETAIL_WORDS, DETAIL_SHARE = 8, 400, 0.003
# How far apart two scores are of which one sentence is e times as likely to answer as the other.
SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class ExcerptWeights:
    """What counts in the score of a sentence, a list's item or a table's row. LOG.md has what each adds."""

    read: float = 0.06  # the log-odds that it answers, of the reader
    match: float = 0.85  # its tokens match the question's (late interaction)
    meaning: float = 0.2  # the cosine of the two as a whole
    type: float = 0.08  # it has what the question asks for: a number, a date, a person, a place
    section: float = 0.2  # it stands in a section that such a question asks for
    rank: float = 0.06  # it is of the best piece of evidence
    named: float = 1.0  # it is of the algorithm or table that the question names by its number


WEIGHTS = ExcerptWeights()

# Sentences that are embedded by themselves, at most, for an answer and for a report, which shows more. Each takes
# as long as a third of a passage.
MOST_READ, MOST_OF_REPORT = 6, 16
# How much the match of the whole passage counts when the first excerpt is chosen, beside a score of WEIGHTS.
LEAD_WEIGHT = 0.5

_FIGURE = re.compile(r"\b(?:fig(?:ure|s|ures)?|tables?|captions?|diagrams?|plots?|charts?|graphs?|pictures?)\b", re.I)
_LABEL = re.compile(r"\b(algorithm|listing|procedure|table)\s+(\d+|[IVX]+)\b", re.I)


@dataclass(frozen=True)
class Excerpt:
    """Parts [first, last] of a block, and their share of the chance to answer."""

    block: Block
    first: int
    last: int
    core: int  # the part that answers best
    share: float
    passage: float  # how well the whole passage matches the question (late interaction)
    covered: float = 1.0  # how much of the question the part that answers covers, with what stands above it, 0 to 1

    @property
    def lead(self) -> float:
        """How well it leads the answer: of excerpts that may all answer, that of the passage on the subject."""
        return SPREAD * math.log(max(self.share, 1e-300)) + LEAD_WEIGHT * self.passage

    @property
    def spans(self) -> tuple[Span, ...]:
        """Its spans in the evidence's text, in order: a table's caption may be apart from the rows."""
        start, end = self.block.parts[self.first].start, self.block.parts[self.last].end
        found: list[Span] = []
        for span in filter(None, (self.block.head, (start, end), self.block.tail)):
            if found and not self.block.evidence.text[found[-1][1] : span[0]].strip():
                found[-1] = (found[-1][0], span[1])
            else:
                found.append(span)
        return tuple(found)

    @property
    def words(self) -> int:
        return sum(len(self.block.evidence.text[start:end].split()) for start, end in self.spans)

    @property
    def text(self) -> str:
        return "\n".join(self.block.evidence.text[start:end] for start, end in self.spans)

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its search tokens."""
        return frozenset(tokenize(self.text))

    @property
    def core_text(self) -> str:
        return self.block.text_of(self.core)

    def overlaps(self, other: Excerpt) -> bool:
        mine, others = self.block.evidence, other.block.evidence
        return mine.paper == others.paper and any(
            mine.start + a < others.start + d and others.start + c < mine.start + b
            for a, b in self.spans
            for c, d in other.spans
        )


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """A block of the evidence, the question's matches in its piece of it, and what the reader says of it."""

    block: Block
    match: Matches
    answers: float  # the log-odds that what was read with it answers
    parts: tuple[float, ...]  # and that each of its parts does


def read_blocks(
    reader: PassageReader, question: Question, evidence: Sequence[Evidence], found: Sequence[Matches]
) -> list[ReadBlock]:
    """The blocks of the evidence in which a question may be answered, each read with it. Raises ModelError.

    found: the question's matches in each piece of evidence. A block is read in the passages that were found, which the
    reader knows from their order; if these have not half of each part, by itself.
    """
    unasked = NOT_EVIDENCE - question.kinds
    among = [(block, match) for piece, match in zip(evidence, found, strict=True) for block in blocks(piece)]
    among = [(block, match) for block, match in among if block.section not in unasked]
    read_in = [_read_in(block) for block, _ in among]
    texts = list(dict.fromkeys(one for own in read_in for one, _ in own))
    readings = dict(zip(texts, reader.read(question.text, texts), strict=True))
    return [
        ReadBlock(
            block,
            match,
            max(readings[text].answers for text, _ in own),
            tuple(_odds_of_part(part, [(readings[text], start) for text, start in own]) for part in block.parts),
        )
        for (block, match), own in zip(among, read_in, strict=True)
    ]


def _read_in(block: Block) -> list[tuple[Passage, int]]:
    """The passages that a block is read in, and where each begins in the evidence's text."""
    evidence = block.evidence
    spans = [(hit, hit.chunk.start - evidence.start, hit.chunk.end - evidence.start) for hit in evidence.hits]
    having = [
        [min(end, part.end) - max(start, part.start) > (part.end - part.start) / 2 for part in block.parts]
        for _, start, end in spans
    ]
    if having and all(map(any, zip(*having, strict=True))):
        return [(passage_of(hit), start) for (hit, start, _), has in zip(spans, having, strict=True) if any(has)]
    start, end = block.start, block.end
    return [
        (Passage(above(evidence.paper, evidence.start + start, evidence.start + end), evidence.text[start:end]), start)
    ]


def _odds_of_part(part: Part, read: Sequence[tuple[Reading, int]]) -> float:
    """The log-odds that a part answers, of the reading that sees it in the better light."""
    return max(reading.sentence(part.start - start, part.end - start) for reading, start in read)


def most_sure(read: Sequence[ReadBlock]) -> float:
    """The reader's log-odds that one of these blocks answers; -MOST_ODDS without any."""
    return max((one.answers for one in read), default=-MOST_ODDS)


def scored_excerpts(
    embedder: TokenEmbedder,
    question: Question,
    read: Sequence[ReadBlock],
    most: int = MOST_READ,
    by: ExcerptWeights = WEIGHTS,
) -> list[Excerpt]:
    """The excerpts of these blocks, best first. Raises ModelError.

    The likeliest `most` sentences are embedded one by one: within their passage, the states of their tokens tell of
    their neighbours too. The others may stand beside these.
    """
    scores = _Scores(question, _label(question.text), by)
    heads = [_above(one.block, one.match) for one in read]
    likely: list[_Likely] = []
    for at, (one, head) in enumerate(zip(read, heads, strict=True)):
        block, match = one.block, one.match
        for place, besides in scores.of_parts(block):
            part = block.parts[place]
            matched = match.score(np.maximum(match.inside(part.start, part.end), head))
            besides += by.read * odds(one.parts[place], question.numbers, block.text_of(place))
            likely.append(_Likely(at, place, besides, by.match * matched + besides))
    likely = sorted(likely, key=lambda each: -each.score)[:most]
    if not likely:
        return []
    texts, query = [read[each.at].block.text_of(each.place) for each in likely], read[0].match.query
    known = [[-math.inf] * len(one.block.parts) for one in read]
    covered = [[0.0] * len(one.block.parts) for one in read]
    for candidate, text in zip(likely, read_alone(embedder, query, texts), strict=True):
        best = np.maximum(text.best, heads[candidate.at])
        matched = float(query.shares @ best)
        covered[candidate.at][candidate.place] = float(np.clip(query.squared_shares @ best, 0.0, 1.0))
        known[candidate.at][candidate.place] = by.match * matched + by.meaning * text.cosine + candidate.besides
    excerpts = [
        excerpt
        for one, shares, own, cover in zip(read, _likelihoods(known), known, covered, strict=True)
        for excerpt in _of_block(one.block, shares, own, cover, one.match.whole)
    ]
    return sorted(excerpts, key=lambda one: (-one.lead, one.block.evidence.number, one.spans[0]))


def _label(question: str) -> str:
    """The numbered algorithm, listing or table that a question names, as its caption begins; "" if none."""
    named = _LABEL.search(question)
    return f"{named[1]} {named[2]}".casefold() if named else ""


def _above(block: Block, match: Matches) -> Vectors:
    """How well each of the question's tokens is matched by what stands above each part: the title, the block's head."""
    return match.inside(*block.head) if block.head else match.titles


@dataclass(frozen=True, slots=True)
class _Likely:
    """A part that may answer: its block's and its own place, and its score within its passage.

    besides: what the score has besides the match of the tokens.
    """

    at: int
    place: int
    besides: float
    score: float


@dataclass(frozen=True, slots=True)
class _Scores:
    """What parts of the evidence are scored by, for one question.

    label: "algorithm 1" or "table 2", if it names one; else "".
    """

    question: Question
    label: str
    by: ExcerptWeights

    def of_parts(self, block: Block) -> Iterator[tuple[int, float]]:
        """The place of each part that can answer, and how well it does, but for the match of its tokens."""
        by = self.by
        of_block = by.section * _section_score(block, self.question.type) + by.rank / block.evidence.number
        of_block += by.named * self._is_named(block)
        begins = self._begins(block)
        for place, part in enumerate(block.parts):
            if (
                place >= begins
                and part.can_answer
                and (block.kind != "table" or _says_more(block.text_of(place), self.question.terms))
            ):
                has = has_type(self.question, block.text_of(place))
                yield place, of_block + by.type * has

    def _begins(self, block: Block) -> int:
        """The place of the first part that may answer: behind what a caption names, unless a figure is asked for."""
        if block.section != "caption" or block.kind != "prose" or _FIGURE.search(self.question.text):
            return 0
        return next((place + 1 for place, words in enumerate(block.words) if words >= SHORTEST_SENTENCE), 0)

    def _is_named(self, block: Block) -> bool:
        """Whether a list or table has the question's label where a caption begins: above, or below a table."""
        if not self.label or block.kind == "prose":
            return False
        return re.search(rf"^\s*{self.label}\b", block.evidence.text[block.start : block.end], re.I | re.M) is not None


def _says_more(text: str, known: frozenset[str]) -> bool:
    """Whether a row says more than the question: "PEP Policy Enforcement Point" does not say what one is."""
    new = set(tokenize(text)) - known
    return len(new) > 1 or any(char.isdigit() for term in new for char in term)


def _likelihoods(scores: Sequence[Sequence[float]]) -> list[list[float]]:
    """Scores -> shares that add up to 1 (softmax); all 0 where no part can answer."""
    best = max((score for own in scores for score in own), default=-math.inf)
    if best == -math.inf:
        return [[0.0] * len(own) for own in scores]
    raised = [[math.exp((score - best) / SPREAD) for score in own] for own in scores]
    total = sum(map(sum, raised))
    return [[value / total for value in own] for own in raised]


def _of_block(
    block: Block, shares: Sequence[float], scores: Sequence[float], covered: Sequence[float], passage: float
) -> Iterator[Excerpt]:
    """An excerpt around each part that may answer, if none in it answers better."""
    for core, score in enumerate(scores):
        if score == -math.inf:
            continue
        first, last = _around(block, core)
        if score == max(scores[first : last + 1]):
            yield Excerpt(block, first, last, core, sum(shares[first : last + 1]), passage, covered[core])


def _around(block: Block, core: int) -> Span:
    """First and last part of the excerpt around a part: the whole list, the rows near it, or about a paragraph.

    A long paragraph begins with the nearest sentence that does not refer to the one before it; a short one goes on
    with the next. The last sentence announces nothing.
    """
    if block.kind == "list":
        return 0, len(block.parts) - 1
    if block.kind == "table":
        return _rows(block, core, MOST_WORDS)
    words = block.words
    paragraph = [place for place, number in enumerate(block.paragraphs) if number == block.paragraphs[core]]
    first, last = paragraph[0], paragraph[-1]
    if sum(words[first : last + 1]) > MOST_WORDS:
        if sum(words[first : core + 1]) > MOST_WORDS // 2:
            first = next((place for place in range(core, first, -1) if not block.parts[place].leans), first)
        last = core
        while last < paragraph[-1] and sum(words[first : last + 2]) <= MOST_WORDS:
            last += 1
    while (
        last + 1 < len(words)
        and sum(words[first : last + 1]) < LEAST_WORDS
        and sum(words[first : last + 2]) <= MOST_WORDS
    ):
        last += 1
    earliest = max(0, first - MOST_BEFORE)
    while block.parts[first].leans and first > earliest:
        first -= 1
    while first < core and block.parts[first].in_middle:
        first += 1
    while last > core and block.text_of(last).endswith((":", "?")):
        last -= 1
    return first, last


def _rows(block: Block, core: int, most: int) -> Span:
    """The rows around one, as many as have `most` words together: the asked one is among those that are alike."""
    first = last = core
    for row in sorted(range(len(block.parts)), key=lambda row: abs(row - core)):
        wider = min(first, row), max(last, row)
        if sum(block.words[wider[0] : wider[1] + 1]) <= most:
            first, last = wider
    return first, last


def _section_score(block: Block, asked: QuestionType) -> float:
    """1 for the section that a question about a whole paper asks for first, less for the others."""
    wanted = SECTIONS.get(asked.aspect, ())
    if block.section not in wanted:
        return 0.0
    return 1.0 - wanted.index(block.section) / 4


def pointers(scored: Sequence[Excerpt]) -> list[Excerpt]:
    """The other places that may answer, the likeliest first: they neither overlap nor repeat the best one."""
    best = scored[0]
    return apart([one for one in scored if one.share >= POINTER_SHARE * best.share], [best])[:MOST_POINTERS]


def brief(excerpt: Excerpt) -> Excerpt:
    """Its part that answers, with the next ones, or those before, until it has LEAST_WORDS.

    It begins with a sentence that does not refer to the one before it, if the excerpt has one.
    """
    first = last = excerpt.core
    block = excerpt.block
    if block.kind == "table":
        first, last = _rows(block, excerpt.core, LEAST_WORDS)
        return replace(excerpt, first=first, last=last)
    while block.kind == "prose" and block.parts[first].leans and first > excerpt.first:
        first -= 1
    while block.kind == "prose" and sum(block.words[first : last + 1]) < LEAST_WORDS:
        if last < excerpt.last:
            last += 1
        elif first > excerpt.first:
            first -= 1
        else:
            break
    return replace(excerpt, first=first, last=last)


def abstract(evidence: Sequence[Evidence]) -> Excerpt | None:
    """The abstract, cut at the end of a sentence if it is long; None where there is none."""
    among = (block for piece in evidence for block in blocks(piece))
    own = [block for block in among if block.section == "abstract" and block.kind == "prose"]
    if not own:
        return None
    block = min(own, key=lambda block: block.evidence.start + block.start)
    ends = list(accumulate(block.words))
    last = max((place for place, words in enumerate(ends) if words <= LONGEST_ABSTRACT), default=0)
    return Excerpt(block, 0, last, 0, 1.0, 1.0)


def alone(excerpt: Excerpt) -> Excerpt:
    """Its part that answers, without those around it."""
    return replace(excerpt, first=excerpt.core, last=excerpt.core)


def apart(scored: Iterable[Excerpt], shown: Sequence[Excerpt]) -> list[Excerpt]:
    """Those that neither overlap nor repeat one another or what is shown already, in their order."""
    kept: list[Excerpt] = []
    for excerpt in scored:
        if not any(excerpt.overlaps(other) or _repeats(excerpt, other) for other in (*shown, *kept)):
            kept.append(excerpt)
    return kept


def _repeats(excerpt: Excerpt, before: Excerpt) -> bool:
    """Whether an excerpt says again what an earlier one says.

    One with other numbers is no repetition, unless another paper gives them for the same thing: then it is shown as a
    disagreement with the earlier one.
    """
    if excerpt.block.evidence.paper != before.block.evidence.paper and conflict(excerpt.core_text, before.core_text):
        return True
    words, others = excerpt.terms, before.terms
    if len(words & others) <= 0.8 * min(len(words), len(others)):
        return False
    return _numbers(excerpt.text) == _numbers(before.text)


def _numbers(text: str) -> frozenset[object]:
    return frozenset((number.value, number.unit) for number in quantities(text, units=False))
