"""`Store` in PostgreSQL: several computers read and write one library, each with index files in its own folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from pydantic import SecretStr

from folio.errors import IndexDamaged, StoreBusy, StoreDamaged, StoreError, StoreMissing
from folio.ingest import paper_vectors
from folio.ingest.rebuild import RebuildPlan, listed_files, read_again
from folio.ingest.store import Store
from folio.shared import published, server_check, server_index
from folio.shared.library import SharedLibrary
from folio.shared.postgres import USER_SCHEMA, PostgresDatabase, place_of
from folio.shared.server_search import open_server_indexes
from folio.store import indexes
from folio.store.checksums import read_manifest
from folio.store.conversations import Conversations
from folio.store.fingerprint import differences, fingerprint
from folio.store.library import Library
from folio.store.metadata_layers import Version, inherit, with_user_data
from folio.store.rows import Stamp
from folio.store.search_indexes import SearchIndexes
from folio.store.vector_index import MANIFEST
from folio.types import SourceFile

if TYPE_CHECKING:
    from folio.ingest.progress import Outcome


# Where passages are searched: in local index files, or by the server in its own tables
Search = Literal["auto", "local", "server"]
# With "auto", the server searches libraries with this many passages or more. Index files take 3 KB for each passage on
# every computer, and a new computer fetches all of them first.
SERVER_FROM = 1_000_000


@dataclass(frozen=True)
class PostgresStore(Store):
    """The store at a PostgreSQL address."""

    url: SecretStr = field(default=SecretStr(""), repr=False)
    search: Search = "auto"

    @property
    def place(self) -> str:
        """See Store."""
        return place_of(self.url.get_secret_value())

    def exists(self) -> bool:
        """See Store."""
        with suppress(StoreMissing):
            self.database().close()
            return True
        return False

    def database(self, *, create: bool = False, schema: str = "") -> PostgresDatabase:
        """A connection. schema: see PostgresDatabase."""
        return PostgresDatabase(self.url.get_secret_value(), create=create, schema=schema)

    def open(self, *, create: bool = False) -> SharedLibrary:
        """See Store."""
        return SharedLibrary(self.database(create=create), self.citation_style)

    def conversations(self) -> Conversations:
        """See Store."""
        return Conversations(self.database)

    def made_with(self) -> dict[str, str]:
        """See Store."""
        with suppress(StoreMissing, StoreDamaged), closing(self.open()) as library:
            return library.fingerprint()
        return {}

    def known_files(self, record: Path, *, thorough: bool) -> dict[Path, SourceFile]:
        """See Store."""
        try:
            with closing(self.open()) as library:
                return {Path(file.path): file for file in library.files()}
        except StoreMissing:
            return {}
        except StoreDamaged:
            return listed_files(record)

    # The indexes

    def open_indexes(self, library: Library) -> SearchIndexes:
        """See Store. Fetches index files that another computer has published first."""
        if self._on_server(library):
            return open_server_indexes(_postgres(library), library)
        self._fetch(library)
        return super().open_indexes(library)

    def update_indexes(self, library: Library) -> None:
        """See Store. Publishes the index files for other computers."""
        if self._on_server(library):
            server_index.update(_postgres(library), library)
            return
        self._fetch(library)
        super().update_indexes(library)
        with library.reading() as stamp:
            passages = library.chunk_count()
        if not library.is_read_only:
            with suppress(StoreBusy):
                published.publish(library.database, self.folder, stamp, passages)

    def _on_server(self, library: Library) -> bool:
        """Whether the server searches."""
        is_large = self.search == "auto" and library.chunk_count() >= SERVER_FROM
        return self.search == "server" or is_large

    def index_faults(self, library: Library) -> list[str]:
        """See Store."""
        if not self._on_server(library):
            return super().index_faults(library)
        try:
            with library.reading() as stamp:
                is_current = open_server_indexes(_postgres(library), library).stamp == stamp
        except IndexDamaged as error:
            return [error.happened]
        return [] if is_current else ["The indexes on the server did not match the library"]

    def verify(self) -> list[str]:
        """See Store. Updates outdated index files first, as every use of them does."""
        with closing(self.open()) as library:
            if self._on_server(library):
                return library.check() or server_check.faults(_postgres(library), library)
            with library.reading() as stamp:
                local = self._own_stamp()
            if local is not None and local != stamp:  # not a fault: another computer has added papers since
                with suppress(StoreError, OSError):
                    self.update_indexes(library)
        return super().verify()

    def repair(self) -> int:
        """See Store."""
        with closing(self.open()) as library:
            if self._on_server(library):
                server_index.update(_postgres(library), library, rebuild=True)
                return library.chunk_count()
        return super().repair()

    def _fetch(self, library: Library) -> None:
        with library.reading() as stamp:
            local = self._own_stamp()
            if local == stamp:
                return
            with suppress(StoreBusy), indexes.writing(self.folder):
                published.fetch(library.database, self.folder, stamp, local)

    def _own_stamp(self) -> Stamp | None:
        with suppress(IndexDamaged, OSError, KeyError, TypeError):
            manifest = read_manifest(self.folder / MANIFEST)
            return Stamp(manifest["epoch"], manifest["generation"])
        return None

    # Rebuilding

    def rebuild(self, plan: RebuildPlan) -> Iterator[Outcome]:
        """See Store: in a schema of its own, which then takes the place of the one that serves, in one transaction.

        Another computer that rebuilds at the same time shares the work; an interrupted rebuild is continued. Raises
        StoreBusy if another computer has added papers meanwhile, which would be lost.
        """
        with closing(self.open(create=True)) as library:
            schema = self._unfinished(library)
            before = library.files()
            new = SharedLibrary(self.database(schema=schema), self.citation_style)
            with closing(new):
                made_with = new.fingerprint()
                if made_with and differences(made_with, fingerprint(plan.embedder, plan.reading)):
                    new.clear()
                yield from read_again(new, plan, self.folder)
                _inherit(library, new)
                expected = frozenset([*before, *new.files()])
            self._serve(library, schema, expected)
            paper_vectors.refresh(library, lambda: plan.embedder, plan.batch)
            library.forget_pdfs()

    def _unfinished(self, library: SharedLibrary) -> str:
        """The schema of the current rebuild; a new one if there is none."""
        with library.database.transaction("user"):
            current = library.database.query("SELECT value FROM kept WHERE key = 'rebuild'")
            if current:
                return str(current[0][0])
            schema = f"{USER_SCHEMA}_{uuid4().hex[:12]}"
            library.database.insert("kept", [{"key": "rebuild", "value": schema}], replace=True)
            return schema

    def _serve(self, library: SharedLibrary, schema: str, expected: frozenset[SourceFile]) -> None:
        """Make a schema the current one, unless another computer has done so, and delete the old one.

        expected: the files that may be in the old one.
        """
        database = _postgres(library)
        with database.transaction():
            if not database.query("SELECT 1 FROM kept WHERE key = 'rebuild' AND value = :schema", schema=schema):
                return
            if added := [file.name for file in library.files() if file not in expected]:
                raise StoreBusy(
                    f"Another computer has added papers during the rebuild: {', '.join(added[:3])}"
                    f"{f' and {len(added) - 3} more' if len(added) > 3 else ''}.",
                    "Run the same command again: it continues, and reads them too.",
                )
            database.serve(schema)
            database.execute("DELETE FROM kept WHERE key = 'rebuild'")
        database.drop_unused()


def _postgres(library: Library) -> PostgresDatabase:
    assert isinstance(library.database, PostgresDatabase)
    return library.database


def _inherit(old: Library, new: Library) -> None:
    """Give papers the user data of the papers that they replace, if both are versions of one paper."""
    before = {file.path: file.sha256 for file in old.files()}
    after = {file.path: file.sha256 for file in new.files() if file.path in before}
    pairs = {(before[path], paper) for path, paper in after.items() if before[path] != paper}
    described = with_user_data(old.database, {old_id for old_id, _ in pairs}) if pairs else set()
    for old_id, new_id in sorted(pairs):
        if old_id in described:
            papers = [*old.papers_by_id([old_id]), *new.papers_by_id([new_id])]
            if len(papers) == 2:
                texts = (old.text(old_id, 0, papers[0].length), new.text(new_id, 0, papers[1].length))
                versions = [Version(paper.id, paper.metadata, text) for paper, text in zip(papers, texts, strict=True)]
                with new.database.transaction("user"):
                    inherit(new.database, *versions)
