"""The routes of the settings: only GET /settings and the list of tasks answer on a server that others can reach."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, BackgroundTasks, Query, UploadFile
from fastapi.responses import FileResponse
from fastapi.routing import APIRoute

from folio.schema import settings as schema
from folio.system.files import make_folder, remove
from folio.web.settings import SettingsDesk
from folio.web.tasks import Tasks


def settings_routes(desk: SettingsDesk, tasks: Tasks, route_class: type[APIRoute]) -> APIRouter:
    """The routes. route_class: of routes whose reading requests are done again if a connection is cut."""
    routes = APIRouter(tags=["Settings"], route_class=route_class)
    _add_settings(routes, desk)
    _add_tasks(routes, desk, tasks)
    _add_folders(routes, desk)
    _add_bibliography(routes, desk)
    _add_storage(routes, desk)
    return routes


def _add_settings(routes: APIRouter, desk: SettingsDesk) -> None:
    @routes.get("/settings")
    def get_settings() -> schema.SettingsJson:
        """The settings that may be changed, where each was set, and why the index must be made again, if it must."""
        return desk.settings()

    @routes.patch("/settings")
    def change_settings(request: schema.SettingChanges) -> schema.ChangedSettings:
        """Change settings, in use at once and kept in the user's file. If the index would not fit, nothing is changed,
        and the reply says why."""
        desk.require_owner()
        return desk.change(request)

    @routes.get("/settings/models")
    def list_models() -> schema.KnownModels:
        """The models in use and the others that are there, with their sizes."""
        desk.require_owner()
        return desk.models()


def _add_tasks(routes: APIRouter, desk: SettingsDesk, tasks: Tasks) -> None:
    @routes.get("/tasks")
    def list_tasks() -> schema.TasksJson:
        """Work of the server that takes long. `GET /events` tells its progress, as `tasks`."""
        return schema.TasksJson(tasks=tasks.state())

    @routes.delete("/tasks/{task}", status_code=204)
    def cancel_task(task: schema.TaskId) -> None:
        """Cancel a task at its next step; take one that has ended off the list."""
        desk.require_owner()
        tasks.cancel(task)

    @routes.post("/tasks/rebuild", status_code=202)
    def start_rebuild(request: schema.RebuildRequest) -> schema.TaskJson:
        """Make the index again from the PDFs. The old one is used until the new one is complete; then the changes of
        settings come into use."""
        desk.require_owner()
        return desk.rebuild(request)

    @routes.post("/tasks/pull", status_code=202)
    def start_pull(request: schema.PullRequest) -> schema.TaskJson:
        """Have Ollama download a model. What is cancelled goes on from there the next time."""
        desk.require_owner()
        return desk.pull(request.model)

    @routes.post("/tasks/repair", status_code=202)
    def start_repair() -> schema.TaskJson:
        """Restore damaged parts of what people made, and make the indexes again from the library."""
        desk.require_owner()
        return desk.repair()

    @routes.post("/tasks/read", status_code=202)
    def start_read() -> schema.TaskJson:
        """Read what is new in the folders, and try again what could not be read."""
        desk.require_owner()
        return desk.read()

    @routes.post("/tasks/zotero", status_code=202)
    def start_zotero() -> schema.TaskJson:
        """Take over what is in Zotero now."""
        desk.require_owner()
        return desk.sync_zotero()


def _add_folders(routes: APIRouter, desk: SettingsDesk) -> None:
    @routes.get("/settings/folders")
    def list_folders(path: Annotated[str, Query(max_length=schema.LONGEST_PATH)] = "") -> schema.FolderListing:
        """The folders in a folder of this computer, and how many PDFs it has."""
        desk.require_owner()
        return desk.folders(path)

    @routes.get("/settings/zotero")
    def get_zotero() -> schema.ZoteroJson:
        """Where the Zotero library of this computer is."""
        desk.require_owner()
        return desk.zotero()


def _add_bibliography(routes: APIRouter, desk: SettingsDesk) -> None:
    @routes.post("/bibliography/preview")
    def preview_bibliography(file: UploadFile) -> schema.BibliographyJson:
        """What an import of a BibTeX or CSL-JSON file would change. Nothing is changed."""
        desk.require_owner()
        return desk.bibliography(file.file, file.filename or "", take=False)

    @routes.post("/bibliography")
    def import_bibliography(file: UploadFile) -> schema.BibliographyJson:
        """Take what a BibTeX or CSL-JSON file says of papers; a later file of the same name replaces it."""
        desk.require_owner()
        return desk.bibliography(file.file, file.filename or "", take=True)


def _add_storage(routes: APIRouter, desk: SettingsDesk) -> None:
    @routes.get("/settings/storage")
    def get_storage() -> schema.StorageJson:
        """What takes space, and the daily copies of what people made."""
        desk.require_owner()
        return desk.storage()

    file: dict[int | str, dict[str, Any]] = {
        200: {"content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}}
    }

    @routes.get("/backup", response_class=FileResponse, responses=file)
    async def download_backup() -> FileResponse:
        """Everything that people made, as one file."""
        desk.require_owner()
        folder = await to_thread.run_sync(make_folder, "folio-backup-")
        after = BackgroundTasks()
        after.add_task(remove, folder)
        try:
            path = await to_thread.run_sync(desk.backup, folder)
        except BaseException:
            await to_thread.run_sync(remove, folder)
            raise
        name = f"folio-backup-{date.today().isoformat()}.sqlite.gz"
        return FileResponse(path, media_type="application/gzip", filename=name, background=after)

    @routes.post("/backup")
    def restore_backup(file: UploadFile) -> schema.Restored:
        """Put a backup in place of everything that people made: all of it, or after an error nothing."""
        desk.require_owner()
        return desk.restore(file.file)

    @routes.post("/backup/{day}")
    def restore_copy(day: schema.Day) -> schema.Restored:
        """Put the copy of a day in place of everything that people made."""
        desk.require_owner()
        return desk.restore_copy(day)

    @routes.get("/log")
    def get_log(most: Annotated[int, Query(ge=1, le=schema.MOST_QUESTIONS)] = 50) -> schema.LogJson:
        """The latest questions of the log."""
        desk.require_owner()
        return desk.log(most)

    @routes.delete("/log")
    def delete_log() -> schema.DeletedLog:
        """Delete the log, and overwrite it on disk."""
        desk.require_owner()
        return desk.delete_log()
