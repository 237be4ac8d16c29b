"""The work behind the settings of the page: changed without a restart, models got, the index made again, storage."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePath
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO

from folio.app import App
from folio.errors import FolioError, ModelError, StoreMissing, UsageError
from folio.ingest import discovery
from folio.models.model_server import is_cloud, is_local
from folio.schema import settings as schema
from folio.schema.web import error_body
from folio.shown_text import counted
from folio.store import indexes, user_file
from folio.system.files import no_space, temporary_folder
from folio.web.fetcher import Online
from folio.web.guard import AccessRules
from folio.web.service import Service
from folio.web.tasks import PapersProgress, Report

if TYPE_CHECKING:
    from folio.bibliography.imports import Bibliography, ImportPlan
    from folio.store.library import Library

# Setting -> the values that it may have; none for any value
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "LLM": ("auto", "ollama", "openai", "builtin"),
    "LLM_MODEL": (),
    "EMBEDDER": ("auto", "ollama", "openai", "builtin"),
    "EMBED_MODEL": (),
    "RERANKER": ("auto", "crossencoder", "builtin", "none"),
    "VERIFIER": ("auto", "llm", "crossencoder", "none"),
    "OPENAI_BASE_URL": (),
    "PARSER": ("fast", "layout"),
    "OCR": ("auto", "off"),
    "PAPERS_DIR": (),
    "WATCH": (),
    "ONLINE": ("false", "true"),
}
_MOST_FOLDERS = 1000
_MOST_COUNTED = 2000  # PDFs in a folder, or as many folders
_MB = 10**6
MAX_BIBLIOGRAPHY, MAX_BACKUP = 100 * _MB, 4000 * _MB  # bytes of an upload


class NotYours(UsageError):
    """Settings that only the person at this computer may see and change."""


class SettingsDesk:
    """Thread-safe."""

    def __init__(
        self, app: App, service: Service, rules: AccessRules, go_online: Callable[[], Online] | None = None
    ) -> None:
        """go_online: opens the services on the internet, where a person may allow it in the page."""
        self._app, self._service, self._rules, self._go_online = app, service, rules, go_online
        self._changing = Lock()

    def require_owner(self) -> None:
        """Raise NotYours unless only this computer reaches the server."""
        if not self._rules.is_private:
            raise NotYours(
                "Other people can reach this Folio, so its settings cannot be changed in the page.",
                "Change them on the computer that Folio runs on.",
            )

    # Settings

    def settings(self) -> schema.SettingsJson:
        app, is_owner = self._app, self._rules.is_private
        origins = app.setting_origins()
        try:
            rebuild = app.why_rebuild()
        except FolioError:  # a model that cannot be used now: health says so
            rebuild = ""
        return schema.SettingsJson(
            changeable=is_owner,
            file=str(app.settings_file or "") if is_owner else "",
            settings=[
                schema.SettingJson(name=name, value=app.setting(name), origin=origins[name], choices=list(choices))
                for name, choices in _CHOICES.items()
            ]
            if is_owner
            else [],
            rebuild=rebuild,
            logged=self._service.questions.are_logged,
            is_shared=app.place_in_use == "postgres",
        )

    def change(self, request: schema.SettingChanges) -> schema.ChangedSettings:
        """Use and keep new settings. If the index does not fit them, nothing is changed, and the reply says why.

        Raises UsageError for a setting that cannot be changed or has no such value, ModelError for a model that cannot
        be used, OSError, DiskFull.
        """
        with self._changing:
            other = self._with(request.changes)
            reason = other.why_rebuild()
            if reason and reason != self._app.why_rebuild():
                return schema.ChangedSettings(settings=self.settings(), needs_rebuild=reason)
            self._take(other, request.changes)
        return schema.ChangedSettings(settings=self.settings(), needs_rebuild="")

    def _with(self, changes: Mapping[str, str | None]) -> App:
        """The app with these changes, which it can use. Raises as `change`."""
        origins = self._app.setting_origins()
        for name, value in changes.items():
            if name not in _CHOICES:
                raise UsageError(f"{name} cannot be changed here.", "Change another setting.")
            if origins[name] == "environment":
                raise UsageError(
                    f"{name} is set by the environment that Folio was started in, which comes first.",
                    "Take it out there, and start Folio again.",
                )
            if value is not None and _CHOICES[name] and value not in _CHOICES[name]:
                raise UsageError(f"{name} cannot be {value}.", f"Choose one of {', '.join(_CHOICES[name])}.")
        _require_folders(changes)
        other = self._app.with_changes(changes)
        if "OPENAI_BASE_URL" in changes and not is_local(other.models.openai.url):
            raise UsageError(
                "A model server on another computer cannot be chosen here: questions and passages would go there.",
                "Choose a server on this computer.",
            )
        if changes.keys() & {"LLM", "LLM_MODEL", "OPENAI_BASE_URL"}:
            other.at_a_glance().models.require_ready()
        if "RERANKER" in changes:
            other.models.reranker()
        if "VERIFIER" in changes:
            other.models.verifier()
        return other

    def _take(self, other: App, changes: Mapping[str, str | None]) -> None:
        if changes:
            self._app.keep_settings(changes)
        self._app.take_settings_of(other)
        self._service.retrievers.renew()
        if "ONLINE" in changes:
            self._service.fetcher.go_online(self._opened() if other.internet.is_for_server else None)
        if changes.keys() & {"WATCH", "PAPERS_DIR"}:
            self._service.follow_folders()

    def _opened(self) -> Online:
        if self._go_online is None:
            raise UsageError("This server cannot use services on the internet.", "Start Folio as a command does.")
        return self._go_online()

    # Models

    def models(self) -> schema.KnownModels:
        """The models that are there, with their sizes."""
        app = self._app.at_a_glance()
        return _models_of(app, self._service.health().models)

    def pull(self, model: str) -> schema.TaskJson:
        """Have Ollama get a model. Raises Busy, CloudModel, UsageError."""
        server = self._app.models.ollama

        def work(report: Report) -> str:
            def progress(step: str, done: int, of: int) -> None:
                report.step(step, done, of)

            server.pull(model, progress, report.check_cancelled)
            self._service.retrievers.renew()
            return f"{model} is there."

        return self._service.tasks.start("pull", model, work)

    # The index

    def rebuild(self, request: schema.RebuildRequest) -> schema.TaskJson:
        """Make the index again; the old one is used until the new one is complete. Raises as `change`, and Busy."""
        with self._changing:
            other = self._with(request.changes)
        reason = other.why_rebuild() or "You asked for it."

        def work(report: Report) -> str:
            report.step("looking")
            with self._service.paper_files.writing():
                progress = PapersProgress(report)
                files = other.files_to_rebuild(progress, drops_missing=request.drops_missing)
                counts = {"added": 0, "failed": 0}
                with other.finishing(), closing(other.rebuild(files, progress)) as outcomes:
                    for outcome in outcomes:
                        progress.done(outcome)
                        key = "failed" if outcome.status == "failed" else "added"
                        counts[key] += outcome.status != "duplicate"
                with self._changing:
                    self._take(other, request.changes) if request.changes else self._service.retrievers.renew()
            failed = f" {counted(counts['failed'], 'file')} could not be read." if counts["failed"] else ""
            return f"The index has {counted(counts['added'], 'paper')}.{failed}"

        return self._service.tasks.start("rebuild", "", work, reason)

    def repair(self) -> schema.TaskJson:
        """Restore what people made as far as it can be, and make the indexes again. Raises Busy."""

        def work(report: Report) -> str:
            report.step("looking")
            with self._service.paper_files.writing():
                repaired = self._app.repair()
            self._service.retrievers.renew()
            lost = "" if repaired.is_complete else " A part of what you made could not be restored."
            return f"The index is repaired: {counted(repaired.passages, 'passage')}.{lost}"

        return self._service.tasks.start("repair", "", work)

    def read(self) -> schema.TaskJson:
        """Read what is new in all folders, and try again what could not be read. Raises Busy."""

        def work(report: Report) -> str:
            app = self._app
            report.step("looking")
            folders = [folder for folder in (app.papers_folder, *app.watched.folders) if folder.is_dir()]
            with self._service.paper_files.writing():
                progress = PapersProgress(report)
                known = {path: file.name for path, file in app.known_files().items() if path.exists()}
                files, outcomes = discovery.hash_files(known | discovery.find_pdfs(folders), progress)
                if files:
                    retry = frozenset(file.path for file in files)
                    with app.finishing(), closing(app.ingest(files, progress, retry=retry)) as work:
                        for outcome in work:
                            progress.done(outcome)
                            outcomes.append(outcome)
            return _summary(outcomes)

        return self._service.tasks.start("read", "", work)

    # Folders

    def folders(self, path: str) -> schema.FolderListing:
        """The folders in a folder of this computer; without a path, in the home folder. Raises UsageError."""
        if path and ("\0" in path or not os.path.isabs(path)):
            raise UsageError("A folder is named by its whole path.", "Begin it at the top: /home/ada/Papers.")
        folder = Path(os.path.abspath(path)) if path else _home()
        try:
            inside = sorted(
                (entry for entry in os.scandir(folder) if not entry.name.startswith(".") and _is_folder(entry)),
                key=lambda entry: entry.name.casefold(),
            )
        except OSError as error:
            why = error.strerror or "it cannot be read"
            raise UsageError(f"The folder {folder} cannot be opened: {why}.", "Choose another folder.") from error
        pdfs, is_more = _count_pdfs(folder)
        return schema.FolderListing(
            path=str(folder),
            parent="" if folder.parent == folder else str(folder.parent),
            folders=[schema.FolderJson(name=each.name, path=each.path) for each in inside[:_MOST_FOLDERS]],
            is_cut=len(inside) > _MOST_FOLDERS,
            pdfs=pdfs,
            is_more=is_more,
            places=_places(),
        )

    def zotero(self) -> schema.ZoteroJson:
        """Where Zotero's library lies on this computer, and how many PDFs it has."""
        from folio.zotero.files import Computer, find_data_folder
        from folio.zotero.library import read_library

        followed = self._app.watched.zotero
        try:
            folder = find_data_folder(None, Computer.this())
        except UsageError:
            return schema.ZoteroJson(folder="", pdfs=0, is_followed=followed, problem=None)
        try:
            pdfs = sum(each.path.is_file() for each in read_library(folder).attachments)
        except FolioError as error:
            problem = error_body(error)
            return schema.ZoteroJson(folder=str(folder.path), pdfs=0, is_followed=followed, problem=problem)
        return schema.ZoteroJson(folder=str(folder.path), pdfs=pdfs, is_followed=followed, problem=None)

    def sync_zotero(self) -> schema.TaskJson:
        """Take over what is in Zotero now. Raises Busy."""
        return self._service.tasks.start("zotero", "", lambda report: _summary(self._service.sync_zotero(report)))

    # Bibliographies

    def bibliography(self, upload: BinaryIO, name: str, *, take: bool) -> schema.BibliographyJson:
        """What an import of a bibliography changes; with `take`, it is imported.

        A later import of a file of the same name replaces what this one said. Raises UsageError, StoreBusy.
        """
        from folio.bibliography.imports import apply_import, plan_import, read_bibliography

        shown = PurePath(name.replace("\\", "/")).name
        with temporary_folder("folio-bibliography-") as folder:
            path = folder / f"bibliography{PurePath(shown).suffix}"
            with no_space(folder):
                path.write_bytes(upload.read())
            try:
                read = read_bibliography(path)
            except UsageError as error:
                raise UsageError(error.happened.replace(str(path), shown), error.remedy) from error
        read = replace(read, path=self._app.store_folder / "bibliographies" / shown)
        with ExitStack() as stack:
            if take:
                stack.enter_context(self._service.paper_files.writing())
            library = stack.enter_context(closing(self._app.open_library(create=take)))
            plan = plan_import(library, read)
            reply = _bibliography_json(library, shown, read, plan, is_taken=take)
            if take:
                apply_import(library, plan)
                self._app.finish_ingest()
        return reply

    # Storage

    def storage(self) -> schema.StorageJson:
        return schema.StorageJson(sizes=_sizes(self._app), copies=self._copies())

    def _copies(self) -> list[str]:
        if self._app.place_in_use != "local":
            return []
        return [user_file.day_of(copy) for copy in reversed(user_file.copies(self._user_file()))]

    def _user_file(self) -> Path:
        return user_file.user_file_of(self._app.library_path)

    def backup(self, folder: Path) -> Path:
        """Write everything that people made to a new file in a folder. Raises StoreMissing."""
        from folio.store.backup import write_backup

        with closing(self._app.open_library()) as library:
            return write_backup(library.database, folder)

    def restore(self, upload: BinaryIO) -> schema.Restored:
        """Put a backup in place of what people made. Raises UsageError unless it is a whole backup, StoreBusy."""
        from folio.store.backup import unpack_backup

        with temporary_folder("folio-restore-") as folder:
            unpack_backup(upload, path := folder / user_file.NAME)
            return self._restore(path)

    def restore_copy(self, day: str) -> schema.Restored:
        """Put the copy of a day in place of what people made. Raises as `restore`."""
        copies = user_file.copies(self._user_file()) if self._app.place_in_use == "local" else []
        copy = next((copy for copy in copies if user_file.day_of(copy) == day), None)
        if copy is None:
            raise UsageError(f"There is no copy of {day}.", "Choose another day.")
        with copy.open("rb") as file:
            return self.restore(file)

    def _restore(self, path: Path) -> schema.Restored:
        from folio.store.backup import require_backup, restore_backup

        require_backup(path)
        with self._service.paper_files.writing(), closing(self._app.open_library(create=True)) as library:
            def keep() -> None:
                if self._app.place_in_use == "local":
                    user_file.copy_now(self._user_file())

            counts = restore_backup(library.database, path, keep)
            self._app.finish_ingest()
        self._service.retrievers.renew()
        return schema.Restored(
            conversations=counts["conversations"],
            questions=counts["queries"],
            notes=counts["notes"],
            edits=counts["metadata"],
        )

    # The log

    def log(self, most: int) -> schema.LogJson:
        """The latest questions of the log."""
        logged = self._service.questions.are_logged
        try:
            library = self._app.open_library()
        except StoreMissing:
            return schema.LogJson(questions=[], count=0, logged=logged)
        with closing(library):
            log = self._app.query_log(library)
            entries, count = log.entries(most=most), log.counts().questions
        questions = [
            schema.LoggedQuestion(
                asked=entry.asked,
                question=entry.question,
                answer=entry.answer,
                model=entry.model,
                feedback=entry.feedback,
                sources=len(entry.sources),
            )
            for _, entry in entries
        ]
        return schema.LogJson(questions=questions, count=count, logged=logged)

    def delete_log(self) -> schema.DeletedLog:
        """Delete the log, also from the copies."""
        try:
            library = self._app.open_library()
        except StoreMissing:
            return schema.DeletedLog(deleted=0)
        with closing(library):
            return schema.DeletedLog(deleted=self._app.query_log(library).clear())


def _bibliography_json(
    library: Library, name: str, read: Bibliography, plan: ImportPlan, *, is_taken: bool
) -> schema.BibliographyJson:
    titles = {paper.id: paper.title or paper.file for paper in library.papers()}
    unmatched = [schema.UnmatchedEntry(key=each.key, title=each.title, why="") for each in plan.unmatched]
    unmatched += [schema.UnmatchedEntry(key=each.key, title=each.title, why=why) for each, why in plan.ambiguous]
    matched = [
        schema.MatchedEntry(key=key, paper=paper, title=titles[paper], changes=list(plan.changes[paper]))
        for paper, key in sorted(plan.keys.items(), key=lambda pair: (not plan.changes[pair[0]], pair[1]))
    ]
    problems = [f"line {each.line}: {each.happened}" if each.line else each.happened for each in read.problems]
    return schema.BibliographyJson(
        name=name,
        entries=len(read.entries),
        matched=matched[: schema.MOST_LISTED],
        unmatched=unmatched[: schema.MOST_LISTED],
        problems=problems[: schema.MOST_LISTED],
        count_matched=len(matched),
        count_changed=len(plan.described),
        count_withdrawn=len(plan.withdrawn),
        count_unmatched=len(unmatched),
        is_taken=is_taken,
    )


def _require_folders(changes: Mapping[str, str | None]) -> None:
    """Raise UsageError for a folder that is not there."""
    named = [folder for folder in (changes.get("WATCH") or "").split(os.pathsep) if folder and folder != "zotero"]
    for folder in filter(None, [*named, changes.get("PAPERS_DIR")]):
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            raise UsageError(f"There is no folder {folder}.", "Choose a folder that is there.")


def _models_of(app: App, used: Mapping[str, str]) -> schema.KnownModels:
    """The models that are there. used: role -> the model in use, as health has it."""
    servers: list[schema.ModelPlaceJson] = []
    found = [_builtin(use, used) for use in ("search", "ranking", "answers")]
    wanted = _add_ollama(app, used, servers, found)
    with suppress(FolioError):
        openai = app.models.openai
        if is_local(openai.url):
            version = openai.version() or ""
            servers.append(schema.ModelPlaceJson(kind="openai", url=openai.url, version=version, is_local=True))
            chats = set(openai.chat_models())
            for name in sorted(openai.models()):
                use = "answers" if name in chats else "search"
                found.append(_model(name, "openai", use, None, name in (used["llm"], used["embedder"])))
    for name, folder, use in app.models.cross_encoders():
        role = "reranker" if use == "ranking" else "verifier"
        in_use = name.rpartition("/")[2] in used.get(role, "")
        found.append(_model(name, "files", use, _size_of(folder), in_use))
    return schema.KnownModels(models=found, servers=servers, wanted=wanted)


def _add_ollama(
    app: App, used: Mapping[str, str], servers: list[schema.ModelPlaceJson], found: list[schema.KnownModel]
) -> list[str]:
    """Add Ollama and its models; returns the named models that it does not have."""
    ollama = app.models.ollama
    here = is_local(ollama.url)
    version = ollama.version() or ""
    servers.append(schema.ModelPlaceJson(kind="ollama", url=ollama.url, version=version, is_local=here))
    if not version:
        return []
    try:
        sizes, chats = ollama.sizes(), set(ollama.chat_models())
    except ModelError:
        return []
    for name, size in sorted(sizes.items()):
        if not is_cloud(name):
            use, role = ("answers", "llm") if name in chats else ("search", "embedder")
            found.append(_model(name, "ollama", use, size, name.removesuffix(":latest") in used[role]))
    names = {name.removesuffix(":latest") for name in sizes}
    return [name for name in app.models.named_models if name.removesuffix(":latest") not in names]


def _model(name: str, source: str, use: str, size: int | None, in_use: bool) -> schema.KnownModel:
    return schema.KnownModel.model_validate(
        {"name": name, "source": source, "use": use, "bytes": size or None, "in_use": in_use}
    )


def _builtin(use: str, used: Mapping[str, str]) -> schema.KnownModel:
    role = {"search": "embedder", "ranking": "reranker", "answers": "llm"}[use]
    names = {"search": "all-MiniLM-L6-v2", "ranking": "minilm-reader", "answers": ""}
    folder = Path(__file__).resolve().parents[1] / "models" / names[use]
    size = _size_of(folder) if names[use] else None
    return _model(names[use], "builtin", use, size, "built in" in used.get(role, ""))


def _summary(outcomes: list[discovery.Outcome]) -> str:
    """What came of files, in a sentence."""
    new = sum(outcome.status in ("added", "replaced") for outcome in outcomes)
    failed = sum(outcome.status == "failed" for outcome in outcomes)
    gone = sum(outcome.status == "pruned" for outcome in outcomes)
    parts = [f"{counted(new, 'paper')} added" if new else "Nothing new"]
    parts += [f"{counted(gone, 'paper')} removed"] if gone else []
    parts += [f"{counted(failed, 'file')} could not be read"] if failed else []
    return f"{', '.join(parts)}."


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.path.abspath(os.sep))


def _places() -> list[schema.FolderJson]:
    home = _home()
    named = [home, *(home / name for name in ("Documents", "Downloads", "Papers", "Zotero"))]
    drives: list[str] = getattr(os, "listdrives", list)()  # on Windows
    return [schema.FolderJson(name=each.name or str(each), path=str(each)) for each in named if each.is_dir()] + [
        schema.FolderJson(name=drive, path=drive) for drive in drives
    ]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _count_pdfs(folder: Path) -> tuple[int, bool]:
    """The PDFs in a folder and below, and whether there are more than the limit."""
    walked = discovery.walk(folder, lambda error: None)
    count = 0
    for _, pdfs in islice(walked, _MOST_COUNTED):
        count += len(pdfs)
        if count > _MOST_COUNTED:
            return _MOST_COUNTED, True
    return count, next(walked, None) is not None


def _size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    if path.is_file():
        return path.stat().st_size
    total = 0
    for parent, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _sizes(app: App) -> list[schema.SizeJson]:
    """What takes space on this computer."""
    store, sizes = app.store_folder, dict[str, int]()
    user = user_file.NAME.partition(".")[0]
    for path in store.iterdir() if store.is_dir() else ():
        name = path.name
        what = "indexes"
        if name.startswith(indexes.LIBRARY):
            what = "library"
        elif name.startswith(user_file.NAME):
            what = "user"
        elif name.startswith(f"{user}-") or name.startswith(f"{user}.damaged"):
            what = "copies"
        elif name == "uploads":
            what = "uploads"
        with suppress(OSError):
            sizes[what] = sizes.get(what, 0) + _size_of(path)
    places = {"cache": app.internet.cache_folder, "papers": app.papers_folder}
    sizes |= {what: _size_of(place) for what, place in places.items()}
    order = ("papers", "library", "indexes", "user", "copies", "uploads", "cache")
    return [
        schema.SizeJson.model_validate({"what": what, "bytes": sizes[what], "place": str(places.get(what, store))})
        for what in order
        if sizes.get(what)
    ]
