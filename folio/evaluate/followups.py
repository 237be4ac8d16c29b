"""Measures follow-ups: how they are resolved, against people's rewrites, and what each way of searching finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from folio.answer import followup
from folio.answer_types import Answer
from folio.evaluate.conversation_set import Rewrite
from folio.evaluate.dataset import Question
from folio.evaluate.tables import Table
from folio.search.question import Question as AskedQuestion
from folio.search.retriever import Retriever, SearchRequest, SearchResult
from folio.text import STOP_WORDS

# The stages that a set of conversations adds to a run: the order of the fused scores for one reading alone
TYPED, RESOLVED, BEHIND = "as typed", "resolved", "behind the question before"
Resolve = Callable[[str, Sequence[Answer]], str]


def turns(asked: Sequence[str], resolve: Resolve) -> list[Answer]:
    """The questions of a conversation as turns without an answer."""
    found: list[Answer] = []
    for question in asked:
        found.append(Answer(question, resolved(question, found, resolve), ()))
    return found


def resolved(question: str, history: Sequence[Answer], resolve: Resolve) -> str:
    """A follow-up with its references filled in; as typed where it cannot be understood."""
    try:
        return resolve(question, history)
    except followup.NotUnderstoodError:
        return question


def search(retriever: Retriever, question: Question, depth: int, resolve: Resolve) -> SearchResult:
    """Search as a conversation does, with all readings; `ranked` has the order of some readings alone as well."""
    meant = resolved(question.text, turns(question.history, resolve), resolve)
    alone = {TYPED: question.text, RESOLVED: meant, BEHIND: f"{question.history[-1]} {question.text}"}
    ranked = {stage: retriever.search(text, depth, rerank=False).ranked["fused"] for stage, text in alone.items()}
    first, *others = followup.readings(question.text, meant, question.history)
    found = retriever.find(SearchRequest(AskedQuestion(first), depth, readings=others))
    return replace(found, ranked={**ranked, **{k: found.ranked[k] for k in ("fused", "reranked") if k in found.ranked}})


@dataclass(frozen=True, slots=True)
class Resolution:
    """How follow-ups are resolved, by the content words that people added to make them stand alone.

    Content words are those that are no stop words, in lower case. A word is brought in if the person added it too, and
    needless if the person's question does not have it.
    """

    extended: int  # follow-ups that people added words to
    added: int  # the words that people added
    added_from_before: int  # of these, the words that stand in the questions before; the others are the person's own
    brought_in: int
    needless: int
    complete: int  # follow-ups that people added nothing to
    left_alone: int  # of these, those that got no word


def resolution(rewrites: Sequence[Rewrite], resolve: Resolve) -> Resolution:
    """Resolve follow-ups that people rewrote, and compare."""
    extended = added = before = brought_in = needless = left_alone = 0
    for rewrite in rewrites:
        asked, wanted = _words(rewrite.question), _words(rewrite.standalone)
        new = _words(resolved(rewrite.question, turns(rewrite.history, resolve), resolve)) - asked
        missing = wanted - asked
        extended += bool(missing)
        added += len(missing)
        before += len(missing & _words(" ".join(rewrite.history)))
        brought_in += len(missing & new)
        needless += len(new - wanted)
        left_alone += not missing and not new
    return Resolution(extended, added, before, brought_in, needless, len(rewrites) - extended, left_alone)


def table(found: Resolution) -> Table:
    """A resolution as a table."""
    rows = (
        ("words brought in", f"{found.brought_in} of {found.added}"),
        ("words that stand in the questions before", f"{found.added_from_before} of {found.added}"),
        ("needless words", str(found.needless)),
        ("follow-ups left alone that need nothing", f"{found.left_alone} of {found.complete}"),
    )
    title = f"Follow-ups resolved, against rewrites by people: {found.extended + found.complete}"
    return Table(title, ("what", "number"), rows)


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP_WORDS}
