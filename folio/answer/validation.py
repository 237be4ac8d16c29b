"""A model's words -> the statements to show, each with its citations; the others are left out. Pure.

A citation's quote is a slice of the paper's text, and its page comes from the slice's offset (grounding/sentences.py).
The model only contributes evidence numbers to a citation, and the program checks these.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from folio.answer.parser import LONGEST_SENTENCE, Heading, ParsedSentence
from folio.answer.refusals import is_refusal, is_weak_refusal, says_nothing
from folio.answer_types import ANALYSIS, SUMMARY, Checking, Citation, RejectedSentence, Section, Sentence, Style
from folio.errors import ModelError
from folio.grounding.conflicts import against
from folio.grounding.grounder import MOST_SENTENCES, Attribution, Fault, Finding, Grounder, citations_of, of_sentences
from folio.grounding.sentences import citations, content_words, matching_words, tokens_of
from folio.grounding.translation import is_borne_out, is_in_another_language
from folio.protocols import Claim, Entailment, Verifier
from folio.text import one_line

MOST_REPEATS = 5  # in a row; after these the model is stuck, and the rest of its output is not read
LEAST_ENTAILED = 0.5  # probability from which a verifier agrees
LEAST_CONTRADICTED = 0.5  # probability from which it finds a contradiction
LEAST_QUOTE = 5  # words; a shorter quote says nothing by itself
NOWHERE = Attribution((), "", "", 0.0)
TOO_LONG = Fault("too long", "it is too long for one sentence")
NOT_ENTAILED = Fault("verifier", "the verifier finds that it does not follow from the cited sentences")
CONTRADICTED = Fault("contradiction", "the verifier finds that the paper says the opposite")
NOT_QUOTED = Fault("strict", "it is not in the words of the paper")
DANGLES = Fault("dangling", "its subject is named in a statement that is left out")
# Words that refer to the subject of the previous statement
_POINTS_BACK = re.compile(
    r"\W*(?:(?:it|they|he|she|its|their|his|these|those|both|such|another)\b"
    r"(?! (?:is|was) (?:(?:also )?possible|important|worth|clear)\b)"
    r"|(?:this|that)\b(?! (?:paper|study|article|work|document|report|publication)\b)"
    r"|the (?:former|latter|same|second|third|other|others)\b)",
    re.I,
)
# Headings of a report. The program writes the list of references itself.
_REFERENCES = re.compile(r"(?:key |list of |\W)*(?:references|sources|bibliography|citations)\b")
_SUMMARY = re.compile(r"(?:executive |short |\W)*summary|(?:key |main )(?:points|findings)|tl;?dr")
_ANALYSIS = re.compile(r"(?:detailed |in-depth |\W)*(?:analysis|discussion|details|report)$")

Part = Sentence | RejectedSentence | Checking
_Place = tuple[str, int, int]  # a paper's id and a span of its text


class Parser(Protocol):
    """Parses a model's output while it arrives."""

    def feed(self, piece: str) -> list[ParsedSentence | Heading]: ...

    def end(self, *, cut: bool = False) -> list[ParsedSentence | Heading]: ...


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """What became of a model's answer."""

    shown: int  # number of statements
    rejected: tuple[RejectedSentence, ...]
    refused: bool  # the model found no answer, and no statement is shown
    partly_refused: bool  # the model found no answer to a part of the question
    unverified: str = ""  # why the verifier could not check all statements
    translated: bool = False  # a shown statement is in another language than the evidence
    in_own_words: bool = False  # the refusal is the model's own, not the sentence that the prompt gives
    reworded: bool = False  # a shown statement is in the model's words

    @property
    def failed(self) -> bool:
        """Whether nothing can be shown although the model did not refuse."""
        return not (self.shown or self.refused)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement that waits for its turn or for the verifier."""

    finding: Finding
    section: Section
    marked: bool  # the model named its evidence
    translated: bool = False
    is_copy: bool = False


@dataclass
class Validator:
    """Decides which statements of one answer are shown, in order.

    verifier: checks reworded statements; None to show them unchecked. strict: show only quotes. best_quote: the
    sentence of the evidence that answers best, to replace a first statement that is left out. own_words: whether a
    statement in the model's own words is shown; otherwise the sentences that it rests on are.
    """

    grounder: Grounder
    verifier: Verifier | None = None
    style: Style = "plain"
    strict: bool = False
    best_quote: Callable[[], Sentence | None] = lambda: None
    own_words: bool = True
    _queue: deque[_Statement] = field(default_factory=deque, init=False)
    _rejected: dict[str, RejectedSentence] = field(default_factory=dict, init=False)
    _shown: int = field(default=0, init=False)
    _quotes: set[tuple[Section, _Place]] = field(default_factory=set, init=False)  # those shown, by their section
    _lead: tuple[Section, int] | None = field(default=None, init=False)  # what introduced the last quote, by number
    _lost_first: str = field(default="", init=False)  # the first statement, if it was left out
    _last_left_out: bool = field(default=False, init=False)
    _refused: bool = field(default=False, init=False)
    _partly_refused: bool = field(default=False, init=False)
    _in_own_words: bool = field(default=False, init=False)
    _translated: bool = field(default=False, init=False)
    _reworded: bool = field(default=False, init=False)

    def check(self, parts: Iterable[ParsedSentence | Heading]) -> Generator[Part, None, ValidationResult]:
        """Yield each statement, shown or left out, in order and as soon as it is decided.

        Stops reading at a refusal, or when the model only repeats itself.
        """
        parts = iter(parts)
        for statement in self._found_statements(parts):
            self._queue.append(statement)
            while self._queue and not self._waits(self._queue[0]):
                yield from self._decide(self._queue.popleft(), None)
            if self._refused:
                self._in_own_words = self._in_own_words and not any(is_refusal(part.text) for part in parts)
                break
        unverified = yield from self._verify()
        rejected = tuple(self._rejected.values())
        refused = self._refused and not self._shown
        partly = bool(self._shown) and (self._refused or self._partly_refused)
        return ValidationResult(
            self._shown,
            rejected,
            refused,
            partly,
            unverified,
            self._translated,
            refused and self._in_own_words,
            self._reworded,
        )

    def _found_statements(self, parts: Iterable[ParsedSentence | Heading]) -> Iterator[_Statement]:
        section = SUMMARY if self.style == "report" else Section()
        seen: set[tuple[str, str]] = set()  # the summary and the analysis of a report may say the same
        in_references, repeats = False, 0
        for part in parts:
            if is_refusal(part.text):
                self._refused = True
                return
            if isinstance(part, Heading):
                if self.style == "report":
                    in_references = bool(_REFERENCES.match(_bare(part.text)))
                    section = ANALYSIS if in_references else _section(part.text, section, self.grounder)
                continue
            if part.is_copy:  # its text is the answer, which may be one statement that was read before
                copied = self.grounder.copied(part.quote)
                if copied and self.grounder.bears_out(copied, part.text):
                    yield _Statement(copied, section, True, is_copy=True)
                continue
            key = section.heading, part.text.casefold()
            if in_references or key in seen:
                repeats += not in_references
                if repeats == MOST_REPEATS:
                    return
                continue
            seen.add(key)
            repeats = 0
            if len(part.text) > LONGEST_SENTENCE:
                yield _Statement(Finding(part.text, NOWHERE, "left out", TOO_LONG), section, True)
                continue
            if says_nothing(part.text):
                continue
            copied = self.grounder.copied(part.quote) if part.quote else None
            support = [sentence.number for sentence in copied.quoted] if copied else part.support
            leads_in = part.text.endswith(":")
            finding = self.grounder.find(part.text, support, part.markers, leads_in=leads_in)
            translated = None if finding.fault is None else self._translation(part)
            marked = bool(part.markers or part.support)
            if finding.outcome == "reworded" and not self.own_words:
                for quoted in self.grounder.in_the_papers_words(finding):
                    yield _Statement(quoted, section, marked)
                continue
            yield _Statement(translated or finding, section, marked, translated is not None)

    def _translation(self, part: ParsedSentence) -> Finding | None:
        """The finding for a statement in another language than the sentences that it names; else None."""
        sentences = self.grounder.sentences
        numbers = [number for number in dict.fromkeys(part.support) if 1 <= number <= len(sentences)]
        named = [sentences[number - 1] for number in numbers[:MOST_SENTENCES]]
        named = named or [each for each in sentences if each.evidence.number in part.markers]
        if not (named and is_in_another_language(part.text, " ".join(each.evidence.text for each in named))):
            return None
        borne_out = [each for each in named if is_borne_out(part.text, [each])] or named
        if not is_borne_out(part.text, borne_out):
            return None
        source = of_sentences(part.text, borne_out[:MOST_SENTENCES], sentences)
        return Finding(part.text, source, "reworded")

    def _waits(self, statement: _Statement) -> bool:
        return statement.finding.outcome == "reworded" and self.verifier is not None and not self.strict

    def _verify(self) -> Generator[Part, None, str]:
        """Verify the waiting statements; returns why the verifier failed, or ""."""
        waiting = [statement for statement in self._queue if self._waits(statement)]
        if self.verifier is None or not waiting:
            return ""
        yield Checking(len(waiting))
        findings = [statement.finding for statement in waiting]
        claims = [Claim(f.statement, f.source.context, f.source.titles.partition("\n")[0]) for f in findings]
        verdicts = self.verifier.entails(claims)
        left, problem, is_known = len(waiting), "", False
        while self._queue:
            statement = self._queue.popleft()
            verdict: Entailment | None = None
            if self._waits(statement) and not problem:
                left -= 1
                try:
                    verdict = next(verdicts)
                    is_known = is_known or verdict.entails is not None
                except ModelError as error:
                    problem, left = error.happened, 0
                yield Checking(left)
            yield from self._decide(statement, verdict)
        return problem or ("" if is_known else f"{self.verifier.name} answered neither yes nor no to any.")

    def _decide(self, statement: _Statement, verdict: Entailment | None) -> Iterator[Part]:
        finding = statement.finding
        if statement.is_copy and (self._shown or self._refused):
            return
        fault = self._fault_of(finding, verdict)
        text = finding.statement
        if fault is None and self._last_left_out and _POINTS_BACK.match(finding.text):
            yield from self._quote_instead(statement)
        elif fault is None:
            by = self.verifier.name if self.verifier and verdict and verdict.entails is not None else ""
            self._translated = self._translated or statement.translated
            self._reworded = self._reworded or finding.outcome == "reworded"
            sentence = self._sentence(finding, statement.section, by)
            yield from self._show(replace(sentence, instead_of=self._lost_first) if statement.is_copy else sentence)
            self._last_left_out = False
        elif is_weak_refusal(text, marked=statement.marked):
            self._refused, self._partly_refused = not self._shown, bool(self._shown)
            self._in_own_words = self._refused
        elif not text.endswith(":"):  # "Here is what the evidence says:" makes no claim
            yield from self._reject(text, fault)

    def _fault_of(self, finding: Finding, verdict: Entailment | None) -> Fault | None:
        """Why a statement is left out; None if it is shown."""
        if finding.fault is not None or (finding.outcome == "reworded" and self.strict):
            return finding.fault or NOT_QUOTED
        if verdict is None or verdict.entails is None or verdict.entails >= LEAST_ENTAILED:
            return None
        return CONTRADICTED if verdict.contradicts >= LEAST_CONTRADICTED else NOT_ENTAILED

    def _sentence(self, finding: Finding, section: Section, verified_by: str) -> Sentence:
        lead = (section, finding.lead.number) if finding.lead else None
        if lead == self._lead:  # the items of a list are introduced once
            finding = replace(finding, lead=None)
        self._lead = lead
        quotes = citations_of(finding)
        others = against(finding.text, quotes, self.grounder.sentences)
        if finding.outcome == "quoted":
            return Sentence(finding.text, quotes, others, section, marks=finding.marks)
        return Sentence(finding.statement, quotes, others, section, "reworded", verified_by)

    def _quote_instead(self, statement: _Statement) -> Iterator[Part]:
        """The quote of a statement that refers to one that is left out, in its place."""
        text, words = statement.finding.statement, content_words(statement.finding.statement)
        nearest = max(statement.finding.source.sentences, key=lambda s: len(matching_words(words, tokens_of(s.text))))
        plain = one_line(nearest.text)
        yield from self._reject(text, DANGLES)
        if len(plain.split()) >= LEAST_QUOTE and not _POINTS_BACK.match(plain):
            quotes = citations(nearest.evidence, nearest.start, nearest.end, 1.0)
            yield from self._show(Sentence(plain, tuple(quotes), (), statement.section, instead_of=text))

    def _reject(self, text: str, fault: Fault) -> Iterator[Part]:
        self._last_left_out = True
        if not (self._shown or self._rejected):
            self._lost_first = text
        if text.casefold() not in self._rejected:
            self._rejected[text.casefold()] = rejected = RejectedSentence(text, fault.reason, fault.rule)
            yield rejected

    def _show(self, sentence: Sentence) -> Iterator[Part]:
        """The sentence; before the first one, the best quote if the model's first statement is left out.

        A sentence of the paper that several statements are near is shown once.
        """
        if sentence.outcome == "quoted":
            place = sentence.section, _place(sentence.citations[-1])
            if place in self._quotes:
                return
            self._quotes.add(place)
        if self._lost_first and not self._shown and not sentence.instead_of:
            best = self.best_quote()
            if best is not None and _place(best.citations[0]) not in map(_place, sentence.citations):
                self._shown += 1
                yield Sentence(best.text, best.citations, best.against, sentence.section, instead_of=self._lost_first)
        self._shown += 1
        yield sentence


def _place(citation: Citation) -> _Place:
    return citation.paper.id, citation.start, citation.end


def parts_of(
    pieces: Iterable[str], parser: Parser, *, max_chars: int = 100_000, is_cut: Callable[[], bool] = lambda: False
) -> Iterator[ParsedSentence | Heading]:
    """The statements and headings of a model's output as they arrive, up to max_chars characters.

    is_cut: called at the end; True means that the model was cut off, and an unfinished part is dropped.
    """
    length = 0
    for piece in pieces:
        yield from parser.feed(piece[: max_chars - length])
        length += max(1, len(piece))
        if length > max_chars:
            yield from parser.end(cut=True)
            return
    yield from parser.end(cut=is_cut())


def _section(heading: str, current: Section, grounder: Grounder) -> Section:
    """The section of a report that a heading begins.

    The model's own subheadings are kept where the evidence has all of their words: a heading is a claim too.
    """
    name = _bare(heading)
    if _SUMMARY.match(name):
        return SUMMARY
    if _ANALYSIS.match(name):
        return ANALYSIS
    return Section("Analysis", heading) if grounder.mentions(heading) else Section(current.heading)


def _bare(heading: str) -> str:
    return heading.casefold().strip(" :*_")
