"""A set of questions from the query log: answers rated good must still be found, and good refusals still refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from folio.answer_types import REFUSAL
from folio.evaluate.dataset import Gold, Question
from folio.store.query_log import LogEntry
from folio.text import plain_words

TYPE = "logged"


@dataclass(frozen=True, slots=True)
class LoggedSet:
    """The questions of a set, oldest first, and the log numbers of rated questions that are not in it."""

    questions: tuple[Question, ...]
    bad: tuple[int, ...]  # rated bad, so the place of the answer is unknown
    without_gold: tuple[int, ...]  # rated good, not a refusal, but without a source in a paper of the library


def questions_from_log(entries: Iterable[tuple[int, LogEntry]], files: Mapping[str, str]) -> LoggedSet:
    """The questions whose answers people rated good.

    entries: with their numbers, newest first. files: paper id -> the current name of its file.

    A question has its resolved text, because a set has no conversations. Each citation of its answer is a gold entry,
    and any of them is enough; a refusal that was rated good makes an unanswerable question. If the same question was
    rated several times, the newest rating counts.
    """
    seen: set[tuple[str, ...]] = set()
    questions, bad, without_gold = list[Question](), list[int](), list[int]()
    for number, entry in entries:
        words = tuple(plain_words(entry.standalone_question))
        if not entry.feedback or words in seen:
            continue
        seen.add(words)
        cited = [source for source in entry.sources if source.paper in files]
        gold = tuple(dict.fromkeys(Gold(files[source.paper], source.page, source.quote) for source in cited))
        if entry.feedback == "bad":
            bad.append(number)
        elif not gold and (entry.sources or entry.answer != REFUSAL):
            without_gold.append(number)
        else:
            answer = entry.answer if gold else ""
            questions.append(Question(f"q{number}", entry.standalone_question, TYPE, bool(gold), answer, gold))
    return LoggedSet(tuple(reversed(questions)), tuple(bad), tuple(without_gold))
