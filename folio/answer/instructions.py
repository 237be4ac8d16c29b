"""Which instructions there are for the wording of an answer: ready ones, and those that people have written.

An instruction is in the prompt for an answer, and nowhere else. What a model writes with it passes the same checks as
without: validation.py and the rules of grounding/ never see it, and neither does the question whether the evidence
states the answer.
"""

from __future__ import annotations

from folio.answer_types import Answer
from folio.errors import NotKnown
from folio.shown_text import short_line
from folio.store import instructions
from folio.store.database import Database
from folio.store.instructions import Instruction

READY = (
    Instruction("two-sentences", "In two sentences", "Answer in two short sentences."),
    Instruction(
        "newcomer",
        "For a newcomer",
        "Explain it to somebody who is new to the field: short sentences, common words, and each technical term"
        " explained where it first stands, as far as the evidence does.",
    ),
)
RESERVED = tuple(each.name for each in READY)
NEEDS_MODEL = "Your instruction “{}” needs a chat model: without one, answers are in the papers' own words."
NO_EFFECT = "Your instruction “{}” changed nothing here: what is shown is in the papers' own words."
_NAMED = 60  # characters


def every(database: Database) -> list[Instruction]:
    """The ready instructions, then those of people by name. Raises StoreDamaged."""
    return [*READY, *instructions.read(database)]


def find(database: Database, wanted: str) -> Instruction:
    """The instruction with this id or name. Raises NotKnown."""
    known = every(database)
    found = [each for each in known if each.id == wanted]
    found += [each for each in known if each.name.casefold() == wanted.strip().casefold()]
    if not found:
        names = ", ".join(f"“{short_line(each.name, _NAMED)}”" for each in known)
        raise NotKnown(f"There is no instruction “{short_line(wanted, _NAMED)}”.", f"These exist: {names}.")
    return found[0]


def effect_notice(chosen: Instruction, answer: Answer, *, quotes_only: bool) -> str:
    """That an instruction has not changed an answer's words, where that is so; else "".

    quotes_only: no model has a part in the answer.
    """
    if not answer.sentences or any(sentence.outcome == "reworded" for sentence in answer.sentences):
        return ""
    return (NEEDS_MODEL if quotes_only else NO_EFFECT).format(short_line(chosen.name, _NAMED))
