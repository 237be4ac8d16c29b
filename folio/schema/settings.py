"""The settings of the page as JSON models: what may be changed, models, tasks, folders, storage, the log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from folio.schema.papers import Count, Strict
from folio.schema.web import ErrorBody

TASK = "^task-[0-9a-f]{16}$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$"
LONGEST_PATH = 4096
LONGEST_NAME = 200
MOST_LISTED = 500  # entries of a bibliography, in each list
MOST_QUESTIONS = 1000  # of the log, in a reply

TaskKind = Literal["rebuild", "repair", "pull", "read", "zotero", "sync"]
TaskId = Annotated[str, Field(pattern=TASK)]
Day = Annotated[str, Field(pattern=DAY)]
Origin = Literal["environment", "file", "checkout", "default"]
Changes = Annotated[dict[str, Annotated[str, Field(max_length=LONGEST_PATH)] | None], Field(max_length=50)]


class TaskJson(Strict):
    """Work of the server that takes long."""

    id: TaskId
    kind: TaskKind
    """"rebuild", "repair", "pull" (a model), "read" (the folders), "zotero", "sync" (what has changed in a folder)."""
    about: str
    """What it works on: the name of a model."""
    reason: str
    """Why the index is made again."""
    state: Literal["running", "stopping", "done", "failed", "cancelled"] = "running"
    step: str = ""
    """What is done now: "looking" or "reading"; of a download, in the words of the server."""
    done: Count = 0
    """Files, or bytes of a download."""
    of: Count = 0
    """0: not known yet."""
    result: str = ""
    """What came of it, as a sentence."""
    error: ErrorBody | None = None
    begun: str
    """ISO time in UTC."""


class TasksJson(Strict):
    tasks: list[TaskJson]
    """The latest first. Those that have ended stay until they are dismissed."""


class SettingJson(Strict):
    """A setting that may be changed here."""

    name: str
    value: str
    origin: Origin
    """"environment": it wins, and cannot be changed here; "file": the user's file of settings."""
    choices: list[str]
    """The values that it may have; none if it may have any."""


class SettingsJson(Strict):
    changeable: bool
    """Whether who asks may change settings: only where nobody but this computer reaches the server."""
    file: str
    """The file that settings are kept in; empty if there is none, or who asks may not change it."""
    settings: list[SettingJson]
    """Empty where they may not be changed."""
    rebuild: str
    """Why the index must be made again before it can be asked, as a sentence; empty if it fits."""
    logged: bool
    is_shared: bool
    """Whether the library is in PostgreSQL: a rebuild is then for everybody who uses it."""


class SettingChanges(Strict):
    """New values by name; null for the default."""

    changes: Changes


class ChangedSettings(Strict):
    settings: SettingsJson
    needs_rebuild: str
    """Why the index would not fit: then nothing was changed, and a rebuild with these changes takes them over. Empty:
    they are in use."""


class RebuildRequest(Strict):
    changes: Annotated[Changes, Field(default_factory=dict)]
    """Settings that come into use when the index is complete."""
    drops_missing: bool = False
    """Whether papers whose file is missing leave the index."""


class PullRequest(Strict):
    model: Annotated[str, Field(pattern=MODEL_NAME, max_length=LONGEST_NAME)]


class KnownModel(Strict):
    """A model that is there."""

    name: str
    source: Literal["builtin", "ollama", "openai", "files"]
    """"files": the files of a cross-encoder on this computer."""
    use: Literal["answers", "search", "ranking", "checking"]
    bytes: Count | None
    """Its size on disk; null if its server does not say."""
    in_use: bool


class KnownModels(Strict):
    models: list[KnownModel]
    servers: list[ModelPlaceJson]
    wanted: list[str]
    """Models that Ollama could get, which the settings name and it does not have."""


class ModelPlaceJson(Strict):
    """A model server."""

    kind: Literal["ollama", "openai"]
    url: str
    version: str
    """Empty if it does not answer."""
    is_local: bool


class FolderJson(Strict):
    name: str
    path: str


class FolderListing(Strict):
    """The folders in a folder of this computer."""

    path: str
    parent: str
    """Empty for the topmost one."""
    folders: list[FolderJson]
    is_cut: bool
    """Whether there are more than are listed."""
    pdfs: Count
    """PDFs in it and below; counted up to a limit."""
    is_more: bool
    """Whether there are more than were counted."""
    places: list[FolderJson]
    """Where people keep files: their home, documents, downloads."""


class ZoteroJson(Strict):
    """The Zotero library of this computer."""

    folder: str
    """Empty if none was found."""
    pdfs: Count
    is_followed: bool
    """Whether the index is kept in step with it."""
    problem: ErrorBody | None


class MatchedEntry(Strict):
    """An entry of a bibliography and the paper that it describes."""

    key: str
    paper: str
    title: str
    """Of the paper, as it is now."""
    changes: list[str]
    """What the paper would get from it: "title", "year"."""


class UnmatchedEntry(Strict):
    key: str
    title: str
    why: str
    """Empty: no paper matches."""


class BibliographyJson(Strict):
    """What an import of a bibliography changes, or has changed."""

    name: str
    entries: Count
    matched: list[MatchedEntry]
    unmatched: list[UnmatchedEntry]
    problems: list[str]
    """What could not be read."""
    count_matched: Count
    count_changed: Count
    """Papers about which it says something new."""
    count_withdrawn: Count
    """Papers that an earlier import of a file of this name described, and this one does not."""
    count_unmatched: Count
    is_taken: bool


class SizeJson(Strict):
    what: Literal["library", "indexes", "user", "copies", "uploads", "cache", "papers"]
    bytes: Count
    place: str


class StorageJson(Strict):
    sizes: list[SizeJson]
    copies: list[Day]
    """The days of which there are copies of what people made, latest first."""


class Restored(Strict):
    """The numbers of what was restored."""

    conversations: Count
    questions: Count
    notes: Count
    edits: Count


class LoggedQuestion(Strict):
    asked: str
    """ISO time in UTC."""
    question: str
    answer: str
    model: str
    feedback: Literal["", "good", "bad"]
    sources: Count


class LogJson(Strict):
    questions: list[LoggedQuestion]
    """The latest first."""
    count: Count
    logged: bool
    """Whether questions are logged now."""


class DeletedLog(Strict):
    deleted: Count
