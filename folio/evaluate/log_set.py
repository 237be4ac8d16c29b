"""A set of questions from the query log: what people rated good must still be found, and refused where it was."""

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
    """The questions of a set, oldest first, and the numbers in the log of rated ones that are not in it."""

    questions: tuple[Question, ...]
    bad: tuple[int, ...]  # rated bad: where the answer is, nobody has said
    without_gold: tuple[int, ...]  # rated good, no refusal, and without a source in a paper that is here


def questions_from_log(entries: Iterable[tuple[int, LogEntry]], files: Mapping[str, str]) -> LoggedSet:
    """The questions whose answers people rated good. entries: with their numbers, newest first. files: the names that
    the papers' files have now, by paper id.

    A question stands as it was understood, for a set has no conversation around it. Each citation of its answer is a
    gold entry, and any of them will do; a refusal that was rated good makes a question that the papers do not answer.
    Of the same question asked again, the newest rating counts.
    """
    asked: set[tuple[str, ...]] = set()
    questions, bad, without_gold = list[Question](), list[int](), list[int]()
    for number, entry in entries:
        words = tuple(plain_words(entry.standalone_question))
        if not entry.feedback or words in asked:
            continue
        asked.add(words)
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
