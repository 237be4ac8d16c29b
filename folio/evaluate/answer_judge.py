"""The local model as a judge of answers: a grade from 0 to 3 with a reason, and its agreement with people's marks."""

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
from folio.text import one_line
from folio.types import Progress

GOOD_FROM = 2  # the lowest grade that counts as a good answer
MOST_QUOTES = 8  # of an answer, each cut off at LONGEST characters; so are the answers
LONGEST = 1000
TRIES = 2  # of one answer, if what the model writes is no grade
SHOWN = 20  # disagreements in the report


class Grade(BaseModel):
    """What the model replies. The reason comes first, so that the grade follows from it."""

    reason: str
    grade: Literal[0, 1, 2, 3]


_SHAPE = Grade.model_json_schema()
Judge = Callable[[str, str, Sequence[str], str], Grade | None]


def judge_with(ask: Ask) -> Judge:
    """A judge that asks a model. It is called with a question, an answer, the quotes shown with it, and the expected
    answer or "", and gives None if the model writes no grade in TRIES attempts. Raises whatever `ask` raises.
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


# Agreement with people


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
    """The same with the model's grade; None where it wrote none."""

    marked: MarkedAnswer
    grade: Grade | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often a model and people agree on which answers are good, as counts of answers."""

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

        None where chance alone would agree always: all answers have one mark, and the model gives the same to all.
        """
        people, model = self.both_good + self.people_good, self.both_good + self.model_good
        chance = (people * model + (self.count - people) * (self.count - model)) / self.count**2
        return None if chance == 1 else (self.share - chance) / (1 - chance)


def judge_marked(answers: Sequence[MarkedAnswer], judge: Judge, judged: list[JudgedAnswer], progress: Progress) -> None:
    """Grade answers one by one into `judged`, which so has those that were graded before an error."""
    for done, marked in enumerate(answers, 1):
        judged.append(JudgedAnswer(marked, judge(marked.question, marked.answer, marked.quotes, "")))
        progress("Grading", done, len(answers))


def agreement(judged: Sequence[JudgedAnswer]) -> Agreement:
    """Over the answers that have a grade."""
    pairs = [(one.marked.is_good, one.grade.grade >= GOOD_FROM) for one in judged if one.grade]
    counts = (pairs.count(pair) for pair in ((True, True), (False, False), (True, False), (False, True)))
    return Agreement(*counts)


def agreement_tables(judged: Sequence[JudgedAnswer]) -> list[Table]:
    """How people's marks and the grades go together, the agreement, and the answers on which they differ."""
    graded = [(one.marked, one.grade) for one in judged if one.grade]
    rows = []
    for name, is_good in (("good", True), ("bad", False)):
        grades: list[int] = [grade.grade for marked, grade in graded if marked.is_good == is_good]
        rows.append((name, *(str(grades.count(grade)) for grade in range(4))))
    found = [Table(f"Answers rated by people, by the model's grade: {len(graded)}", ("rated", *"0123"), tuple(rows))]
    if not graded:
        return found
    agreed = agreement(judged)
    kappa = "undefined: one side rates all alike" if agreed.kappa is None else f"{agreed.kappa:.3f}"
    agreeing = agreed.both_good + agreed.both_bad
    facts = (
        (f"agree (good means {GOOD_FROM} or 3)", f"{agreeing} of {agreed.count} ({agreed.share:.1%})"),
        ("Cohen's kappa", kappa),
        ("good for people alone", str(agreed.people_good)),
        ("good for the model alone", str(agreed.model_good)),
    )
    found.append(Table("Agreement", ("", "answers"), facts))
    differing = [
        (str(marked.number), "good" if marked.is_good else "bad", str(grade.grade), marked.question, grade.reason)
        for marked, grade in graded
        if marked.is_good != (grade.grade >= GOOD_FROM)
    ]
    if differing:
        title = f"Where they differ: {len(differing)}" + (f", the first {SHOWN}" if len(differing) > SHOWN else "")
        head = ("number", "rated", "grade", "question", "the model's reason")
        found.append(Table(title, head, tuple(differing[:SHOWN])))
    return found
