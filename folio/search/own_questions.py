"""A person's own questions as a small evaluation set: how many are found, and which settings would find more.

The set is the log: an answer rated good vouches for the pages that it cites, and one that was not rated for the cited
pages that the person opened, which is weak evidence. A question is found if one of its
pages is among the passages that an answer is made from. As those pages were found with the settings of then, other
settings have a disadvantage.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Literal

from folio.answer_types import REFUSAL
from folio.question.question import Question
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever, SearchRequest
from folio.store.query_log import LogEntry, LoggedSource
from folio.text import plain_words

MOST_QUESTIONS = 200  # the newest; each is searched once for each setting
CLEAR = 0.05  # of the sign tests, shared among the settings that are tried (Bonferroni)
# "more passages": they never find fewer, and give more to read; so they are compared with nothing
Verdict = Literal["better", "worse", "unclear", "same", "more passages"]


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to search, and the settings that choose it."""

    settings: Mapping[str, str]  # empty: as it is now
    fusion: FusionSettings
    top_k: int
    rerank: bool


@dataclass(frozen=True, slots=True)
class Tried:
    """What a way to search found."""

    settings: Mapping[str, str]
    found: int
    gained: int  # found, but not as it is now
    lost: int  # the other way round
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class OwnResult:
    """What the ways to search found of a person's questions; the present one first."""

    questions: int
    opened: int  # of them, those of which only opened citations are known
    now: Tried
    others: tuple[Tried, ...]
    missed: tuple[str, ...]  # questions that are not found now


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question of the log whose right pages are known; without any, a refusal that was rated good."""

    number: int  # in the log
    text: str
    pages: tuple[LoggedSource, ...]
    answer: str  # "" without pages
    is_opened: bool  # only opened citations vouch for it


@dataclass(frozen=True, slots=True)
class KnownQuestions:
    """The questions, oldest first, and the log numbers of rated questions that are not among them."""

    questions: tuple[KnownQuestion, ...]
    bad: tuple[int, ...]  # rated bad, so the place of the answer is unknown
    without_pages: tuple[int, ...]  # rated good, not a refusal, but without a source in a paper of the library

    @property
    def searched(self) -> tuple[KnownQuestion, ...]:
        """The newest questions with a page, which a search can find."""
        return tuple(question for question in self.questions if question.pages)[-MOST_QUESTIONS:]


def known_questions(
    entries: Iterable[tuple[int, LogEntry]], papers: Container[str], opened: Mapping[int, Sequence[tuple[str, int]]]
) -> KnownQuestions:
    """The questions whose answers people rated good, or of which they opened citations.

    entries: with their numbers, newest first. papers: the ids of those in the library. opened: number -> the papers and
    pages of the citations that were opened.

    If the same question was rated several times, the newest rating counts. Somebody who opens a citation may find that
    it does not answer, so that counts only where no answer to the same question was rated, and for its page alone.
    """
    entries = list(entries)
    rated = {tuple(plain_words(entry.standalone_question)) for _, entry in entries if entry.feedback}
    seen: set[tuple[str, ...]] = set()
    questions, bad, without_pages = list[KnownQuestion](), list[int](), list[int]()
    for number, entry in entries:
        words = tuple(plain_words(entry.standalone_question))
        cited = tuple(source for source in entry.sources if source.paper in papers)
        is_opened = words not in rated
        if is_opened:
            places = set(opened.get(number, ()))
            cited = tuple(source for source in cited if (source.paper, source.page) in places)
        if words in seen or not (cited if is_opened else entry.feedback):
            continue
        seen.add(words)
        if entry.feedback == "bad":
            bad.append(number)
        elif not cited and (entry.sources or entry.answer != REFUSAL):
            without_pages.append(number)
        else:
            answer = entry.answer if cited else ""
            questions.append(KnownQuestion(number, entry.standalone_question, cited, answer, is_opened))
    return KnownQuestions(tuple(reversed(questions)), tuple(bad), tuple(without_pages))


def variants(fusion: FusionSettings, top_k: int, *, rerank: bool) -> Iterator[Variant]:
    """The present way to search, then others that differ in one thing each. rerank: whether there is a reranker."""
    now = Variant({}, fusion, top_k, rerank)
    yield now
    if fusion.mode == "hybrid" and fusion.method == "weighted":
        for lexical in (0.5, 0.9):
            if lexical != fusion.lexical:
                weights = {"BM25_WEIGHT": f"{lexical:g}", "DENSE_WEIGHT": f"{1 - lexical:g}"}
                yield replace(now, settings=weights, fusion=replace(fusion, lexical=lexical, dense=1 - lexical))
        yield replace(now, settings={"FUSION": "rrf"}, fusion=replace(fusion, method="rrf"))
    else:
        hybrid = replace(fusion, mode="hybrid", method="weighted", lexical=0.7, dense=0.3)
        yield replace(now, settings={"RETRIEVAL_MODE": "hybrid", "FUSION": "weighted"}, fusion=hybrid)
    if rerank:
        yield replace(now, settings={"RERANKER": "none"}, rerank=False)
    yield replace(now, settings={"TOP_K": str(2 * top_k)}, top_k=2 * top_k)


def measure(
    questions: Sequence[KnownQuestion],
    retriever: Retriever,
    tried: Sequence[Variant],
    progress: Callable[[int, int], None],
) -> OwnResult:
    """Search each question in each way. tried: the present way first.

    progress: called with the searches done and their total before each one; it may wait, or raise to cancel. Raises
    ModelError.
    """
    total, found = len(tried) * len(questions), list[list[bool]]()
    for variant in tried:
        searching = retriever.with_fusion(variant.fusion)
        row = list[bool]()
        for question in questions:
            progress(len(found) * len(questions) + len(row), total)
            request = SearchRequest(Question(question.text), variant.top_k, rerank=variant.rerank)
            row.append(_is_found(question, searching, request))
        found.append(row)
    progress(total, total)
    now, *others = [_tried(variant, row, found[0], len(tried) - 1, tried[0].top_k)
                    for variant, row in zip(tried, found, strict=True)]  # fmt: skip
    missed = tuple(each.text for each, is_found in zip(questions, found[0], strict=True) if not is_found)
    opened = sum(question.is_opened for question in questions)
    return OwnResult(len(questions), opened, now, tuple(others), missed)


def _is_found(question: KnownQuestion, retriever: Retriever, request: SearchRequest) -> bool:
    known = {(each.paper, each.page) for each in question.pages}
    for hit in retriever.find(request).hits:
        first, last = hit.pages
        if any((hit.paper.id, page) in known for page in range(first, last + 1)):
            return True
    return False


def _tried(variant: Variant, row: Sequence[bool], now: Sequence[bool], others: int, top_k: int) -> Tried:
    gained = sum(is_found and not before for is_found, before in zip(row, now, strict=True))
    lost = sum(before and not is_found for is_found, before in zip(row, now, strict=True))
    verdict: Verdict = "same" if gained == lost else "unclear"
    if variant.top_k > top_k:
        verdict = "more passages"
    elif sign_test(gained, lost) < CLEAR / max(1, others):
        verdict = "better" if gained > lost else "worse"
    return Tried(variant.settings, sum(row), gained, lost, verdict)


def sign_test(gained: int, lost: int) -> float:
    """The probability of a split at least this uneven if either side were as likely, two-sided; 1 without one."""
    differ, fewer = gained + lost, min(gained, lost)
    tail = sum(comb(differ, count) for count in range(fewer + 1))
    return min(1.0, 2.0 * tail / float(2**differ))
