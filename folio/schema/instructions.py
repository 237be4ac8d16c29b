"""Instructions for the wording of answers as JSON models, for the web API and `folio instructions list --json`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from folio.answer.instructions import READY
from folio.schema.papers import Strict
from folio.schema.web import NOT_BLANK
from folio.store.instructions import MAX_INSTRUCTION, MAX_NAME, Instruction

InstructionName = Annotated[str, Field(pattern=NOT_BLANK, max_length=MAX_NAME)]
InstructionText = Annotated[str, Field(pattern=NOT_BLANK, max_length=MAX_INSTRUCTION)]


class InstructionJson(Strict):
    """What a person asks of the wording of answers. It never changes what may be shown."""

    id: str
    name: str
    text: str
    ready: bool
    """Whether it comes with Folio, and cannot be changed."""


class InstructionList(Strict):
    instructions: list[InstructionJson]
    """The ready ones, then those of people by name."""
    projects: dict[str, str]
    """Project -> the instruction that its questions are asked with, if no other is chosen."""


class NewInstruction(Strict):
    name: InstructionName
    text: InstructionText


class InstructionEdits(Strict):
    """Changes of an instruction; null leaves a field as it is."""

    name: InstructionName | None = None
    text: InstructionText | None = None


class ProjectInstruction(Strict):
    instruction: Annotated[str, Field(max_length=64)] | None
    """Its id; null for none."""


def instruction_json(kept: Instruction) -> InstructionJson:
    return InstructionJson(id=kept.id, name=kept.name, text=kept.text, ready=kept in READY)
