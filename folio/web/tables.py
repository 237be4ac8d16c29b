"""The routes of evidence tables, and the work behind them. Each call opens the library for itself.

    GET    /tables?project=                         TableList
    POST   /tables                                  NewTable -> TableJson (201)
    GET    /tables/{id}                             TableJson
    PATCH  /tables/{id}?undo=                       TableChanges -> TableJson
    DELETE /tables/{id}?undo=                       204
    POST   /tables/{id}/columns                     NewColumn -> TableJson (201)
    PATCH  /tables/{id}/columns/{column}?undo=      ColumnChanges -> TableJson
    DELETE /tables/{id}/columns/{column}?undo=      TableJson
    POST   /tables/{id}/rows                        NewRows -> TableJson
    DELETE /tables/{id}/rows/{paper}?undo=          TableJson
    POST   /tables/{id}/fill                        FillRequest -> TableSummaryJson (202)
    POST   /tables/{id}/stop                        204
    POST   /tables/{id}/cells/{column}/{paper}/ask  202: the cell is `running`, then has its new answer
    PUT    /tables/{id}/cells/{column}/{paper}/edit?undo=  CellEdit -> CellJson
    DELETE /tables/{id}/cells/{column}/{paper}/edit?undo=  CellJson
    GET    /tables/{id}/cells?since=N               ChangedCells
    GET    /tables/suggested-columns                TableFilter as the query -> SuggestedColumns
    GET    /tables/{id}/suggested-columns           SuggestedColumns, without the columns that it has
    GET    /tables/{id}/export?format=csv|markdown|docx|bibtex|json

A change, a fill that goes on and a cell that lands are announced on /events as `tables`: {changed: [ids], deleted:
[ids]}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Annotated, Literal

from anyio import to_thread
from fastapi import APIRouter, Query, Response
from fastapi.routing import APIRoute

from folio.app import App
from folio.errors import NotKnown, StoreMissing
from folio.schema import tables as schema
from folio.schema.papers import Sha256
from folio.schema.web import TableId
from folio.store import projects, tables
from folio.store.database import Database
from folio.store.library import Library
from folio.store.projects import Member
from folio.store.table_places import placed, row_of
from folio.store.works import publishers_bibtex
from folio.table import export
from folio.table.filling import as_column, ask_again
from folio.table.scope import Scope, add_later_papers, new_table
from folio.table.shown import shown_table
from folio.table.suggested import suggested_columns
from folio.web.filling import Fillings
from folio.web.papers import require_papers
from folio.web.undo import PutBack, Undo, UndoKey

Since = Annotated[int, Query(ge=0, le=2**53, description="The `changed` that the client knows.")]
Format = Literal["csv", "markdown", "docx", "bibtex", "json"]
# Format -> its media type, and the ending of its files
_FORMATS: dict[Format, tuple[str, str]] = {
    "csv": ("text/csv", "csv"),
    "markdown": ("text/markdown", "md"),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    "bibtex": ("application/x-bibtex", "bib"),
    "json": ("application/json", "json"),
}
_TABLE, _COLUMN, _CELL = "/tables/{table}", "/tables/{table}/columns/{column}", "/tables/{table}/cells/{column}/{paper}"


class Tables:
    """Thread-safe."""

    def __init__(self, app: App, undo: Undo) -> None:
        self._app = app
        self._undo = undo

    def every(self, project: str | None) -> schema.TableList:
        """All tables, or those of a project; none before the first ingest."""
        try:
            with closing(self._app.open_library()) as library:
                _follow(library)
                stored, owners = tables.every(library.database), _owners(library, project)
        except StoreMissing:
            return schema.TableList(tables=[])
        listed = [(table, counts, owners.get(table.id, "")) for table, counts in stored]
        return schema.TableList(tables=[schema.summary_json(*each) for each in listed if project in (None, each[2])])

    def summary(self, table: str) -> schema.TableSummaryJson:
        """Raises NotKnown."""
        with closing(self._app.open_library()) as library, library.reading():
            counts = tables.counts(library.database, [table])[table]
            owner = _owners(library).get(table, "")
            return schema.summary_json(tables.read(library.database, table, since=2**53), counts, owner)

    def add(self, new: schema.NewTable) -> str:
        """Add a table; returns its id. Raises NotKnown if no paper fits, UsageError."""
        scope = Scope.from_json(new.filter.model_dump())
        columns = [schema.column_of(column, tables.new_id()) for column in new.columns]
        with closing(self._app.open_library()) as library:
            require_papers(library, scope.papers)
            if new.project:
                projects.require(library.database, new.project)
            table = new_table(library, scope, columns, new.name, follows=new.follows)
            if new.project:
                projects.change_members(library.database, new.project, added=[Member("table", table)])
            return table

    def shown(self, table: str) -> schema.TableJson:
        """Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            return schema.table_json(shown_table(library, table), _owners(library).get(table, ""))

    def changed_cells(self, table: str, since: int) -> schema.ChangedCells:
        """Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            table_now = placed(library, table, since)  # which may store new places, so not while reading
            counts = tables.counts(library.database, [table])[table]
            return schema.changed_cells(table_now, counts, since)

    def change(self, table: str, changes: schema.TableChanges, undo: str | None) -> None:
        """Raises NotKnown."""
        named = {name: getattr(changes, name) for name in ("name", "follows")}
        with self._changing(undo) as (library, keep):
            if changes.project is not None:
                before = _owners(library).get(table, "")
                tables.shape(library.database, table)
                _move(library.database, table, changes.project)
                keep(_move, table, before)
            if any(value is not None for value in named.values()):
                keep(tables.undo_change, *tables.change(library.database, table, **named))
            if changes.columns is not None:
                keep(tables.order_columns, table, tables.order_columns(library.database, table, changes.columns))

    def remove(self, table: str, undo: str | None) -> None:
        """Raises NotKnown."""
        with self._changing(undo) as (library, keep):
            keep(tables.restore, tables.remove(library.database, table))

    def add_column(self, table: str, new: schema.NewColumn) -> None:
        """Raises NotKnown, UsageError."""
        with closing(self._app.open_library()) as library:
            tables.add_column(library.database, table, schema.column_of(new, tables.new_id()))

    def change_column(self, table: str, column: str, changes: schema.ColumnChanges, undo: str | None) -> None:
        """Raises NotKnown, UsageError."""
        with self._changing(undo) as (library, keep):
            changed = schema.changed_column(tables.read(library.database, table).column(column), changes)
            keep(tables.undo_column, tables.change_column(library.database, table, changed))

    def remove_column(self, table: str, column: str, undo: str | None) -> None:
        """Raises NotKnown."""
        with self._changing(undo) as (library, keep):
            keep(tables.undo_column, tables.remove_column(library.database, table, column))

    def add_rows(self, table: str, papers: Sequence[str]) -> None:
        """Raises NotKnown, UsageError."""
        with closing(self._app.open_library()) as library:
            rows = list(map(row_of, require_papers(library, papers)))
            tables.read(library.database, table, since=2**53)
            tables.add_rows(library.database, table, rows)

    def hide_row(self, table: str, paper: str, undo: str | None) -> None:
        """Raises NotKnown."""
        with self._changing(undo) as (library, keep):
            tables.hide_row(library.database, table, paper, hidden=True)
            keep(partial(tables.hide_row, hidden=False), table, paper)

    def edit(
        self, table: str, column: str, paper: str, text: str, before: str | None, undo: str | None
    ) -> schema.CellJson:
        """text: "" for none. Raises NotKnown, ChangedElsewhere."""
        with self._changing(undo) as (library, keep):
            edits = tables.edit_cell(library.database, table, column, paper, text, before)
            keep(tables.undo_edit, table, column, paper, *edits)
            now = placed(library, table)
            return schema.cell_json(now, now.table.column(column), paper)

    def ask_again(self, table: str, again: Sequence[schema.Again]) -> None:
        """Let the cells in these states wait again. Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            ask_again(library, table, again)

    def require_paper(self, paper: str) -> None:
        """Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            require_papers(library, [paper])

    def suggested(self, wanted: schema.TableFilter) -> schema.SuggestedColumns:
        """Columns that the papers that fit suggest; none before the first ingest. Raises NotKnown, UsageError."""
        scope = Scope.from_json(wanted.model_dump())
        try:
            with closing(self._app.open_library()) as library, library.reading():
                require_papers(library, scope.papers)
                return schema.suggested_json(suggested_columns(scope.fitting(library), library.text))
        except StoreMissing:
            return schema.SuggestedColumns(columns=[])

    def suggested_for(self, table: str) -> schema.SuggestedColumns:
        """Columns that its papers suggest, without those that it has. Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            now = placed(library, table)
            with library.reading():
                have = list(map(as_column, now.table.columns))
                return schema.suggested_json(suggested_columns(list(now.papers.values()), library.text, have))

    def export(self, table: str, format: Format, page: str) -> Response:
        """A table as a file. page: the address of Folio's page, for links. Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            shown = shown_table(library, table)
            published = publishers_bibtex(library.database, shown.keys) if format == "bibtex" else {}
            owner = _owners(library).get(table, "")
        content: str | bytes
        if format == "csv":
            content = export.csv_text(shown)
        elif format == "markdown":
            content = export.markdown(shown, page)
        elif format == "docx":
            content = export.word(shown, page)
        elif format == "bibtex":
            content = export.bibtex(shown, published)
        else:
            content = schema.table_json(shown, owner).model_dump_json()
        media_type, ending = _FORMATS[format]
        title = re.sub(r"[^a-z0-9]+", "-", shown.table.name.lower()).strip("-")[:50].strip("-")
        name = "-".join(filter(None, ["folio", title])) + f".{ending}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=media_type, headers=headers)

    @contextmanager
    def _changing(self, undo: str | None) -> Iterator[tuple[Library, Callable[..., None]]]:
        """The library, and what keeps how to undo a change: a function, and its arguments after the database."""
        with closing(self._app.open_library()) as library:

            def keep(undo_it: Callable[..., object], *arguments: object) -> None:
                self._undo.keep(undo, self._put_back(undo_it, *arguments))

            yield library, keep

    def _put_back(self, undo_it: Callable[..., object], *arguments: object) -> PutBack:
        def put_back() -> None:
            with closing(self._app.open_library()) as library:
                undo_it(library.database, *arguments)

        return put_back


def _owners(library: Library, project: str | None = None) -> dict[str, str]:
    """Table -> the id of the project that it belongs to; the first by name of several. project: of it alone."""
    every = projects.read(library.database, None if project is None else [project])
    return {table: project.id for project in reversed(every) for table in project.items("table")}


def _move(database: Database, table: str, project: str) -> None:
    """Let a table belong to this project alone, "" for none. Raises NotKnown."""
    if project:
        projects.require(database, project)
    for each in projects.projects_of(database, "table", table):
        projects.change_members(database, each.id, removed=[Member("table", table)])
    if project:
        projects.change_members(database, project, added=[Member("table", table)])


def _follow(library: Library) -> None:
    if library.is_read_only:
        return
    for table in tables.following(library.database):
        with suppress(NotKnown):  # it was deleted since
            add_later_papers(library, [table])


def table_routes(app: App, fillings: Fillings, undo: Undo, page: str, route_class: type[APIRoute]) -> APIRouter:
    """page: the address of the page."""
    routes = APIRouter(tags=["Tables"], route_class=route_class)
    work = Tables(app, undo)
    _add_more_routes(routes, work, page)  # before the routes with an id
    _add_table_routes(routes, work, fillings)
    _add_part_routes(routes, work, fillings)
    _add_cell_routes(routes, work, fillings)
    return routes


def _add_table_routes(routes: APIRouter, work: Tables, fillings: Fillings) -> None:
    @routes.get("/tables")
    def list_tables(project: Annotated[str | None, Query(max_length=100)] = None) -> schema.TableList:
        """All tables, or those of a project; the last changed one first."""
        return work.every(project)

    @routes.post("/tables", status_code=201)
    async def create_table(new: schema.NewTable) -> schema.TableJson:
        """Add a table of the papers that fit."""
        table = await to_thread.run_sync(work.add, new)
        if new.fill:
            await fillings.fill(table)
        return await to_thread.run_sync(work.shown, table)

    @routes.get(_TABLE)
    def get_table(table: TableId) -> schema.TableJson:
        """A table with its columns, rows and cells. Quotes are at their current places."""
        return work.shown(table)

    @routes.patch(_TABLE)
    def change_table(table: TableId, changes: schema.TableChanges, undo: UndoKey = None) -> schema.TableJson:
        """Rename a table, move it to a project, let it follow its papers or not, or order its columns."""
        work.change(table, changes, undo)
        return work.shown(table)

    @routes.delete(_TABLE, status_code=204)
    def delete_table(table: TableId, undo: UndoKey = None) -> None:
        """Delete a table. If it is being filled, that ends."""
        work.remove(table, undo)

    @routes.post(f"{_TABLE}/fill", status_code=202)
    async def fill_table(table: TableId, request: schema.FillRequest) -> schema.TableSummaryJson:
        """Ask the cells that wait, one paper after the other, and go on if the server is restarted. Papers that are
        added later are asked too, until filling is stopped. Cells land one by one: `tables` of `GET /events`."""
        await to_thread.run_sync(work.ask_again, table, request.again)
        await fillings.fill(table)
        return await to_thread.run_sync(work.summary, table)

    @routes.post(f"{_TABLE}/stop", status_code=204)
    async def stop_table(table: TableId) -> None:
        """Stop filling a table, whoever fills it. What was found stays."""
        await to_thread.run_sync(fillings.filler.stop, table)


def _add_more_routes(routes: APIRouter, work: Tables, page: str) -> None:
    @routes.get("/tables/suggested-columns")
    def suggest_columns(wanted: Annotated[schema.TableFilter, Query()]) -> schema.SuggestedColumns:
        """Columns for a table of these papers, from section headings and table captions that they share."""
        return work.suggested(wanted)

    @routes.get(f"{_TABLE}/suggested-columns")
    def suggest_more_columns(table: TableId) -> schema.SuggestedColumns:
        """The same for the papers of a table, without the columns that it has."""
        return work.suggested_for(table)

    forms = {media: {"schema": {"type": "string", "format": "binary"}} for media, _ in _FORMATS.values()}

    @routes.get(
        f"{_TABLE}/export", response_class=Response, responses={200: {"description": "The file.", "content": forms}}
    )
    def export_table(table: TableId, format: Annotated[Format, Query()] = "csv") -> Response:
        """A table as CSV for spreadsheets, Markdown, a Word document or JSON; or the papers of its rows as BibTeX."""
        return work.export(table, format, page)


def _add_part_routes(routes: APIRouter, work: Tables, fillings: Fillings) -> None:
    @routes.post(f"{_TABLE}/columns", status_code=201)
    async def add_column(table: TableId, column: schema.NewColumn) -> schema.TableJson:
        """Add a column at the end. If the table was being filled until its end, the column is asked at once."""
        await to_thread.run_sync(work.add_column, table, column)
        fillings.look_soon()
        return await to_thread.run_sync(work.shown, table)

    @routes.patch(_COLUMN)
    async def change_column(
        table: TableId, column: schema.ColumnId, changes: schema.ColumnChanges, undo: UndoKey = None
    ) -> schema.TableJson:
        """Change a column. If it asks something else its cells wait again; edited ones stay."""
        await to_thread.run_sync(work.change_column, table, column, changes, undo)
        fillings.look_soon()
        return await to_thread.run_sync(work.shown, table)

    @routes.delete(_COLUMN)
    def delete_column(table: TableId, column: schema.ColumnId, undo: UndoKey = None) -> schema.TableJson:
        """Delete a column with its cells."""
        work.remove_column(table, column, undo)
        return work.shown(table)

    @routes.post(f"{_TABLE}/rows")
    async def add_rows(table: TableId, rows: schema.NewRows) -> schema.TableJson:
        """Add papers. Those that were taken out come back with their cells."""
        await to_thread.run_sync(work.add_rows, table, rows.papers)
        fillings.look_soon()
        return await to_thread.run_sync(work.shown, table)

    @routes.delete(f"{_TABLE}/rows/{{paper}}")
    def remove_row(table: TableId, paper: Sha256, undo: UndoKey = None) -> schema.TableJson:
        """Take a paper out of a table. It does not come back by itself."""
        work.hide_row(table, paper, undo)
        return work.shown(table)


def _add_cell_routes(routes: APIRouter, work: Tables, fillings: Fillings) -> None:
    @routes.get(f"{_TABLE}/cells")
    def get_changed_cells(table: TableId, since: Since = 0) -> schema.ChangedCells:
        """The cells that changed since the change number `since`."""
        return work.changed_cells(table, since)

    @routes.post(f"{_CELL}/ask", status_code=202)
    async def ask_cell(table: TableId, column: schema.ColumnId, paper: Sha256) -> None:
        """Ask one cell again. It keeps its answer until the new one is there; an edited one keeps its text."""
        await to_thread.run_sync(work.require_paper, paper)
        await fillings.ask(table, column, paper)

    @routes.put(f"{_CELL}/edit")
    def edit_cell(
        table: TableId, column: schema.ColumnId, paper: Sha256, edit: schema.CellEdit, undo: UndoKey = None
    ) -> schema.CellJson:
        """Put a person's text into a cell. What was found is kept below it."""
        return work.edit(table, column, paper, edit.text, edit.before, undo)

    @routes.delete(f"{_CELL}/edit")
    def remove_edit(
        table: TableId, column: schema.ColumnId, paper: Sha256, undo: UndoKey = None
    ) -> schema.CellJson:
        """Take a person's text out of a cell: it shows what was found again."""
        return work.edit(table, column, paper, "", None, undo)
