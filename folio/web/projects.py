"""The routes of projects, and of the scope line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.routing import APIRoute

from folio.errors import NotKnown, StoreMissing
from folio.schema import projects as schema
from folio.schema.web import ConversationSummary, FilterRequest
from folio.search.filters import ProjectPapers, Shelf, copied_members, notes_of, require_own
from folio.store import projects
from folio.store.note_places import NoteFilter, listed
from folio.store.projects import Project
from folio.web.questions import is_listed, select_for
from folio.web.undo import PutBack, Undo, UndoKey

if TYPE_CHECKING:
    from folio.app import App
    from folio.store.conversations import Conversations
    from folio.store.library import Library



class Projects:
    """The work behind the routes. Thread-safe: each call opens the library for itself."""

    def __init__(self, app: App, conversations: Conversations) -> None:
        self._app = app
        self._conversations = conversations

    def every(self) -> schema.ProjectList:
        """All projects; none if there is no index yet."""
        try:
            with self._library() as library, library.reading():
                found = Shelf(library).every_project()
        except StoreMissing:
            return schema.ProjectList(projects=[])
        return schema.ProjectList(projects=list(map(schema.project_summary, found)))

    def get(self, id: str) -> schema.ProjectDetails:
        """Raises NotKnown."""
        with self._library() as library:
            return self._details(library, id)

    def _details(self, library: Library, id: str) -> schema.ProjectDetails:
        with library.reading():
            shelf = Shelf(library)
            found = _project(shelf, id)
        noted = listed(library, NoteFilter(among=notes_of(found)))
        return schema.project_details(found, shelf.papers, self._conversations_of(found.own), len(noted))

    def _conversations_of(self, project: Project | None) -> list[ConversationSummary]:
        ids = set(project.items("conversation")) if project else set()
        present = [each for each in self._conversations.summaries() if each.id in ids and is_listed(each)]
        return list(map(ConversationSummary.model_validate, present))

    def add(self, new: schema.NewProject) -> schema.ProjectDetails:
        """Raises NotKnown for the project to copy, NameTaken."""
        with self._library() as library:
            with library.reading():
                copied = copied_members(_project(Shelf(library), new.copy_of)) if new.copy_of else []
                parts = schema.parts_of(new, library.papers_by_id(new.papers))
            made = projects.add(library.database, new.name, new.about, [*copied, *parts])
            return self._details(library, made.id)

    def change(self, id: str, changes: schema.ProjectChanges) -> tuple[schema.ProjectDetails, PutBack]:
        """Raises NotKnown, NameTaken, UsageError for a collection."""
        with self._library() as library:
            _require_own(library, id)
            before, after = projects.change(library.database, id, name=changes.name, about=changes.about)
            details = self._details(library, id)
        return details, lambda: self._do(lambda library: projects.undo_change(library.database, before, after))

    def change_parts(self, id: str, changes: schema.PartChanges) -> tuple[schema.ProjectDetails, PutBack]:
        """Raises NotKnown, UsageError for a collection."""
        with self._library() as library:
            _require_own(library, id)
            with library.reading():
                shelf = Shelf(library)
                named = {*changes.add.papers, *changes.remove.papers}
                papers = [paper for paper in shelf.papers if paper.id in named]
                removed = schema.parts_of(changes.remove, papers)
                added = [*schema.parts_of(changes.add, papers), *shelf.kept_out(_project(shelf, id), removed)]
            new, gone = projects.change_members(library.database, id, added=added, removed=removed)
            details = self._details(library, id)
        return details, lambda: self._do(
            lambda library: projects.change_members(library.database, id, added=gone, removed=new)
        )

    def remove(self, id: str) -> PutBack:
        """Delete a project, and none of what belongs to it. Raises NotKnown, UsageError for a collection."""
        with self._library() as library:
            _require_own(library, id)
            removed = projects.remove(library.database, id)
        return lambda: self._do(lambda library: projects.restore(library.database, removed))

    def scope(self, request: FilterRequest) -> schema.ScopeLine:
        """What a question with these filters would be asked of; of no paper, and why, where none fits."""
        with self._library() as library:
            try:
                scope = select_for(library, request).scope
            except NotKnown as none:
                return schema.ScopeLine(line=str(none), papers=0, restricted=True)
        assert scope is not None
        return schema.scope_line(scope)

    def _do(self, change: Callable[[Library], object]) -> None:
        with self._library() as library:
            change(library)

    @contextmanager
    def _library(self) -> Iterator[Library]:
        with closing(self._app.open_library()) as library:
            yield library


def _project(shelf: Shelf, id: str) -> ProjectPapers:
    """The project with this id. Raises NotKnown."""
    found = next((each for each in shelf.every_project() if each.id == id), None)
    if found is None:
        raise projects.unknown_project()
    return found


def _require_own(library: Library, id: str) -> None:
    """Raises UsageError for a collection, NotKnown."""
    if not projects.read(library.database, [id]):
        with library.reading():
            require_own(_project(Shelf(library), id))


def project_routes(projects_kept: Projects, undone: Undo, route_class: type[APIRoute]) -> APIRouter:
    routes = APIRouter(tags=["Projects"], route_class=route_class)

    @routes.get("/projects")
    def list_projects() -> schema.ProjectList:
        """All projects, with the number of papers that each has now, and the collections of Zotero and bibliographies,
        which are projects that are changed there."""
        return projects_kept.every()

    @routes.post("/projects", status_code=201)
    def create_project(new: schema.NewProject) -> schema.ProjectDetails:
        """Make a project of papers, rules, conversations, notes and tables, or a copy of another one."""
        return projects_kept.add(new)

    @routes.get("/projects/{project}")
    def get_project(project: schema.ProjectId) -> schema.ProjectDetails:
        """A project with its papers, which are worked out now, its conversations, notes and tables."""
        return projects_kept.get(project)

    @routes.patch("/projects/{project}")
    def change_project(
        project: schema.ProjectId, changes: schema.ProjectChanges, undo: UndoKey = None
    ) -> schema.ProjectDetails:
        """Rename or describe a project."""
        details, put_back = projects_kept.change(project, changes)
        undone.keep(undo, put_back)
        return details

    @routes.post("/projects/{project}/parts")
    def change_project_parts(
        project: schema.ProjectId, changes: schema.PartChanges, undo: UndoKey = None
    ) -> schema.ProjectDetails:
        """Put papers, rules, conversations, notes and tables into a project, and take others out."""
        details, put_back = projects_kept.change_parts(project, changes)
        undone.keep(undo, put_back)
        return details

    @routes.delete("/projects/{project}", status_code=204)
    def delete_project(project: schema.ProjectId, undo: UndoKey = None) -> None:
        """Delete a project. Its papers, conversations, notes and tables stay."""
        undone.keep(undo, projects_kept.remove(project))

    @routes.post("/scope")
    def describe_scope(request: FilterRequest) -> schema.ScopeLine:
        """What a question with these filters would be asked of, in words: "12 papers in Consensus, 2000 to 2015"."""
        return projects_kept.scope(request)

    return routes
