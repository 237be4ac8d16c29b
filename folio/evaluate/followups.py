"""Measures follow-ups: how they are resolved, against people's rewrites, and what each way of searching finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from folio.answer import followup
from folio.answer_types import Answer
from folio.evaluate.conversation_set import Rewrite
from folio.evaluate.dataset import Question
from folio.evaluate.tables import Table
from folio.search.retriever import Retriever, SearchResult
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
    found = retriever.search(meant, depth, readings=followup.readings(question.text, meant, question.history))
    return replace(found, ranked={**ranked, **{k: found.ranked[k] for k in ("fused", "reranked") if k in found.ranked}})


def resolution(rewrites: Sequence[Rewrite], resolve: Resolve) -> Table:
    """How follow-ups are resolved, by the content words that people added to make them stand alone.

    Content words are those that are no stop words, in lower case. A word is brought in if the person added it too, and
    needless if the person's question does not have it.
    """
    added = possible = brought = needless = untouched = followups = 0
    for rewrite in rewrites:
        asked, wanted = _words(rewrite.question), _words(rewrite.standalone)
        new = _words(resolved(rewrite.question, turns(rewrite.history, resolve), resolve)) - asked
        missing = wanted - asked
        added += len(missing)
        possible += len(missing & _words(" ".join(rewrite.history)))
        brought += len(missing & new)
        needless += len(new - wanted)
        followups += bool(missing)
        untouched += not missing and not new
    rows = (
        ("follow-ups that people added words to", str(followups)),
        ("words that people added", str(added)),
        ("of these, words that stand in the questions before", str(possible)),
        ("words brought in", str(brought)),
        ("needless words", str(needless)),
        ("follow-ups that need nothing", str(len(rewrites) - followups)),
        ("of these, left as they were", str(untouched)),
    )
    return Table(f"Follow-ups resolved, against rewrites by people: {len(rewrites)}", ("what", "number"), rows)


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP_WORDS}
