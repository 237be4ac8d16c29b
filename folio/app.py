"""The composition root: makes wired objects from the settings. model_choice.py chooses the models."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from folio.answer_types import Answer, Style
from folio.errors import (
    FIRST_INGEST,
    EmbedderAway,
    ModelServerError,
    PaperError,
    StoreBusy,
    StoreError,
    StoreMismatch,
    StoreMissing,
    UsageError,
    require_packages,
)
from folio.model_choice import SERVERS, ModelChoice, prefix_of
from folio.models.model_server import is_local
from folio.models.ollama import OllamaServer, server_url
from folio.papers.label import CitationStyle
from folio.papers.model import Hit, Notice, Paper, Progress, SourceFile
from folio.papers.versions import version_keys
from folio.protocols import Embedder
from folio.search.builtin_reranker import ReaderReranker
from folio.search.filters import PaperFilter, Selection
from folio.search.retriever import Retriever
from folio.services.addresses import InternetAccess
from folio.shown_text import name_line
from folio.store import indexes
from folio.store.database import closed_on_error
from folio.store.fingerprint import Reading, fingerprint, reading_fingerprint
from folio.store.indexes import SearchIndexes
from folio.store.library import Library
from folio.store.store import LocalStore, Repaired, Store
from folio.system.files import make_private, write_json
from folio.system.network import PORT, go_offline

if TYPE_CHECKING:
    import config
    from config import Origin, Settings
    from folio.answer.chat import Chat
    from folio.drafts.claims import ClaimChecker
    from folio.ingest import pipeline
    from folio.ingest.discovery import IngestProgress, Outcome
    from folio.ingest.pipeline import PaperReader
    from folio.ingest.removed import Emptied
    from folio.ingest.scanned_pages import ScannedPages
    from folio.ingest.watch import Changes
    from folio.models.model_server import ModelServer
    from folio.papers.work import Work
    from folio.review.review import Reviewer
    from folio.search.langchain import FolioRetriever
    from folio.search.works import RankedWork
    from folio.shared.move import Moved
    from folio.store.conversations import Conversations
    from folio.store.instructions import Instruction
    from folio.store.notes import Area
    from folio.store.query_log import QueryLog
    from folio.system.workers import GuardOptions
    from folio.table.finder import CellFinder
    from folio.zotero.annotations import AnnotationsTaken, Places
    from folio.zotero.library import ZoteroLibrary
    from folio.zotero.sync import Described
else:
    try:  # An installed Folio has config.py under this name: a top-level `config` there may be another program's.
        import folio._config as config
    except ModuleNotFoundError:
        import config

# Where a library may be kept, as STORE names it
Place = Literal["local", "postgres"]
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
EVERY_PAPER = PaperFilter()
# Ollama's time limit in seconds when only checking which models are ready
_GLANCE_S = 2.0
# Seconds that an edit of a title waits for another edit to finish
EDIT_WAIT_S = 2.0


@dataclass(frozen=True)
class Watched:
    """What the library is kept in step with."""

    folders: tuple[Path, ...]
    zotero: bool  # the library that Zotero uses
    poll_s: float  # seconds between looks; 0: notifications of the system, where it has them


@dataclass(frozen=True)
class App:
    """Everything that a command needs, built from the settings on first use."""

    settings: Settings
    notice: Notice
    # Seconds to wait for the server of a shared library while it is away; None for the default
    patience_s: float | None = field(default=None, kw_only=True)

    # The settings as values that the other packages take

    @property
    def papers_folder(self) -> Path:
        return self.settings.PAPERS_DIR

    @property
    def store_folder(self) -> Path:
        return self.settings.VECTORSTORE_DIR

    @property
    def place_in_use(self) -> Place:
        """The place of the library that the commands use."""
        return self.settings.STORE

    @property
    def fetched_pdfs(self) -> Path:
        """The folder for PDFs from a shared library that this computer does not have."""
        return self.store_folder / "pdfs"

    @property
    def record_file(self) -> Path:
        """The list of the store's contents for people: ingested.json."""
        return self.settings.INGESTED_JSON

    @property
    def watched(self) -> Watched:
        """What the server keeps the library in step with."""
        names = [name for name in self.settings.WATCH.split(os.pathsep) if name.strip()]
        folders = tuple(Path(os.path.expanduser(name)) for name in names if name != "zotero")
        return Watched(folders, "zotero" in names, self.settings.WATCH_POLL_S)

    @property
    def logs_questions(self) -> bool:
        """Whether questions are written to the log, and conversations kept."""
        return self.settings.QUERY_LOG

    @property
    def server_token(self) -> str | None:
        """The token that clients of the server must send."""
        return self.settings.FOLIO_TOKEN.get_secret_value() or None

    @property
    def public_url(self) -> str:
        """The address of a load balancer in front of the server; "" without one."""
        return self.settings.PUBLIC_URL

    @property
    def page_url(self) -> str:
        """The address at which people open the page, as far as it is known without a running server."""
        return f"{self.public_url.rstrip('/')}/" if self.public_url else f"http://127.0.0.1:{PORT}/"

    @property
    def internet(self) -> InternetAccess:
        """How to call services on the internet: `folio fetch` does, and `folio ask` and `folio serve` with --online."""
        settings = self.settings
        return InternetAccess(
            settings.CONTACT_EMAIL,
            settings.OPENALEX_API_KEY.get_secret_value(),
            settings.S2_API_KEY.get_secret_value(),
            settings.SOURCES_STAND_IN,
            settings.CACHE_DIR,
            settings.MAX_FILE_MB,
            settings.ONLINE,
        )

    @property
    def cache_folder(self) -> Path:
        """Where what can be worked out again is kept; it may not exist yet."""
        return self.settings.CACHE_DIR

    @property
    def top_k(self) -> int:
        """Default number of passages to find and answer from."""
        return self.settings.TOP_K

    @property
    def shows_understood(self) -> bool:
        """Whether the answer to a follow-up shows the rewritten question."""
        return self.settings.SHOW_UNDERSTOOD

    @property
    def numbers_citations(self) -> bool:
        """Whether citations are numbers in the list of sources."""
        return self.settings.CITATION_STYLE == "numbered"

    @property
    def citation_style(self) -> CitationStyle:
        """How papers are named, also where citations are numbers."""
        style = self.settings.CITATION_STYLE
        return "author-year" if style == "numbered" else style

    @property
    def lexical_engine(self) -> indexes.Engine:
        """The BM25 engine."""
        return self.settings.LEXICAL

    @property
    def embed_batch(self) -> int:
        """Passages in one call of the embedder."""
        return self.settings.EMBED_BATCH

    @property
    def pdf_viewer(self) -> str:
        """The command that opens a cited page, or "auto"."""
        return self.settings.PDF_VIEWER

    def settings_used(self) -> dict[str, str]:
        """Every setting by name, as text, to record with an evaluation."""
        return {name: str(value) for name, value in self.settings.model_dump().items()}

    @property
    def reading(self) -> Reading:
        settings = self.settings
        ocr = settings.OCR == "auto"
        if settings.INDEX == "dual":
            return Reading(settings.COARSE_SIZE, 0, settings.PARSER, ocr, settings.FINE_SIZE)
        return Reading(settings.CHUNK_SIZE, settings.CHUNK_OVERLAP, settings.PARSER, ocr)

    # Changing settings while a server runs

    def setting(self, name: str) -> str:
        """The value of a setting, as it stands in a file of settings; "" for a secret."""
        value = self.settings.model_dump().get(name, "")
        return str(value).lower() if isinstance(value, bool) else str(value)

    def setting_origins(self) -> Mapping[str, Origin]:
        """Where each setting was set."""
        return config.origins_of_settings()

    @property
    def settings_file(self) -> Path | None:
        """The user's file of settings; None without a home folder."""
        return config.personal_file()

    def with_changes(self, changes: Mapping[str, str | None]) -> App:
        """The same app with other settings; None for a default. Raises UsageError for a value that cannot be."""
        try:
            return replace(self, settings=config.changed_settings(self.settings, changes))
        except config.SettingsError as error:
            raise UsageError(f"A setting is invalid: {error}.", "Choose another value.") from error

    def keep_settings(self, changes: Mapping[str, str | None]) -> None:
        """Write settings to the user's file; None takes one out. Raises UsageError, OSError, DiskFull."""
        from folio.system.env_file import change_file

        file = self.settings_file
        if file is None:
            raise UsageError("There is no home folder for a file of settings.", "Set them in the environment.")
        change_file(file, changes)

    def take_settings_of(self, other: App) -> None:
        """Use the settings of another app from now on, for all that hold this one. What runs keeps its models."""
        # All of them before any is replaced: a thread sees the old ones or the new ones of each, and makes none itself.
        vars(self).update(settings=other.settings, models=other.models, backend=other.backend)

    def why_rebuild(self) -> str:
        """Why the index does not fit these settings, as a sentence; "" if it does, or if there is none.

        Raises ModelError if the embedder that the settings name cannot be used.
        """
        try:
            library = self.open_library()
        except StoreMissing:
            return ""
        except StoreMismatch as error:
            return error.happened
        with closing(library):
            if not library.chunk_count():
                return ""
            try:
                self.require_same_settings(library)
                self.at_a_glance().embedder(library)
            except StoreMismatch as error:
                return error.happened
        return ""

    def files_to_rebuild(self, progress: IngestProgress, *, drops_missing: bool) -> list[SourceFile]:
        """The files of the index that are there, and the PDFs in the folder of papers.

        Raises UsageError if a paper would be lost, unless it may be dropped.
        """
        from folio.ingest import discovery

        known = self.known_files(thorough=True)
        here = {path: file.name for path, file in known.items() if path.exists()}
        folder = self.papers_folder
        files, _ = discovery.hash_files(here | discovery.find_pdfs([folder] if folder.is_dir() else []), progress)
        present = {file.sha256 for file in files}
        lost = [file for path, file in known.items() if path not in here and file.sha256 not in present]
        if lost and not drops_missing:
            raise UsageError(
                f"Indexed files that are missing: {len(lost)}, including {name_line(lost[0].name)}.",
                "Put them back, or rebuild the index without them.",
            )
        return files

    def ollama_servers(self) -> tuple[str, ...]:
        """The servers that embed for workers on other computers. Raises UsageError as server_url does."""
        settings = self.settings
        setting = "OLLAMA_HOSTS" if settings.OLLAMA_HOSTS else "OLLAMA_HOST"
        hosts = [host for host in settings.OLLAMA_HOSTS.split(",") if host.strip()] or [settings.OLLAMA_HOST]
        allowed = settings.ALLOW_REMOTE_OLLAMA
        return tuple(dict.fromkeys(server_url(host, allow_remote=allowed, setting=setting) for host in hosts))

    def limits(self, jobs: int | None) -> pipeline.Limits:
        """The limits for reading PDFs. jobs: worker processes; None means one per core, at most 8."""
        from folio.ingest import pipeline

        wanted = jobs or min(8, os.cpu_count() or 1)
        settings = self.settings
        return pipeline.Limits(wanted, settings.PARSE_TIMEOUT_S, settings.PARSE_MEMORY_MB, settings.MAX_FILE_MB)

    # Models

    @cached_property
    def models(self) -> ModelChoice:
        return ModelChoice(self.settings, self.notice)

    def at_a_glance(self) -> App:
        """The same app with a short limit of time for servers and without notices, to check which models are ready."""
        settings = self.settings.model_copy(update={"OLLAMA_TIMEOUT_S": min(_GLANCE_S, self.settings.OLLAMA_TIMEOUT_S)})
        return replace(self, settings=settings, notice=lambda text: None)

    def with_model(self, name: str) -> App:
        """The same app, which answers only with this model on the server, or with "builtin". Raises UsageError."""
        if not name.strip():
            remedy = "Name one of the server, as `ollama list` shows them, or builtin."
            raise UsageError("--model names no model.", remedy)
        builtin = {"LLM": "builtin"}
        server = "openai" if self.settings.LLM == "openai" else "ollama"
        chosen = builtin if name == "builtin" else {"LLM": server, "LLM_MODEL": name.strip()}
        return replace(self, settings=self.settings.model_copy(update=chosen))

    def over(self, papers: Path, store: Path) -> App:
        """The same app over another folder of papers, with another store in a folder."""
        chosen: dict[str, object] = {"PAPERS_DIR": papers, "STORE": "local", "VECTORSTORE_DIR": store}
        chosen["INGESTED_JSON"] = store / "ingested.json"
        return replace(self, settings=self.settings.model_copy(update=chosen))

    def embedder(self, library: Library) -> Embedder:
        """The embedder that a library was made with; for a new library, the embedder that the settings choose.

        Raises StoreMismatch when the settings choose another one, ModelError when the embedder cannot be used.
        """
        made_with = library.fingerprint()
        embedder = self.models.embedder(made_with.get("embedder", ""))
        if made_with:
            indexes.require_fingerprint(library, fingerprint(embedder, self.reading))
        return embedder

    def embedder_for_questions(self, library: Library) -> Embedder:
        """As `embedder`; but with EMBEDDER=auto, and in a search by words alone, the server may be away for now.

        Its calls then raise EmbedderAway, and no error is raised here.
        """
        made_with, by_words = library.fingerprint(), self.settings.RETRIEVAL_MODE == "lexical"
        kind = made_with.get("embedder", "")
        if kind not in SERVERS or (kind == self.settings.EMBEDDER and not by_words):
            return self.embedder(library)
        from folio.models.server_embedder import ReconnectingEmbedder

        def connect() -> Embedder:
            embedder = self.models.embedder(kind)
            indexes.require_same(made_with, fingerprint(embedder, self.reading))
            return embedder

        embedder = ReconnectingEmbedder(
            made_with.get("model", self.settings.EMBED_MODEL), self.models.embed_server(kind).label, connect
        )
        if not by_words:
            with suppress(EmbedderAway), embedder.connected():
                pass  # only so that another model in its place is refused before a question
        return embedder

    def new_embedder(self) -> Embedder:
        """The embedder for a new store."""
        return self.models.embedder("")

    def require_same_settings(self, library: Library) -> None:
        """Raise StoreMismatch if the store was made with other settings. Checks only what needs no model."""
        made_with = library.fingerprint()
        expected = reading_fingerprint(self.reading)
        if self.settings.EMBEDDER != "auto":
            expected["embedder"] = self.settings.EMBEDDER
        indexes.require_fingerprint(library, {**made_with, **expected})

    def papers_and_marks(self) -> tuple[list[Paper], dict[str, str]]:
        """The papers in the index, and the marks of their works; empty before the first ingest.

        Raises StoreMismatch, so that nothing is downloaded for a store that was made with other settings.
        """
        from folio.store import works

        try:
            library = self.open_library()
        except StoreMissing:
            return [], {}
        with closing(library):
            self.require_same_settings(library)
            papers = library.papers()
            return papers, works.marks_of_papers(library.database, [paper.id for paper in papers])

    def _require_same_embedder(self, library: Library) -> None:
        """Raise StoreMismatch if the store was made with another embedder; ModelError if the embedder cannot be used.

        Raises nothing if the server does not answer soon: if no file is new, nothing is embedded. Updates the
        fingerprint of a store that an earlier version made. The caller holds the writer lock.
        """
        made_with = library.fingerprint()
        if not made_with:
            return
        with suppress(ModelServerError):
            now = {**made_with, **fingerprint(self.at_a_glance().embedder(library), self.reading)}
            if now != made_with:
                library.set_fingerprint(now)

    # Ingesting

    def ingest(
        self,
        files: Sequence[SourceFile],
        progress: IngestProgress,
        *,
        jobs: int | None = None,
        retry: frozenset[str],
        on_ray: bool = False,
    ) -> Generator[Outcome, None, None]:
        """Bring the store up to date with these files. The caller holds the writer lock. on_ray: see _ray_reader.

        Raises StoreMismatch if the store was made with other settings, also when no file is new: questions would fail.
        """
        from folio.ingest import pipeline

        with closing(self.backend.open(create=True)) as library:
            self.require_same_settings(library)
            self._require_same_embedder(library)
            library.give_keys()
            limits, batch, get_embedder = self.limits(jobs), self.embed_batch, lambda: self.embedder(library)
            read = self._ray_reader(get_embedder, jobs) if on_ray else None
            yield from pipeline.ingest(
                library,
                self.backend.claims(library),
                files,
                get_embedder,
                self.reading,
                limits,
                progress,
                batch=batch,
                retry=retry,
                read=read,
                scans=self._scans,
            )

    def rebuild(
        self,
        files: Sequence[SourceFile],
        progress: IngestProgress,
        *,
        jobs: int | None = None,
        on_ray: bool = False,
    ) -> Generator[Outcome, None, None]:
        """Rebuild the store from these files. See rebuild.rebuild and _ray_reader."""
        from folio.ingest.rebuild import RebuildPlan, rebuild

        # A store made with a server keeps its embedder even if the server is down.
        made_with = self.made_with().get("embedder", "")
        embedder = self.models.embedder(made_with if made_with in SERVERS else "")
        read = self._ray_reader(lambda: embedder, jobs) if on_ray else None
        plan = RebuildPlan(files, embedder, self.reading, self.limits(jobs), progress, self.embed_batch, read)
        yield from rebuild(self.backend, plan)

    def _ray_reader(self, get_embedder: Callable[[], Embedder], jobs: int | None) -> PaperReader:
        """Reads and embeds papers on Ray. jobs: its workers; None for one per processor. Raises PackagesMissing."""
        from folio.ingest.scanned_pages import FOLDER
        from folio.shared.ray import Job, RayReader

        def job() -> Job:
            embedder = get_embedder()
            made = self.worker_embedders(embedder)
            scans = None if address else self.store_folder / FOLDER
            return Job(self.reading, self.limits(1), embedder.identity(), made, self.embed_batch, scans)

        address = self.settings.RAY_ADDRESS.strip()
        if address:
            self.notice(f"Papers are sent to the computers of the cluster at {address}, which read them.")
        return RayReader(address, jobs, job)

    def worker_embedders(self, embedder: Embedder) -> tuple[Callable[[], Embedder], ...]:
        """Functions that make this embedder in a worker, one for each server. Raises UsageError."""
        from folio.models.minilm import BuiltinEmbedder
        from folio.models.server_embedder import RETRIES, ServerEmbedder

        kind = embedder.identity()["embedder"]
        if kind not in SERVERS:
            return (partial(BuiltinEmbedder, threads=1),)  # each processor has a worker of its own
        settings, servers = self.settings, self._embed_servers(kind)
        return tuple(
            partial(
                ServerEmbedder,
                server,
                self.models.embed_model(kind),
                settings.EMBED_BATCH,
                RETRIES if len(servers) == 1 else 1,  # with several servers, soon try another
                query_prefix=prefix_of(settings.EMBED_QUERY_PREFIX),
                passage_prefix=prefix_of(settings.EMBED_PASSAGE_PREFIX),
            )
            for server in servers
        )

    def _embed_servers(self, kind: str) -> list[ModelServer]:
        """The servers that embed for workers. kind: as for `ModelChoice.embed_server`. Raises UsageError."""
        if kind == "openai":
            return [self.models.openai_embedder]
        for url in (urls := self.ollama_servers()):
            if url != self.models.ollama.url and not is_local(url):
                self.notice(f"Passages go to {url}, another computer.")
        timeout_s, keep_alive = self.settings.OLLAMA_TIMEOUT_S, self.models.keep_alive
        return [OllamaServer(url, timeout_s, keep_alive=keep_alive) for url in urls]

    def versions_among(self, papers: Iterable[str]) -> list[Paper]:
        """The older versions and duplicates of these papers in the library, or among them. papers: ids."""
        with closing(self.open_library()) as library:
            every = library.papers()
        ids = set(papers)
        keys = {key for paper in every if paper.id in ids for key in version_keys(paper.metadata)}
        versions = [
            paper
            for paper in every
            if ids & {paper.id, paper.copy_of} or keys.intersection(version_keys(paper.metadata))
        ]
        return [paper for paper in versions if paper.flag and paper.flag.is_of_library]

    def bring_in(self, changes: Changes, progress: IngestProgress, *, jobs: int | None) -> Iterator[Outcome]:
        """Bring the store in step with folders that have changed; as `ingest`, and updates the indexes at the end. What
        was moved is no longer gone when what is gone is removed. The caller holds the writer lock."""
        from folio.ingest import discovery, pipeline

        files, unreadable = discovery.hash_files(changes.files, progress)
        yield from unreadable
        with self.finishing():
            if files:
                with closing(self.ingest(files, progress, jobs=jobs, retry=frozenset())) as work:
                    yield from work
            if changes.removed and self.has_library():
                with closing(self.open_library()) as library:
                    yield from pipeline.remove(library, changes.removed, self._scans)

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Update the indexes to the library at the end, also after an error. The caller holds the writer lock."""
        try:
            yield
        except BaseException:
            with suppress(StoreError):  # the first error is the one to report; and whoever stops it does not wait
                replace(self, patience_s=0).finish_ingest()
            raise
        self.finish_ingest()

    def describe_from_zotero(self, zotero: ZoteroLibrary, files: Sequence[SourceFile]) -> Described:
        """Store Zotero's metadata of these files. Raises StoreMismatch before anything changes. The caller holds the
        writer lock."""
        from folio.zotero import sync

        with closing(self.open_library(create=True)) as library:
            self.require_same_settings(library)
            return sync.describe(library, zotero, files)

    def remove_what_left_zotero(self, zotero: ZoteroLibrary) -> list[Outcome]:
        """Remove the papers that are no longer in Zotero. The caller holds the writer lock."""
        from folio.ingest.discovery import Outcome
        from folio.zotero import sync

        with closing(self.open_library()) as library:
            removed = sync.remove(library, zotero, self.papers_folder)
        return [Outcome(file, "pruned", notes=(reason,)) for file, reason in removed]

    def take_annotations(self, zotero: ZoteroLibrary) -> AnnotationsTaken:
        """Keep notes in step with the annotations of a Zotero library, after its papers. The caller holds the writer
        lock."""
        from folio.zotero import sync

        with closing(self.open_library(create=True)) as library:
            return sync.take_annotations(library, zotero, self._find_areas)

    def _find_areas(self, files: Sequence[Places]) -> list[Sequence[Area | None]]:
        """See zotero.annotations.FindAreas. A file that cannot be drawn has none."""
        from folio.pdf.annotations import PdfPlaces, areas_on_pages
        from folio.system import workers

        items = [PdfPlaces(path, places) for path, places in files]
        none: dict[PdfPlaces, Sequence[Area | None]] = {item: [None] * len(item.places) for item in items}
        with closing(workers.run_guarded(areas_on_pages, items, **self._guard(None))) as finished:
            found = {item: areas for item, areas in finished if not isinstance(areas, PaperError)}
        return [{**none, **found}[item] for item in items]

    def in_worker(self, function: Callable[[ItemT], ResultT], item: ItemT) -> ResultT | PaperError:
        """function(item) for one PDF, in a process with the limits of reading one; or why it failed."""
        from folio.system import workers

        with closing(workers.run_guarded(function, [item], **self._guard(1))) as finished:
            return next(finished).result

    def _guard(self, jobs: int | None) -> GuardOptions:
        """The limits of reading a PDF, for workers.run_guarded."""
        limits = self.limits(jobs)
        return {
            "jobs": limits.jobs,
            "timeout_s": limits.patience_s,
            "cpu_s": limits.timeout_s,
            "memory_mb": limits.memory_mb,
        }

    def prune(self) -> list[Outcome]:
        """Drop the papers whose file is gone. The caller holds the writer lock."""
        from folio.ingest import pipeline

        with closing(self.open_library(create=True)) as library:
            return list(pipeline.prune(library, self._scans))

    @property
    def _scans(self) -> ScannedPages:
        """Pages that OCR has read, of papers that are not in the library yet."""
        from folio.ingest.scanned_pages import FOLDER, ScannedPages

        return ScannedPages(self.store_folder / FOLDER)

    def known_files(self, *, thorough: bool = False) -> dict[Path, SourceFile]:
        """Absolute path -> the file, for all files in the index. thorough: see replacing.known_files."""
        return self.backend.known_files(self.settings.INGESTED_JSON, thorough=thorough)

    def made_with(self) -> dict[str, str]:
        """The fingerprint of the store; empty without a readable store."""
        return self.backend.made_with()

    def finish_ingest(self, *, indexes_too: bool = True) -> None:
        """Update the indexes, ingested.json and what papers are called in citations to the state of the library.

        Also deletes the files of papers whose removal can no longer be undone. The caller holds the writer lock.
        """
        from folio.ingest import pipeline, removed

        if not self.backend.exists():
            return

        def update() -> None:
            if indexes_too and library.fingerprint():
                self.backend.update_indexes(library)
            with library.reading():
                papers = library.papers()
                record = pipeline.record(library, papers)
            for lost in library.keep_names(papers):
                self.notice(
                    f"{name_line(lost.file)}: its citation key is {lost.new} now, because {lost.key} was chosen for"
                    " another paper."
                )
            write_json(self.settings.INGESTED_JSON, record)
            removed.delete_expired(library.database, self.papers_folder)

        with closing(self.backend.open(create=True)) as library:
            library.database.repeat(update)

    def delete_expired(self) -> None:
        """Delete the files of papers whose removal can no longer be undone. The caller holds the writer lock."""
        from folio.ingest import removed

        with closing(self.open_library()) as library:
            removed.delete_expired(library.database, self.papers_folder)

    def empty_removed(self) -> Emptied:
        """Delete the files of all removed papers at once. The caller holds the writer lock."""
        from folio.ingest import removed

        with closing(self.open_library()) as library:
            return removed.empty(library.database, self.papers_folder)

    def finish_edit(self, *, is_renamed: bool) -> None:
        """Like finish_ingest, after an edit; the indexes hold only titles. A process that is writing does it itself."""
        wait_s = EDIT_WAIT_S if is_renamed else 0  # another edit at the same time would leave the indexes outdated
        with suppress(StoreBusy), indexes.writing(self.store_folder, wait_s):
            self.finish_ingest(indexes_too=is_renamed)

    # The store

    @cached_property
    def backend(self) -> Store:
        """Where the library is kept."""
        return self.store_at(self.settings.STORE)

    def store_at(self, place: Place) -> Store:
        """One of the places where a library may be kept. PostgreSQL's client is imported only where it is asked for."""
        where = (self.store_folder, self.settings.LEXICAL, self.citation_style, self.notice)
        if place == "local":
            return LocalStore(*where)
        require_packages("postgres", "STORE=postgres", "psycopg")
        from folio.shared.store import PostgresStore

        if not self.settings.DATABASE_URL.get_secret_value():
            raise UsageError("DATABASE_URL is not set.", "Set it to the address of the database: docs/scale.md.")
        return PostgresStore(*where, self.settings.DATABASE_URL, self.settings.SEARCH, self.patience_s)

    def move(self, to: Place, progress: Progress, *, replaces: bool) -> Moved:
        """Move the library here from the other place; see move.move. The caller holds the writer lock."""
        from folio.shared.move import move

        source, target = self.store_at("postgres" if to == "local" else "local"), self.store_at(to)
        return move(source, target, progress, replaces=replaces)

    @property
    def library_path(self) -> Path:
        """The file with the library of STORE=local."""
        return self.store_folder / indexes.LIBRARY

    def has_library(self) -> bool:
        """Whether anything was ever ingested."""
        return self.backend.exists()

    def open_library(self, *, create: bool = False) -> Library:
        """The library of the store. create: see Store.open. Raises StoreMissing before the first ingest."""
        return self.backend.open(create=create)

    def query_log(self, library: Library) -> QueryLog:
        """The log of questions of the library."""
        return self.backend.query_log(library)

    def conversations(self) -> Conversations:
        """The conversations of the web app; in memory, until the program ends, if questions are not logged."""
        if self.logs_questions:
            return self.backend.conversations()
        from folio.store.conversations import Conversations

        return Conversations(None)

    def verify(self) -> list[str]:
        """The problems of the store, one sentence each."""
        return self.backend.verify()

    def repair(self) -> Repaired:
        """Restore what people made as far as it can be, and rebuild both indexes from the library."""
        return self.backend.repair()

    def open_indexes(self, library: Library) -> SearchIndexes:
        return self.backend.open_indexes(library)

    def check_indexes_in_background(self) -> None:
        """Check the whole index files in threads, for programs that run long enough."""
        self.backend.check_in_background()

    def retriever(self, library: Library, *, measured: bool = False) -> Retriever:
        """A retriever over a library. Raises StoreMissing if it has no paper, StoreMismatch, ModelError.

        measured: raise ModelError where other searches would go on by words alone.
        """
        self.require_paper(library)
        self.require_same_settings(library)
        embedder = self.embedder(library) if measured else self.embedder_for_questions(library)
        return self.retriever_over(library, embedder, lambda: self.open_indexes(library))

    def require_paper(self, library: Library) -> None:
        """Raise StoreMissing if the library has no paper, StoreMismatch if an earlier Folio had read them."""
        indexes.require_format(library)
        if not library.chunk_count():
            raise StoreMissing(
                f"The index at {self.backend.place} has no papers yet.",
                f"{FIRST_INGEST}, which also says why a file could not be read.",
            )

    def retriever_over(
        self, library: Library, embedder: Embedder, open_indexes: Callable[[], SearchIndexes]
    ) -> Retriever:
        """A retriever with the current settings, over a library made with this embedder."""
        reranker = self.models.reranker()
        if embedder is self.models.meaning or isinstance(reranker, ReaderReranker):
            self.models.meaning.load_in_background()  # while the indexes open and BM25 searches
        if isinstance(reranker, ReaderReranker):
            self.models.reader.load_in_background()
        is_word, writer = self.models.meaning.is_word, self.models.query_writer
        return Retriever(library, open_indexes, embedder, reranker, self.models.fusion, is_word, writer)

    # Answering

    def chat(
        self,
        library: Library,
        *,
        top_k: int,
        wanted: PaperFilter = EVERY_PAPER,
        style: Style = "plain",
        instruction: Instruction | None = None,
    ) -> Chat:
        """A conversation with the papers. wanted: search only these. instruction: for the wording.

        Raises UsageError if no paper or section fits.
        """
        from folio.answer.chat import warm_up

        warm_up()
        retriever = self.retriever(library)
        chosen = retriever.select(wanted)
        chat = self.chat_over(retriever, top_k=top_k, chosen=chosen, style=style, instruction=instruction)
        self.models.announce()
        return chat

    def chat_over(
        self,
        retriever: Retriever,
        *,
        top_k: int | None,
        chosen: Selection,
        style: Style = "plain",
        model: str | None = None,
        check_cancelled: Callable[[], None] = lambda: None,
        rerank: bool = True,
        turns: Sequence[Answer] = (),
        instruction: Instruction | None = None,
    ) -> Chat:
        """A conversation over a retriever. top_k: None for the setting. model, check_cancelled: see
        ModelChoice.answerer, with the same errors. turns: of the conversation so far. instruction: for the wording."""
        from folio.answer.chat import Chat

        wording = instruction.text if instruction else ""
        return Chat(
            retriever,
            self.models.answerer(retriever, model=model, check_cancelled=check_cancelled, instruction=wording),
            top_k=top_k or self.top_k,
            papers=chosen.papers,
            sections=chosen.sections,
            scope=chosen.scope,
            style=style,
            rerank=rerank,
            turns=turns,
            instruction=instruction,
        )

    # Papers that are not here

    def searches_for(
        self, question: str, missing: Sequence[str], retriever: Retriever | None = None
    ) -> tuple[str, ...]:
        """Searches for papers that may answer a question, in its own terms. Nothing is sent.

        missing: see Answer.missing; () for the whole question. retriever: over the library, if there is one already.
        """
        from folio.question.question import Question
        from folio.question.searches import propose

        asked = " ".join((question, *missing))
        weights = retriever.term_weights(Question(asked)) if retriever else self._weights(asked)
        return propose(question, missing, weights)

    def rank_works(self, question: str, works: Sequence[Work]) -> list[RankedWork]:
        """Works that services found for a question, best first, by title and abstract. Raises ModelError."""
        from folio.question.question import Question
        from folio.search.works import rank_works

        weights = self._weights(question)
        return rank_works(Question(question), works, self.models.reranker(), self.models.meaning, weights)

    def _weights(self, question: str) -> dict[str, float]:
        """The weight of each token of a question in the library; {} before the first ingest."""
        from folio.question.question import Question

        try:
            library = self.open_library()
        except StoreMissing:
            return {}
        with closing(library):
            return self.retriever(library).term_weights(Question(question)) if library.chunk_count() else {}

    def claim_checker(
        self,
        library: Library,
        retriever: Retriever | None = None,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> ClaimChecker:
        """What checks sentences against the papers of a library. retriever: over it, if there is one already.

        check_cancelled: see ModelChoice.verifier. Raises StoreMissing if it has no paper, ModelError.
        """
        from folio.drafts.claims import ClaimChecker

        verifier = self.models.verifier(check_cancelled=check_cancelled)
        return ClaimChecker(library, retriever or self.retriever(library), verifier)

    # Tables and reviews

    def cell_finder(
        self, library: Library, retriever: Retriever | None = None, *, model: str | None = None
    ) -> CellFinder:
        """What finds the cells of tables. retriever: over the library, if there is one already.

        model: see ModelChoice.answerer. Raises StoreMissing if the library has no paper, StoreMismatch, ModelError.
        """
        from folio.answer.generative import GenerativeAnswerer
        from folio.table.finder import CellFinder
        from folio.table.with_model import ModelCells

        retriever = retriever or self.retriever(library)
        finder = CellFinder(retriever, self.models.extractive(retriever), self.models.meaning)
        # Numbered sentences: the model chooses some, and what it quotes is cut out by the program.
        answerer = self.models.answerer(
            retriever, model=model, check_cancelled=finder.check_cancelled, answer_format="statements"
        )
        if isinstance(answerer, GenerativeAnswerer):
            finder.by_model = ModelCells(answerer)
        return finder

    def reviewer(
        self,
        library: Library,
        finder: CellFinder | None = None,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> Reviewer:
        """What makes reviews of papers of a library. finder: answers the questions of a review, if it has any.

        check_cancelled: called while a model writes. Raises ModelError for a model that was chosen and is not there.
        """
        from folio.review.review import Reviewer

        def read(paper: Paper) -> str:
            return library.text(paper.id, 0, paper.length)

        return Reviewer(read, self.models.meaning, finder, self.models.heading_writer(check_cancelled))

    # For LangChain programs

    def langchain_retriever(self, top_k: int | None = None) -> FolioRetriever:
        """Folio's search as a LangChain retriever. The library stays open as long as the retriever exists."""
        from folio.search.langchain import FolioRetriever

        library = self.open_library()
        with closed_on_error(library):
            found_by = self.retriever(library)

            def search(question: str) -> Sequence[Hit]:
                result = found_by.search(question, top_k or self.top_k)
                if result.notice:
                    self.notice(result.notice)
                return result.hits

            retriever = FolioRetriever(search=search)
        weakref.finalize(retriever, library.close)
        return retriever

    def langchain_vector_store(self) -> Any:
        """langchain_community's FAISS store over the same vectors. The library stays open while the store exists."""
        from folio.search.langchain import vector_store

        library = self.open_library()
        with closed_on_error(library):
            store = vector_store(library, self.embedder(library))
        weakref.finalize(store, library.close)
        return store


def from_environment(notice: Notice, chosen: Mapping[str, object] = MappingProxyType({})) -> App:
    """The app with the current settings, offline, its store private to this user.

    chosen: settings by name, in place of those of the environment. Gives a notice if Ollama runs on another computer.
    Raises UsageError if that is not allowed, and for a bad setting.
    """
    go_offline()
    try:
        app = App(config.load_settings(notice, chosen), notice)
    except config.SettingsError as error:
        place = f"the call or {config.place_of_settings()}" if chosen else config.place_of_settings()
        raise UsageError(
            f"A setting is invalid: {error}.", f"Correct it in {place}; docs/settings.md explains it."
        ) from error
    app.models.announce_remote()
    make_private(app.store_folder, app.record_file)
    return app


def connect() -> App:
    """The app for use in another program; notices become warnings."""
    return from_environment(lambda text: warnings.warn(text, stacklevel=2))
