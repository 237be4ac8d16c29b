"""A model's words -> the sentences that may be shown, each with its citations; the others are rejected. Pure.

A citation's quote is a slice of the paper's text, and its page comes from the slice's offset (grounding/verifier.py).
The only thing in a citation that comes from the model is the number of the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from folio.answer.output_parser import LONGEST_SENTENCE, Heading, OutputParser, ParsedSentence
from folio.answer.refusals import is_refusal, is_weak_refusal
from folio.grounding.verifier import SentenceVerifier, Verdict
from folio.types import ANALYSIS, SUMMARY, RejectedSentence, Section, Sentence, Style

# A model that repeats itself this often in a row is stuck; the rest of its output is not read.
MOST_REPEATS = 5
_TOO_LONG = Verdict((), "it is too long for one sentence")


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """What became of a model's answer."""

    shown: int  # sentences
    rejected: tuple[RejectedSentence, ...]
    refused: bool  # the model said that the evidence does not answer, before any sentence was shown
    partly_refused: bool  # the model said so of a part of the question

    @property
    def failed(self) -> bool:
        """Whether nothing can be shown although the model did not refuse."""
        return not (self.shown or self.refused)


def check(
    pieces: Iterable[str],
    verifier: SentenceVerifier,
    *,
    style: Style = "plain",
    max_chars: int = 100_000,
    is_complete: Callable[[], bool] = lambda: True,
) -> Generator[Sentence | RejectedSentence, None, ValidationResult]:
    """Yield the sentences of a model's output as they arrive: those that evidence supports, and those rejected.

    Reading stops at a refusal, after max_chars characters, or when the model only repeats itself. is_complete: called
    at the end of the output; where it returns False the model was cut off, and its unfinished sentence is dropped.
    """
    seen: set[tuple[str, str]] = set()  # a report may say the same in its summary and in its analysis
    shown = 0
    rejected: dict[str, RejectedSentence] = {}
    section = SUMMARY if style == "report" else Section()
    in_references = False
    repeats, partly_refused = 0, False
    for part in _parts(pieces, verifier.count, max_chars, is_complete):
        if is_refusal(part.text):
            return ValidationResult(shown, tuple(rejected.values()), not shown, bool(shown))
        if isinstance(part, Heading):
            if style == "report":
                in_references = bool(_REFERENCES.match(_bare(part.text)))
                section = ANALYSIS if in_references else _section(part.text, section, verifier)
            continue
        if in_references:
            continue
        key = part.text.casefold()
        if (section.heading, key) in seen:
            repeats += 1
            if repeats == MOST_REPEATS:
                break
            continue
        seen.add((section.heading, key))
        repeats = 0
        if key in rejected:
            continue
        verdict = _TOO_LONG
        if len(part.text) <= LONGEST_SENTENCE:
            verdict = verifier.verify(part.text, part.markers, part.cells)
        if verdict.citations:
            shown += 1
            against = verifier.against(part.text, verdict.citations)
            yield Sentence(part.text, verdict.citations, against, section)
        elif is_weak_refusal(part.text, marked=bool(part.markers)):
            if not shown:
                return ValidationResult(0, tuple(rejected.values()), True, False)
            partly_refused = True
        elif not part.text.endswith(":"):  # "Here is what the evidence says:" makes no claim
            rejected[key] = RejectedSentence(part.text, verdict.reason)
            yield rejected[key]
    return ValidationResult(shown, tuple(rejected.values()), False, partly_refused)


def _parts(
    pieces: Iterable[str], count: int, max_chars: int, is_complete: Callable[[], bool]
) -> Generator[ParsedSentence | Heading, None, None]:
    parser = OutputParser(count)
    length = 0
    for piece in pieces:
        yield from parser.feed(piece[: max_chars - length])
        length += max(1, len(piece))
        if length > max_chars:
            return
    if is_complete():
        yield from parser.end()


# The program writes the list of references itself.
_REFERENCES = re.compile(r"(?:key |list of |\W)*(?:references|sources|bibliography|citations)\b")
_SUMMARY = re.compile(r"(?:executive |short |\W)*summary|(?:key |main )(?:points|findings)|tl;?dr")
_ANALYSIS = re.compile(r"(?:detailed |in-depth |\W)*(?:analysis|discussion|details|report)$")


def _section(heading: str, current: Section, verifier: SentenceVerifier) -> Section:
    """The section of a report that a heading begins.

    The model's own subheadings are kept where the evidence has all of their words: a heading is a claim too.
    """
    name = _bare(heading)
    if _SUMMARY.match(name):
        return SUMMARY
    if _ANALYSIS.match(name):
        return ANALYSIS
    return Section("Analysis", heading) if verifier.mentions(heading) else Section(current.heading)


def _bare(heading: str) -> str:
    return heading.casefold().strip(" :*_")
