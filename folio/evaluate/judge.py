"""The local model as a judge of answers: a grade from 0 to 3 with a reason, and its agreement with people's ratings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ValidationError

from folio.answer import prompts
from folio.answer.fencing import defused
from folio.answer.reply_json import reply_value
from folio.evaluate.question_writer import Ask
from folio.evaluate.tables import Table
from folio.papers.model import Progress
from folio.text import one_line

GOOD_FROM = 2  # the lowest grade that counts as a good answer
MOST_QUOTES = 8  # of one answer
LONGEST = 1000  # characters of a quote or an answer; the rest is cut off
TRIES = 2  # attempts at one answer, if the model writes no valid grade
SHOWN = 20  # disagreements in the report


class Grade(BaseModel):
    """The model's reply. The reason comes first, so that the grade follows from it."""

    reason: str
    grade: Literal[0, 1, 2, 3]


_SHAPE = Grade.model_json_schema()
Judge = Callable[[str, str, Sequence[str], str], Grade | None]


def judge_with(ask: Ask) -> Judge:
    """A judge that calls a model.

    Its arguments are a question, an answer, the quotes shown with it, and the expected answer or "". It returns None if
    the model writes no valid grade in TRIES attempts, and raises whatever `ask` raises.
    """

    def judge(question: str, answer: str, quotes: Sequence[str], expected: str) -> Grade | None:
        prompt = prompts.JUDGE_ANSWER.format(
            question=_line(question),
            expected=prompts.JUDGE_EXPECTED.format(expected=_line(expected)) if expected.strip() else "",
            quotes="\n".join(map(_line, quotes[:MOST_QUOTES])) or "none",
            answer=defused(answer)[:LONGEST].strip(),
        )
        for _ in range(TRIES):
            reply = ask(prompts.JUDGE, prompt)
            try:
                return Grade.model_validate(reply_value(reply, _SHAPE))
            except ValidationError:
                continue
        return None

    return judge


def _line(text: str) -> str:
    return one_line(defused(text))[:LONGEST]


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    """An answer of the log that a person rated."""

    number: int  # in the log
    question: str
    answer: str
    quotes: tuple[str, ...]
    is_good: bool


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A rated answer with the model's grade; None if it wrote no valid one."""

    marked: MarkedAnswer
    grade: Grade | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of answers by whether people and a model rate them as good."""

    both_good: int
    both_bad: int
    people_good: int  # only people
    model_good: int  # only the model

    @property
    def count(self) -> int:
        return self.both_good + self.both_bad + self.people_good + self.model_good

    @property
    def share(self) -> float:
        """The share of answers on which they agree. Raises ZeroDivisionError without answers."""
        return (self.both_good + self.both_bad) / self.count

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (1960, "A coefficient of agreement for nominal scales"): (observed - chance) / (1 - chance).

        None if chance agreement is 1: all answers have one rating, and the model gives all of them the same.
        """
        people, model = self.both_good + self.people_good, self.both_good + self.model_good
        chance = (people * model + (self.count - people) * (self.count - model)) / self.count**2
        return None if chance == 1 else (self.share - chance) / (1 - chance)


def judge_marked(answers: Sequence[MarkedAnswer], judge: Judge, judged: list[JudgedAnswer], progress: Progress) -> None:
    """Grade answers one by one into `judged`, so that an error does not lose the earlier ones."""
    for done, marked in enumerate(answers, 1):
        judged.append(JudgedAnswer(marked, judge(marked.question, marked.answer, marked.quotes, "")))
        progress("Grading", done, len(answers))


def agreement(judged: Sequence[JudgedAnswer]) -> Agreement:
    """The agreement over the answers with a grade."""
    pairs = [(answer.marked.is_good, answer.grade.grade >= GOOD_FROM) for answer in judged if answer.grade]
    counts = (pairs.count(pair) for pair in ((True, True), (False, False), (True, False), (False, True)))
    return Agreement(*counts)


def agreement_tables(judged: Sequence[JudgedAnswer]) -> list[Table]:
    """Tables of the grades by people's rating, of the agreement, and of the answers on which they differ."""
    graded = [(answer.marked, answer.grade) for answer in judged if answer.grade]
    rows = []
    for name, is_good in (("good", True), ("bad", False)):
        grades: list[int] = [grade.grade for marked, grade in graded if marked.is_good == is_good]
        rows.append((name, *(str(grades.count(grade)) for grade in range(4))))
    tables = [Table(f"Answers rated by people, by the model's grade: {len(graded)}", ("rated", *"0123"), tuple(rows))]
    if not graded:
        return tables
    agreed = agreement(judged)
    kappa = "undefined: one side rates all alike" if agreed.kappa is None else f"{agreed.kappa:.3f}"
    agreeing = agreed.both_good + agreed.both_bad
    facts = (
        (f"agree (good means {GOOD_FROM} or 3)", f"{agreeing} of {agreed.count} ({agreed.share:.1%})"),
        ("Cohen's kappa", kappa),
        ("good only for people", str(agreed.people_good)),
        ("good only for the model", str(agreed.model_good)),
    )
    tables.append(Table("Agreement", ("", "answers"), facts))
    differing = [
        (str(marked.number), "good" if marked.is_good else "bad", str(grade.grade), marked.question, grade.reason)
        for marked, grade in graded
        if marked.is_good != (grade.grade >= GOOD_FROM)
    ]
    if differing:
        title = f"Where they differ: {len(differing)}" + (f", the first {SHOWN}" if len(differing) > SHOWN else "")
        head = ("number", "rated", "grade", "question", "the model's reason")
        tables.append(Table(title, head, tuple(differing[:SHOWN])))
    return tables
