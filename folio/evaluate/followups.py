"""Evaluates follow-ups: their resolution against people's rewrites, and the search by each reading."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from folio.answer_types import Answer
from folio.evaluate.dataset import Question, Rewrite
from folio.evaluate.tables import Table
from folio.question import followup
from folio.question.question import Question as AskedQuestion
from folio.search.retriever import Retriever, SearchRequest, SearchResult
from folio.text import STOP_WORDS

# The stages that a set of conversations adds to a run: each ranks by the fused scores of one reading
TYPED, RESOLVED, AFTER_PREVIOUS = "as typed", "resolved", "behind the question before"
Resolve = Callable[[str, Sequence[Answer]], str]


def turns(questions: Sequence[str], resolve: Resolve) -> list[Answer]:
    """The questions of a conversation as turns without an answer."""
    history: list[Answer] = []
    for question in questions:
        history.append(Answer(question, resolved(question, history, resolve), ()))
    return history


def resolved(question: str, history: Sequence[Answer], resolve: Resolve) -> str:
    """A follow-up with its references resolved; unchanged if it cannot be understood."""
    try:
        return resolve(question, history)
    except followup.NotUnderstoodError:
        return question


def search(retriever: Retriever, question: Question, depth: int, resolve: Resolve) -> SearchResult:
    """Search as a conversation does, with all readings. `ranked` also has the order for some single readings."""
    meant = resolved(question.text, turns(question.history, resolve), resolve)
    alone = {TYPED: question.text, RESOLVED: meant, AFTER_PREVIOUS: f"{question.history[-1]} {question.text}"}
    ranked = {stage: retriever.search(text, depth, rerank=False).ranked["fused"] for stage, text in alone.items()}
    first, *further_readings = followup.readings(question.text, meant, question.history)
    result = retriever.find(SearchRequest(AskedQuestion(first), depth, readings=further_readings))
    return replace(
        result, ranked={**ranked, **{k: result.ranked[k] for k in ("fused", "reranked") if k in result.ranked}}
    )


@dataclass(frozen=True, slots=True)
class Resolution:
    """How follow-ups are resolved, counted in the content words that people added to make them stand alone.

    Content words are all words but stop words, in lower case. A word that Folio adds is brought in if the person also
    added it, and needless if the person's question does not have it.
    """

    extended: int  # follow-ups to which people added words
    added: int  # the words that people added
    added_from_before: int  # of these, the words from the questions before; the others are new
    brought_in: int
    needless: int
    complete: int  # follow-ups to which people added nothing
    left_alone: int  # of these, those to which Folio added nothing


def resolution(rewrites: Sequence[Rewrite], resolve: Resolve) -> Resolution:
    """Resolve follow-ups that people rewrote, and compare."""
    extended = added = before = brought_in = needless = left_alone = 0
    for rewrite in rewrites:
        typed, rewritten = _words(rewrite.question), _words(rewrite.standalone)
        new = _words(resolved(rewrite.question, turns(rewrite.history, resolve), resolve)) - typed
        missing = rewritten - typed
        extended += bool(missing)
        added += len(missing)
        before += len(missing & _words(" ".join(rewrite.history)))
        brought_in += len(missing & new)
        needless += len(new - rewritten)
        left_alone += not missing and not new
    return Resolution(extended, added, before, brought_in, needless, len(rewrites) - extended, left_alone)


def table(counts: Resolution) -> Table:
    """A resolution as a table."""
    rows = (
        ("words brought in", f"{counts.brought_in} of {counts.added}"),
        ("words from the questions before", f"{counts.added_from_before} of {counts.added}"),
        ("needless words", str(counts.needless)),
        ("complete follow-ups left unchanged", f"{counts.left_alone} of {counts.complete}"),
    )
    title = f"Follow-ups resolved, against rewrites by people: {counts.extended + counts.complete}"
    return Table(title, ("what", "number"), rows)


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP_WORDS}
