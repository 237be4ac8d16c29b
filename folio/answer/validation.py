"""The rules that an answer must meet: a model's words -> the sentences that may be shown. Pure.

A citation's quote is a slice of the paper's text and its page comes from the offset of the slice (verifier.py). Nothing
that a model wrote gets into a citation but the number of the evidence it points to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from folio.answer.output_parser import LONGEST_SENTENCE, Draft, Heading, Written
from folio.answer.refusals import is_refusal, is_weak_refusal
from folio.grounding.verifier import SentenceVerifier, Verdict
from folio.types import ANALYSIS, SUMMARY, RejectedSentence, Sentence, Style

# A model that repeats itself this often in a row has lost its way: what it writes after that is not waited for.
MOST_REPEATS = 5
_TOO_LONG = Verdict((), "it is too long for one sentence")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a model's answer ended: how many of its sentences were shown, what was withheld, whether it refused."""

    shown: int
    withheld: tuple[RejectedSentence, ...]
    refused: bool  # it said that the evidence does not answer, and nothing before that was shown
    partly: bool  # it said so of a part of the question

    @property
    def failed(self) -> bool:
        """Whether it gave nothing to show, and was no refusal either."""
        return not (self.shown or self.refused)


def check(
    pieces: Iterable[str],
    judge: SentenceVerifier,
    *,
    style: Style = "plain",
    longest: int = 100_000,
    whole: Callable[[], bool] = lambda: True,
) -> Generator[Sentence | RejectedSentence, None, Ended]:
    """A model's words, as they come, to sentences that cite, and those that nothing supports.

    A refusal ends it, as does the end of the words, `longest` characters, or a model that only repeats itself.
    whole: asked at the end, whether the model had said all that it wanted to; where it was cut off,
    what it had begun is no sentence.
    """
    said: set[tuple[str, str]] = set()  # in a report once in its summary, and once in its analysis
    shown = 0
    withheld: dict[str, RejectedSentence] = {}
    section: str | None = SUMMARY if style == "report" else ""
    repeats, partly = 0, False
    for part in _parts(pieces, judge.count, longest, whole):
        if is_refusal(part.text):
            return Ended(shown, tuple(withheld.values()), not shown, bool(shown))
        if isinstance(part, Heading):
            section = _section(part.text, section, judge) if style == "report" else ""
            continue
        if section is None:  # the model's own list of references
            continue
        key = part.text.casefold()
        place = section.partition("/")[0]
        if (place, key) in said:
            repeats += 1
            if repeats == MOST_REPEATS:
                break
            continue
        said.add((place, key))
        repeats = 0
        if key in withheld:
            continue
        verdict = _TOO_LONG
        if len(part.text) <= LONGEST_SENTENCE:
            verdict = judge.judge(part.text, part.markers, part.cells)
        if verdict.citations:
            shown += 1
            against = judge.against(part.text, verdict.citations)
            yield Sentence(part.text, verdict.citations, against, section)
        elif is_weak_refusal(part.text, marked=bool(part.markers)):
            if not shown:
                return Ended(0, tuple(withheld.values()), True, False)
            partly = True
        elif not part.text.endswith(":"):  # "Here is what the evidence says:" says nothing itself
            withheld[key] = RejectedSentence(part.text, verdict.reason)
            yield withheld[key]
    return Ended(shown, tuple(withheld.values()), False, partly)


def _parts(
    pieces: Iterable[str], count: int, longest: int, whole: Callable[[], bool]
) -> Generator[Written | Heading, None, None]:
    draft = Draft(count)
    length = 0
    for piece in pieces:
        yield from draft.feed(piece[: longest - length])
        length += max(1, len(piece))
        if length > longest:
            return
    if whole():
        yield from draft.end()


def _section(heading: str, current: str | None, judge: SentenceVerifier) -> str | None:
    """The section of a report that a heading begins; None for the list of references, which the program makes itself.

    Its own subheadings are taken over where all of their words stand in the evidence: a heading is a claim too.
    """
    name = heading.casefold().strip(" :*_")
    if re.match(r"(?:key |list of |\W)*(?:references|sources|bibliography|citations)\b", name):
        return None
    if re.match(r"(?:executive |short |\W)*summary|(?:key |main )(?:points|findings)|tl;?dr", name):
        return SUMMARY
    if re.match(r"(?:detailed |in-depth |\W)*(?:analysis|discussion|details|report)$", name):
        return ANALYSIS
    return f"{ANALYSIS}/{heading}" if judge.mentions(heading) else (current or ANALYSIS).partition("/")[0]
