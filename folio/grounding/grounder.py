"""Judges each statement of an answer: attributes it, checks it for faults, compares the wording. Pure.

A verifier comes later (answer/validation.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from statistics import fmean
from typing import Literal

from folio.answer_types import Citation, Evidence
from folio.grounding.names import has_identifier, has_name, has_only_longer, identifiers, key, names, quoted
from folio.grounding.negation import is_denied, is_opposed
from folio.grounding.quantities import Quantity, quantities
from folio.grounding.sentences import (
    EvidenceSentence,
    citations,
    content_words,
    in_order,
    is_row,
    matching_words,
    neighbours,
    number_sentences,
    share,
    tokens_of,
    words_of,
)
from folio.text import one_line, tokenize

MOST_SENTENCES = 4  # most sentences that a statement is attributed to
MOST_QUOTES = 2  # the same for an answer to one question
LEAST_GAIN = 0.2  # the share of the statement's words that each sentence must add, unless it adds a missing number


@dataclass(frozen=True, slots=True)
class Attribution:
    """The sentences that support a statement, in order; empty if no sentence of the evidence resembles it."""

    sentences: tuple[EvidenceSentence, ...]
    context: str  # the text of these sentences and their neighbours
    titles: str  # titles and file names of their papers
    coverage: float  # the share of the statement's words in context and titles, 0 to 1

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


def attribute(
    statement: str, candidates: Sequence[EvidenceSentence], all_sentences: Sequence[EvidenceSentence]
) -> Attribution:
    """The attribution of a statement to some of the candidates. all_sentences: those of the whole evidence.

    Greedy: the next sentence is the one with the highest Dice coefficient to the words that are not covered yet.
    """
    chosen = _chosen(content_words(statement), quantities(statement), candidates)
    return of_sentences(statement, chosen, all_sentences)


def of_sentences(
    statement: str, chosen: Sequence[EvidenceSentence], all_sentences: Sequence[EvidenceSentence]
) -> Attribution:
    """The attribution to these sentences."""
    ordered = tuple(sorted(chosen, key=lambda sentence: sentence.number))
    papers = dict.fromkeys(sentence.evidence.paper for sentence in ordered)
    titles = "\n".join(f"{paper.title}\n{paper.file}" for paper in papers)
    context = "\n".join(sentence.text for sentence in neighbours(ordered, all_sentences))
    return Attribution(
        ordered, context, titles, share(content_words(statement), tokens_of(context) | tokens_of(titles))
    )


def _chosen(
    words: frozenset[str], numbers: Sequence[Quantity], candidates: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    remaining = {sentence: tokens_of(sentence.text) for sentence in candidates}
    missing, chosen, uncovered = list(numbers), list[EvidenceSentence](), words

    def closeness(sentence: EvidenceSentence) -> float:
        return 2 * len(matching_words(uncovered, remaining[sentence])) / (len(words) + len(remaining[sentence]) or 1)

    while remaining and len(chosen) < MOST_SENTENCES:
        best = max(remaining, key=closeness)
        if len(matching_words(uncovered, remaining[best])) < max(1.0, LEAST_GAIN * len(words)):
            with_number = [s for s in remaining if any(number.is_among(quantities(s.text)) for number in missing)]
            shared = {sentence: len(matching_words(words, remaining[sentence])) for sentence in with_number}
            if not any(shared.values()) or not chosen:
                break
            best = max(shared, key=shared.__getitem__)
        uncovered -= matching_words(uncovered, remaining.pop(best))
        missing = [number for number in missing if not number.is_among(quantities(best.text))]
        chosen.append(best)
    return chosen


# Numbers in a statement that belong to another row or column of their table

# Two spaces within a line separate table cells (pdf/order.py).
_GAP = re.compile(r" {2,}")
# What separates the values of a statement: "2.4 m at Ellis, 1.1 m at Saltness"
_PARTS = re.compile(r"[,;](?=\s)|\b(?:and|but|while|whereas)\b", re.I)
# A value of a table begins with its number; a cell that begins with a word, or is a year, names a row or a column.
_NAME = re.compile(r"\W*[^\W\d]")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_Names = tuple[frozenset[str], ...]  # the words of each row's or column's name that are unique in the table


@dataclass(frozen=True, slots=True)
class _Table:
    """A table whose rows and columns have names.

    A row with missing or extra values has all its numbers in each column, because their columns are unknown.
    """

    rows: _Names
    columns: _Names
    cells: tuple[tuple[tuple[Quantity, ...], ...], ...]  # the numbers of each value, by row and column


def misplaced(statement: str, source: Attribution) -> Quantity | None:
    """The first number of a statement that the table has in another row or column than the one the statement names.

    Only tables with a header in the cited evidence count, and numbers that its prose does not also have.
    """
    texts = {sentence.evidence.text for sentence in source.sentences if is_row(sentence.text)}
    tables = [table for text in texts for table in _tables(text)]
    if not tables:
        return None
    prose = [number for s in source.sentences if not is_row(s.text) for number in quantities(s.text)]
    parts = _PARTS.split(statement)
    for part in parts:
        for number in quantities(part):
            if number.is_reference or number.is_spelled or number.is_among(prose):
                continue
            verdicts = [verdict for table in tables if (verdict := _belongs(number, part, parts, table)) is not None]
            if verdicts and not any(verdicts):
                return number
    return None


def _belongs(number: Quantity, part: str, parts: Sequence[str], table: _Table) -> bool | None:
    """Whether the table has a number in the row and column that the statement names; None if it has it nowhere.

    parts: those of the statement. part: the one with the number.
    """
    if any(tokens_of(number.written) == name for name in table.columns):
        return None  # it names a column: 2019, or the 1 of "Week 1"
    places = [
        (row, column)
        for row, values in enumerate(table.cells)
        for column, value in enumerate(values)
        if number.is_among(value)
    ]
    if not places:
        return None
    rows, columns = (_intended(names, part, parts) for names in (table.rows, table.columns))
    return any(row in rows and column in columns for row, column in places)


def _intended(names: _Names, part: str, parts: Sequence[str]) -> set[int]:
    """The rows or columns that a part of a statement gives its numbers for; all if it names none.

    "A and B have 1 and 2" names them separately from the numbers, so each number may belong to any of them.
    """

    def has_value(text: str) -> bool:
        """Whether a text has a number that is not the name of a row or column."""
        return any(tokens_of(number.written) not in names for number in quantities(text))

    if any(_named(names, other) and not has_value(other) for other in parts):
        part = " ".join(parts)
    named = _named(names, part) or _named(names, " ".join(parts)) or set(range(len(names)))
    return named | {place for place, name in enumerate(names) if not name}


def _named(names: _Names, text: str) -> set[int]:
    """The rows or columns whose unique words are all in a text."""
    words = tokens_of(text)
    return {place for place, name in enumerate(names) if name and matching_words(name, words) == name}


@lru_cache(maxsize=64)
def _tables(text: str) -> tuple[_Table, ...]:
    """The tables of a text: consecutive lines with cells below a header."""
    return tuple(table for lines in _runs(text.splitlines()) if (table := _table(lines)))


def _runs(lines: Sequence[str]) -> Iterator[list[list[str]]]:
    """The cells of each run of lines with cells. A blank line is no end of a table if rows of values stand below it."""
    run: list[list[str]] = []
    is_apart = False
    for line in lines:
        if not line.strip():
            is_apart = True
            continue
        cells = [cell for cell in _GAP.split(line.strip()) if cell] if is_row(line.strip()) else []
        if not cells or (is_apart and not (run and _go_on(run, cells))):
            if len(run) > 1:
                yield run
            run = []
        if cells:
            run.append(cells)
        is_apart = False
    if len(run) > 1:
        yield run


def _go_on(run: Sequence[Sequence[str]], cells: Sequence[str]) -> bool:
    """Whether cells below a blank line are a row of the table above: they are values, in as many columns."""
    is_row_of_values = all(quantities(cell) and not _NAME.match(cell) for cell in cells[1:])
    return is_row_of_values and len(cells) - len(run[-1]) in (0, 1 if len(run) == 1 else 0)


def _table(lines: Sequence[Sequence[str]]) -> _Table | None:
    header, *rows = lines
    widths = Counter(len(row) for row in rows if len(row) - len(header) in (0, 1))
    if not widths or not _names_columns(header):
        return None
    width = max(widths, key=lambda each: (widths[each], each))
    if any(map(_YEAR.fullmatch, header)) and any(all(map(_YEAR.fullmatch, row[1:])) for row in rows):
        return None  # years are the values here
    names = [tokens_of(row[0]) for row in rows] + [tokens_of(name) for name in header[len(header) - width + 1 :]]
    uses = Counter(word for words in names for word in words)
    unique = [frozenset(word for word in words if uses[word] == 1) for words in names]
    # "Treated (n = 12)" is called "treated", but "Week 1" next to "Week 2" is called "1".
    short = tuple(frozenset(word for word in words if len(word) > 1 and word.isalpha()) or words for words in unique)
    return _Table(short[: len(rows)], short[len(rows) :], tuple(_values(row[1:], width - 1) for row in rows))


def _names_columns(cells: Sequence[str]) -> bool:
    """Whether the cells of a line are names or years, and no values."""
    return all(_YEAR.fullmatch(cell) or _NAME.match(cell) or not quantities(cell) for cell in cells)


def _values(cells: Sequence[str], columns: int) -> tuple[tuple[Quantity, ...], ...]:
    """The numbers of a row by column; all of them in each column if there are more or fewer cells than columns."""
    values = tuple(map(quantities, cells))
    return values if len(values) == columns else (tuple(chain.from_iterable(values)),) * columns


MOST_COUNTED = 10  # a higher number in words is no count of the writer's own


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a statement: the name of the rule, and the reason in words that a model can act on."""

    rule: str
    reason: str


def faults(statement: str, source: Attribution, evidence_key: str) -> Iterator[Fault]:
    """The faults of a statement. evidence_key: all evidence and its titles, in the form of names.key.

    Numbers must be in the cited sentences. Names, identifiers and quoted words may be anywhere in the evidence, because
    a passage may name its subject only once.
    """
    source_numbers = quantities(f"{source.text}\n{source.titles}")
    for number in quantities(statement):
        same = [other for other in source_numbers if number.is_among([other])]
        if not (same or _is_own_count(number, source_numbers)):
            yield Fault("number", f"the number {number.written} cannot be found in it")
        elif _counts_others(number, source_numbers):
            yield Fault("count", f"it gives {number.written} for something else")
        elif same and not any(number.is_bounded_as(other) for other in same):
            yield Fault("bound", f"it gives {number.written} with another bound or sign")
    if moved := misplaced(statement, source):
        yield Fault("cell", f"its table gives {moved.written} in another row or column")
    for identifier in sorted(i for i in identifiers(statement) if not has_identifier(i, evidence_key)):
        yield Fault("identifier", f"the name {identifier} cannot be found in it")
    for identifier in sorted(i for i in identifiers(statement) if has_only_longer(i, source.text)):
        yield Fault("identifier", f"it has a longer name than {identifier}")
    for name in sorted(name for name in names(statement) if not has_name(name, evidence_key)):
        yield Fault("name", f"the name {name} cannot be found in it")
    for words in (words for words in quoted(statement) if key(words) not in evidence_key):
        yield Fault("quoted words", f"the words “{words}” cannot be found in it")
    sentences = [sentence.text for sentence in source.sentences]
    if is_denied(statement, sentences):
        yield Fault("negation", "it says the opposite")
    elif is_opposed(statement, sentences, tokens_of(evidence_key)):
        yield Fault("opposite", "it says the opposite")


def _is_own_count(number: Quantity, source_numbers: Sequence[Quantity]) -> bool:
    """Whether a number may be the writer's own count, "two parts": the source has no count of these."""
    if not number.is_spelled or number.unit or number.value > MOST_COUNTED:
        return False
    return not any(number.counted & other.counted for other in source_numbers)


def _counts_others(number: Quantity, source_numbers: Sequence[Quantity]) -> bool:
    """Whether a number counts something for which its source has another number: 12 notebooks for 17 notebooks."""
    same = [other for other in source_numbers if number.is_among([other])]
    if not (number.counted and same) or any(not other.counted or other.counted & number.counted for other in same):
        return False
    others = [other.counted for other in source_numbers if other.counted and other not in same]
    return any(counted <= number.counted or number.counted <= counted for counted in others)


# The least coverage of a statement by its source: LEAST_NAMED if the writer named the source, LEAST_FOUND if search
# found it. The coverage of the earlier statements counts with weight BEFORE, so one weak statement in an answer that
# keeps to its evidence is accepted.
LEAST_NAMED, LEAST_FOUND, BEFORE = 0.6, 0.71, 0.5
ENOUGH = 0.95  # with this coverage a statement is shown, whatever that of the earlier statements
# Of the words that an answer adds to its question, the share that its sentences must have; and the quote that is shown
# in its place if it is left out
LEAST_ADDED, LEAST_BORNE_OUT = 0.75, 0.5
MUCH_BETTER = 0.1  # a named source is replaced only by one whose coverage is this much higher
# A statement is near a sentence that has this share of its words in the same order; or this share of its content words
# in any order, if it has the same share of the sentence's.
NEAR = 0.8
LEAST_NEAR = 4  # words; a shorter statement is near no sentence
MOST_MARKED = 0.8  # of a quote; more is no mark
LONGEST_QUOTED = 110  # words; a longer sentence is not shown in place of a statement
_ITEM = re.compile(r"(?:[•▪‣*–-]|\(?\w{1,3}[.)])\s")  # a list's
# A sentence that refers to one before it
_LEANS = re.compile(r"\W*(?:it|its|they|their|this|that|these|those|such|he|his|she|her)\b", re.I)
# Signs that are written in more than one way
_TYPOGRAPHY = str.maketrans("’‘“”„–—‐‑−", "''" + '"""' + "-----")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Finding:
    """The judgement on a statement, before a verifier is called."""

    statement: str
    source: Attribution
    outcome: Literal["quoted", "reworded", "left out"]
    fault: Fault | None = None  # why it is left out
    quoted: tuple[EvidenceSentence, ...] = ()  # the sentences that are shown in place of a quoted statement, in order
    lead: EvidenceSentence | None = None  # what introduces the first one: a list's introduction, a table's header
    deciding: frozenset[str] = frozenset()  # the words that are marked in the quotes of a reworded statement

    @property
    def text(self) -> str:
        """What is shown: the page's words if the outcome is "quoted", else the statement."""
        if not self.quoted:
            return self.statement
        return "\n".join([*([_shown(self.lead)] if self.lead else ()), _shown(*self.quoted)])

    @property
    def marks(self) -> tuple[tuple[int, int], ...]:
        """The span of a quoted text with what the statement says; () if it is all of the text."""
        if len(self.quoted) != 1:
            return ()
        quote = _shown(*self.quoted)
        before = len(self.text) - len(quote)
        start, end = _stretch(self.deciding or content_words(self.statement), quote)
        is_all = not before and tokens_of(quote) == tokens_of(quote[start:end])
        return () if is_all else ((before + start, before + end),)


@dataclass
class Grounder:
    """Judges the statements of one answer, in order.

    asked: the content words of the question, if each statement is an answer to it and nothing else. Such a statement
    repeats them, and what it adds must be in the sentences that it rests on.
    """

    evidence: Sequence[Evidence]
    asked: frozenset[str] = frozenset()
    sentences: tuple[EvidenceSentence, ...] = field(init=False)
    _known: str = field(init=False)
    _coverages: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.sentences = number_sentences(self.evidence)
        self._known = key("\n".join(f"{e.text}\n{e.paper.title}\n{e.paper.file}" for e in self.evidence))

    def find(
        self, statement: str, support: Sequence[int] = (), pieces: Sequence[int] = (), *, leads_in: bool = False
    ) -> Finding:
        """Judge the next statement.

        support: the numbers of the sentences that its writer named. pieces: the numbers of the pieces of evidence that
        its writer named. If they are wrong, all evidence is searched. leads_in: it only introduces other statements, so
        its coverage does not count for them.
        """
        added = self._added(statement)
        if self.asked:
            source, is_named = self._source_of(statement, added, support)
        else:
            source, is_named = self._source(statement, support, pieces)
        before = fmean(self._coverages or [source.coverage])
        self._coverages += [] if leads_in else [source.coverage]
        if not source.sentences:
            return Finding(statement, source, "left out", Fault("not found", "no evidence says this"))
        whole = [sentence for sentence in source.sentences if _is_whole(sentence, self.sentences)]
        if verbatim := next((sentence for sentence in whole if is_verbatim(sentence.text, statement)), None):
            return self._quote(statement, source, verbatim)
        if fault := next(faults(statement, source, self._known), None):
            return Finding(statement, source, "left out", fault)
        if near := [sentence for sentence in whole if _is_near(statement, sentence.text)]:
            return self._quote(statement, source, max(near, key=lambda near: _closeness(statement, near.text)))
        coverage = (1 - BEFORE) * source.coverage + BEFORE * before
        if source.coverage < ENOUGH and coverage < (LEAST_NAMED if is_named else LEAST_FOUND):
            return Finding(statement, source, "left out", Fault("not found", "it does not say this"))
        if self.asked and share(added, tokens_of(source.text)) < LEAST_ADDED:
            return Finding(statement, source, "left out", Fault("not found", "it does not say what this adds"))
        return Finding(statement, source, "reworded", deciding=added)

    def copied(self, text: str) -> Finding | None:
        """The consecutive sentences of the evidence that a text copies, more or less; None if it copies none.

        Of several such places, that with the most words. A text that copies a part of a sentence gives the sentence.
        """
        words = words_of(text)
        inside, around = list[EvidenceSentence](), list[EvidenceSentence]()
        for sentence in self.sentences:
            own = words_of(sentence.text)
            common = in_order(own, words)
            if len(own) >= LEAST_NEAR and common >= NEAR * len(own):
                inside.append(sentence)
            elif len(words) >= LEAST_NEAR and common >= NEAR * len(words):
                around.append(sentence)
        runs = _runs_of(inside) or [(sentence,) for sentence in around]
        whole = [run for run in runs if all(_is_whole(sentence, self.sentences) for sentence in run)]
        if not whole:
            return None
        best = max(whole, key=lambda run: in_order(words, words_of(" ".join(sentence.text for sentence in run))))
        return self._quote(text, of_sentences(text, best, self.sentences), *best)

    def in_the_papers_words(self, finding: Finding) -> list[Finding]:
        """The sentences that a reworded statement rests on, in its place: the best first, and alone if it is enough."""
        whole = [each for each in finding.source.sentences if _is_whole(each, self.sentences)]
        whole.sort(key=lambda each: -share(finding.deciding, tokens_of(each.text)))
        enough = whole[:1] if whole and share(finding.deciding, tokens_of(whole[0].text)) >= LEAST_ADDED else whole
        quotes = (self._quote(finding.statement, finding.source, each) for each in enough)
        return [replace(quote, deciding=finding.deciding) for quote in quotes]

    def bears_out(self, quote: Finding, answer: str) -> bool:
        """Whether a quote has half of what an answer adds to its question."""
        return share(self._added(answer), tokens_of(quote.text)) >= LEAST_BORNE_OUT

    def _quote(self, statement: str, source: Attribution, *quoted: EvidenceSentence) -> Finding:
        return Finding(statement, source, "quoted", quoted=quoted, lead=_lead(quoted[0], self.sentences))

    def mentions(self, heading: str) -> bool:
        """Whether the evidence has all words, numbers and names of a heading."""
        all_evidence = of_sentences(heading, self.sentences, self.sentences)
        there = tokens_of(self._known) | tokens_of(all_evidence.context)
        return share(content_words(heading), there) == 1 and not any(faults(heading, all_evidence, self._known))

    def _added(self, statement: str) -> frozenset[str]:
        """The content words that an answer adds to its question; all of them if it adds none.

        Without the units of its numbers: "23 km" and "23 kilometres" are compared as numbers.
        """
        words = content_words(statement)
        units = [number.with_unit.replace(number.written, "", 1) for number in quantities(statement) if number.unit]
        return (words - matching_words(words, self.asked) - tokens_of(" ".join(units))) or words

    def _source_of(self, statement: str, added: frozenset[str], support: Sequence[int]) -> tuple[Attribution, bool]:
        """The source of an answer, and whether its writer named it: the sentences that have what it adds, at most two.

        Those that the writer copied, if they have it all.
        """
        words, numbers = content_words(statement), quantities(statement)

        def gain(sentence: EvidenceSentence) -> tuple[float, float]:
            there = tokens_of(sentence.text)
            of_numbers = sum(number.is_among(quantities(sentence.text)) for number in missing)
            common = 2 * len(matching_words(words, there)) / (len(words) + len(there) or 1)
            return len(matching_words(uncovered, there)) + of_numbers, common

        for among in ([self.sentences[number - 1] for number in support], self.sentences):
            chosen, uncovered, missing = list[EvidenceSentence](), added, list(numbers)
            while len(chosen) < MOST_QUOTES and (best := max(among, key=gain, default=None)) and gain(best)[0] >= 1:
                chosen.append(best)
                uncovered -= matching_words(uncovered, tokens_of(best.text))
                missing = [number for number in missing if not number.is_among(quantities(best.text))]
            source = of_sentences(statement, chosen, self.sentences)
            if among is self.sentences or not (uncovered or any(faults(statement, source, self._known))):
                return source, among is not self.sentences
        raise AssertionError("all sentences are tried last")

    def _source(self, statement: str, support: Sequence[int], pieces: Sequence[int]) -> tuple[Attribution, bool]:
        """The source of a statement, and whether its writer named it."""
        words = content_words(statement)
        by_number = dict.fromkeys(number for number in support if 1 <= number <= len(self.sentences))
        cited = [self.sentences[number - 1] for number in by_number]
        match_count = {sentence: len(matching_words(words, tokens_of(sentence.text))) for sentence in cited}
        most = max(MOST_SENTENCES, statement.count("\n") + 1)  # each step of a procedure has its own
        cited = sorted(filter(match_count.__getitem__, cited), key=match_count.__getitem__, reverse=True)[:most]
        named = {*pieces, *(sentence.evidence.number for sentence in cited)}
        candidates = [of_sentences(statement, cited, self.sentences)] if cited else []
        if named:
            near = [sentence for sentence in self.sentences if sentence.evidence.number in named]
            candidates.append(attribute(statement, near, self.sentences))
        anywhere = attribute(statement, self.sentences, self.sentences)
        if not cited and len(named) == len(self.evidence):  # naming all evidence names nothing
            return anywhere, False
        for source in candidates:
            good = source.sentences and source.coverage >= anywhere.coverage - MUCH_BETTER
            if good and not any(faults(statement, source, self._known)):
                return source, True
        return anywhere, False


def citations_of(finding: Finding) -> tuple[Citation, ...]:
    """The quotes of a statement that is shown. Their support is 1 if they are what is shown."""
    if not finding.quoted:
        support = min(0.99, max(0.01, finding.source.coverage))
        found = (quote for s in finding.source.sentences for quote in citations(s.evidence, s.start, s.end, support))
        return tuple(replace(quote, marks=_marked(finding.deciding, quote.quote)) for quote in found)
    sentences = [*([finding.lead] if finding.lead else ()), *finding.quoted]
    return tuple(quote for s in sentences for quote in citations(s.evidence, s.start, s.end, 1.0))


def _marked(words: frozenset[str], quote: str) -> tuple[tuple[int, int], ...]:
    """The span of a quote with these words; () if it has none, or they are spread over most of it."""
    if not words & tokens_of(quote):
        return ()
    start, end = _stretch(words, quote)
    return ((start, end),) if end - start < MOST_MARKED * len(quote) else ()


def _shown(*sentences: EvidenceSentence) -> str:
    """Sentences in one line, the rows of a table and the items of a list in a line each. Cells stay apart."""
    text = ""
    for sentence in sentences:
        is_line = is_row(sentence.text) or bool(_ITEM.match(sentence.text))
        text += ("\n" if is_line else " ") if text else ""
        text += sentence.text.strip() if is_row(sentence.text) else one_line(sentence.text)
    return text


def _runs_of(sentences: Sequence[EvidenceSentence]) -> list[tuple[EvidenceSentence, ...]]:
    """Sentences in groups of consecutive ones of one piece of evidence."""
    runs: list[list[EvidenceSentence]] = []
    for each in sentences:
        last = runs[-1][-1] if runs else None
        if last and each.number == last.number + 1 and each.evidence is last.evidence:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [tuple(run) for run in runs]


def _is_whole(sentence: EvidenceSentence, among: Sequence[EvidenceSentence]) -> bool:
    """Whether a sentence can be shown: it is not cut by a figure or the end of its evidence, nor too long."""
    text, evidence = sentence.text, sentence.evidence
    if text[0].islower() or len(text.split()) > LONGEST_QUOTED:
        return False
    if is_row(text) or _ITEM.match(text) or not text[-1].isalnum():
        return True
    following = next((other for other in among[sentence.number :] if other.evidence is evidence), None)
    return not following.text[0].islower() if following else evidence.end == evidence.paper.length


def _lead(sentence: EvidenceSentence, among: Sequence[EvidenceSentence]) -> EvidenceSentence | None:
    """What introduces a list's item or a table's row, which may mean something else without: "These are excluded:"."""
    above = [other for other in among[: sentence.number - 1] if other.evidence is sentence.evidence]
    goes_on = is_row if is_row(sentence.text) else _ITEM.match
    first = sentence
    while above and goes_on(first.text) and goes_on(above[-1].text):
        first = above.pop()
    if is_row(sentence.text):
        return first if first is not sentence and _names_columns(_GAP.split(first.text.strip())) else None
    return above[-1] if above and above[-1].text.endswith(":") else None


def is_verbatim(sentence: str, statement: str) -> bool:
    """Whether a statement stands in a sentence word for word, whatever its typography."""
    words = _folded(statement)
    if len(words.split()) < LEAST_NEAR:
        return False
    return bool(re.search(rf"(?<![\w+<>=±~≤≥-]){re.escape(words)}(?!\w)", _folded(sentence)))


def _is_near(statement: str, sentence: str) -> bool:
    """Whether a sentence says nearly what a statement says, so that it can be shown in its place.

    It need not mean the same: "A is faster than B" is near "B is faster than A".
    """
    words, content = words_of(statement), _content(statement)
    if len(words) < LEAST_NEAR or not content:
        return False
    there = _content(sentence)
    missing = frozenset(content) - matching_words(frozenset(content), frozenset(there))
    if missing and _LEANS.match(sentence) and not _LEANS.match(statement):
        return False  # the statement names what the sentence only refers to
    if in_order(content, there) >= NEAR * len(content) and _closeness(statement, sentence) >= NEAR:
        return True
    return min(share(frozenset(content), frozenset(there)), share(frozenset(there), frozenset(content))) >= NEAR


def _stretch(words: frozenset[str], text: str) -> tuple[int, int]:
    """The shortest span of a text with all these words that the text has."""
    places = [match.span() for match in _WORD.finditer(text)]
    there = [frozenset(tokenize(text[start:end])) for start, end in places]
    has = words.intersection(chain.from_iterable(there))
    last: dict[str, int] = {}  # the last place of each word so far
    shortest = (0, len(there) - 1)
    for place, tokens in enumerate(there):
        last |= dict.fromkeys(has & tokens, place)
        if has and len(last) == len(has) and place - min(last.values()) < shortest[1] - shortest[0]:
            shortest = min(last.values()), place
    return places[shortest[0]][0], len(text[: places[shortest[1]][1]].rstrip(".,;:"))


def _closeness(statement: str, sentence: str) -> float:
    """The share of a statement's words that a sentence has in the same order, 0 to 1."""
    words = words_of(statement)
    return in_order(words, words_of(sentence)) / len(words)


def _content(text: str) -> list[str]:
    """The content words of a text in order, as tokens."""
    words = content_words(text)
    return [token for token in tokenize(text) if token in words]


def _folded(text: str) -> str:
    return one_line(text).translate(_TYPOGRAPHY).casefold().strip(" .")
