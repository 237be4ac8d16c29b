"""The routes of instructions, and the work behind them. Thread-safe: each call opens the library for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from fastapi import APIRouter
from fastapi.routing import APIRoute

from folio.answer.instructions import READY, RESERVED, every, find
from folio.app import App
from folio.errors import StoreMissing, UsageError
from folio.schema import instructions as schema
from folio.schema.projects import ProjectId
from folio.store import instructions
from folio.store.database import Database
from folio.web.undo import PutBack, Undo, UndoKey


def instruction_routes(app: App, kept: Undo, route_class: type[APIRoute]) -> APIRouter:
    routes = APIRouter(tags=["Instructions"], route_class=route_class)

    @routes.get("/instructions")
    def list_instructions() -> schema.InstructionList:
        """The instructions for the wording of answers, and which project uses which."""
        return listed(app)

    @routes.post("/instructions", status_code=201)
    def add_instruction(new: schema.NewInstruction) -> schema.InstructionJson:
        """Add an instruction. Questions that name it are answered in such words; what may be shown stays the same."""
        with _database(app) as database:
            return schema.instruction_json(instructions.add(database, new.name, new.text, RESERVED))

    @routes.patch("/instructions/{instruction}")
    def change_instruction(
        instruction: str, edits: schema.InstructionEdits, undo: UndoKey = None
    ) -> schema.InstructionJson:
        """Change the name or the text of an instruction. Answers keep the text that they were asked with."""
        _require_own(instruction)
        with _database(app) as database:
            before, after = instructions.change(
                database, instruction, name=edits.name, text=edits.text, reserved=RESERVED
            )
        kept.keep(undo, _putting_back(app, lambda database: instructions.put(database, before)))
        return schema.instruction_json(after)

    @routes.delete("/instructions/{instruction}", status_code=204)
    def delete_instruction(instruction: str, undo: UndoKey = None) -> None:
        """Delete an instruction. Answers keep its text."""
        _require_own(instruction)
        with _database(app) as database:
            removed, projects = instructions.remove(database, instruction)

        def put_back(database: Database) -> None:
            instructions.put(database, removed)
            for project in projects:
                instructions.choose(database, project, removed.id)

        kept.keep(undo, _putting_back(app, put_back))

    @routes.put("/instructions/of-project/{project}", status_code=204)
    def choose_for_project(project: ProjectId, chosen: schema.ProjectInstruction) -> None:
        """Have the questions of a project asked with an instruction, unless another one is chosen."""
        with _database(app) as database:
            found = None if chosen.instruction is None else find(database, chosen.instruction).id
            instructions.choose(database, project, found)

    return routes


def listed(app: App) -> schema.InstructionList:
    """All instructions; before the first ingest only the ready ones."""
    try:
        with _database(app) as database:
            known, projects = every(database), instructions.choices(database)
    except StoreMissing:
        known, projects = [*READY], {}
    return schema.InstructionList(instructions=list(map(schema.instruction_json, known)), projects=projects)


@contextmanager
def _database(app: App) -> Iterator[Database]:
    with closing(app.open_library()) as library:
        yield library.database


def _putting_back(app: App, change: Callable[[Database], None]) -> PutBack:
    def put_back() -> None:
        with _database(app) as database:
            change(database)

    return put_back


def _require_own(id: str) -> None:
    """Raises UsageError for an instruction that comes with Folio."""
    if any(ready.id == id for ready in READY):
        raise UsageError("This instruction comes with Folio.", "Add one of your own in other words.")
