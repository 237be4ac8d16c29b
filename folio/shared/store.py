"""`Store` in PostgreSQL: several computers read and write one library, each with index files in its own folder.

The server also keeps the PDFs for computers that do not have them. claims.py says which computer adds which paper.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from uuid import uuid4

from pydantic import SecretStr

from folio.errors import IndexDamaged, StoreBusy, StoreDamaged, StoreError, StoreMismatch, StoreMissing, command
from folio.papers.label import CitationStyle
from folio.papers.model import NewPaper, SourceFile
from folio.shared import published, server_index, server_search
from folio.shared.claims import SharedClaims
from folio.shared.postgres import USER_SCHEMA, PostgresDatabase, place_of
from folio.shared.server_search import open_server_indexes
from folio.store import indexes, rows
from folio.store.conversations import Conversations
from folio.store.database import repeated
from folio.store.fingerprint import differences
from folio.store.index_files import read_manifest
from folio.store.indexes import SearchIndexes
from folio.store.library import Library
from folio.store.metadata import Version, inherit, with_user_data
from folio.store.replacing import listed_files
from folio.store.rows import Stamp
from folio.store.store import Rebuild, Repaired, Store
from folio.store.vectors import MANIFEST
from folio.system.files import replace, sha256_file, sync

# Bytes of a PDF in one row
_PART = 2**20


class SharedLibrary(Library):
    """`Library` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase, citation_style: CitationStyle) -> None:
        super().__init__(database, citation_style=citation_style)
        self.claims = SharedClaims(database)

    def close(self) -> None:
        self.claims.close()
        super().close()

    def set_fingerprint(self, fingerprint: dict[str, str]) -> None:
        """See Library. Raises StoreMismatch if another computer began with other settings."""
        made_with = self.fingerprint()
        if made_with and (differ := differences(made_with, fingerprint)):
            raise StoreMismatch(
                f"The library was made with other settings: {', '.join(differ)}.",
                f"Use the same settings on all computers, or run `{command('ingest --rebuild')}`.",
            )
        super().set_fingerprint(fingerprint)

    def forget_pending(self) -> None:
        """See Library. Does nothing while another writer embeds a paper."""
        if not self._query("SELECT 1 FROM jobs WHERE writer != :writer LIMIT 1", writer=self.claims.writer):
            super().forget_pending()

    def _is_there(self, paper: NewPaper, file: SourceFile) -> bool:
        """See Library. The PDF is kept first."""
        self._keep_pdf(file)
        paths = self._read(rows.string, "SELECT path FROM files WHERE paper = :paper", paper=paper.id)
        return bool(paths) and file.path not in paths

    @repeated
    def clear(self) -> None:
        """Remove all papers and the fingerprint."""
        with self._writing():
            self._execute("DELETE FROM papers")
            self._execute("DELETE FROM failures")
            self._execute("DELETE FROM pending")
            self._execute("DELETE FROM meta WHERE key = 'fingerprint'")
            self._execute("UPDATE meta SET value = '0' WHERE key IN ('chunks', 'fine')")
            self._execute("UPDATE meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)

    @repeated
    def _keep_pdf(self, file: SourceFile) -> None:
        try:
            content = Path(file.path).read_bytes()
        except OSError:  # it was readable a moment ago; showing the paper will report the error
            return
        parts = [content[at : at + _PART] for at in range(0, len(content), _PART)]
        new = [{"paper": file.sha256, "part": part, "data": data} for part, data in enumerate(parts)]
        with self.database.transaction("user"):
            if not self._query("SELECT 1 FROM pdfs WHERE paper = :paper LIMIT 1", paper=file.sha256):
                self.database.insert("pdfs", new)

    def keep_pdfs(self, files: Iterable[SourceFile]) -> None:
        """Store the PDFs of papers, as far as this computer has unchanged files of them."""
        for file in files:
            with suppress(OSError):
                if sha256_file(Path(file.path)) == file.sha256:
                    self._keep_pdf(file)

    def copy_of(self, paper: str, folder: Path) -> Path | None:
        """A copy in `folder` of a paper's PDF; None if the library has none, or an incomplete one."""
        path = folder / f"{paper}.pdf"
        if path.exists():
            return path
        parts = self._query("SELECT data FROM pdfs WHERE paper = :paper ORDER BY part", paper=paper)
        content = b"".join(data for (data,) in parts)
        if hashlib.sha256(content).hexdigest() != paper:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        new.write_bytes(content)
        sync(new)
        replace(new, path)
        return path

    @repeated
    def forget_pdfs(self) -> None:
        """Delete the PDFs of papers that are no longer in the library."""
        with self.database.transaction("user"):
            self._execute("DELETE FROM pdfs WHERE paper NOT IN (SELECT id FROM papers)")


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
    patience_s: float | None = None  # see PostgresDatabase

    @property
    def place(self) -> str:
        return place_of(self.url.get_secret_value())

    def exists(self) -> bool:
        with suppress(StoreMissing):
            self.database().close()
            return True
        return False

    def database(self, *, create: bool = False, schema: str = "") -> PostgresDatabase:
        """A connection. schema: see PostgresDatabase."""
        url = self.url.get_secret_value()
        return PostgresDatabase(url, create=create, schema=schema, patience_s=self.patience_s, notice=self.notice)

    def open(self, *, create: bool = False) -> SharedLibrary:
        return SharedLibrary(self.database(create=create), self.citation_style)

    def claims(self, library: Library) -> SharedClaims:
        return _shared(library).claims

    def copy_of(self, library: Library, paper: str, folder: Path) -> Path | None:
        return _shared(library).copy_of(paper, folder)

    def conversations(self) -> Conversations:
        return Conversations(self.database)

    def made_with(self) -> dict[str, str]:
        with suppress(StoreMissing, StoreDamaged), closing(self.open()) as library:
            return library.fingerprint()
        return {}

    def known_files(self, record: Path, *, thorough: bool) -> dict[Path, SourceFile]:
        try:
            with closing(self.open()) as library:
                return {Path(file.path): file for file in library.files()}
        except StoreMissing:
            return {}
        except StoreDamaged:
            return listed_files(record)

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
                return library.check() or server_search.faults(_postgres(library), library)
            with library.reading() as stamp:
                local = self._own_stamp()
            if local is not None and local != stamp:  # not a fault: another computer has added papers since
                with suppress(StoreError, OSError):
                    self.update_indexes(library)
        return super().verify()

    def repair(self) -> Repaired:
        with closing(self.open()) as library:
            if self._on_server(library):
                server_index.update(_postgres(library), library, rebuild=True)
                return Repaired(library.chunk_count())
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

    def begin_rebuild(self, made_with: dict[str, str]) -> SharedRebuild:
        """See Store. Another computer that rebuilds at the same time shares the work."""
        return SharedRebuild(self, made_with)

    def unfinished(self, library: SharedLibrary) -> str:
        """The schema of the current rebuild; a new one if there is none."""
        with library.database.transaction("user"):
            current = library.database.query("SELECT value FROM kept WHERE key = 'rebuild'")
            if current:
                return str(current[0][0])
            schema = f"{USER_SCHEMA}_{uuid4().hex[:12]}"
            library.database.insert("kept", [{"key": "rebuild", "value": schema}], replace=True)
            return schema

    def serve(self, library: SharedLibrary, schema: str, expected: frozenset[SourceFile]) -> None:
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


class SharedRebuild(Rebuild):
    """A library that is made again in a schema of its own."""

    def __init__(self, store: PostgresStore, made_with: dict[str, str]) -> None:
        self._store = store
        with ExitStack() as opened:
            self._old = opened.enter_context(closing(store.open(create=True)))
            self._repeat = self._old.database.repeat
            self._schema = self._repeat(lambda: store.unfinished(self._old))
            self._before = self._old.files()
            self.library = new = SharedLibrary(store.database(schema=self._schema), store.citation_style)
            self._new = opened.enter_context(ExitStack())
            self._new.callback(new.close)
            known = new.fingerprint()
            if known and differences(known, made_with):
                new.clear()
            self._opened = opened.pop_all()

    def finish(self) -> None:
        """See Rebuild: in one transaction. Raises StoreBusy if another computer has added papers meanwhile."""
        self._repeat(lambda: _inherit(self._old, self.library))
        expected = frozenset([*self._before, *self.library.files()])
        self._new.close()
        self._repeat(lambda: self._store.serve(self._old, self._schema, expected))
        self._old.forget_pdfs()

    def abandon(self) -> None:
        """See Rebuild. It stays, because another computer may be adding to it."""

    def close(self) -> None:
        self._opened.close()


def _shared(library: Library) -> SharedLibrary:
    assert isinstance(library, SharedLibrary)
    return library


def _postgres(library: Library) -> PostgresDatabase:
    assert isinstance(library.database, PostgresDatabase)
    return library.database


def _inherit(old: Library, new: Library) -> None:
    """Give papers the user data of the papers that they replace, if both are versions of one paper."""
    before = {file.path: file.sha256 for file in old.files()}
    new_files = new.files()
    kept = {file.sha256 for file in new_files}
    after = {file.path: file.sha256 for file in new_files if file.path in before}
    pairs = {(before[path], paper) for path, paper in after.items() if before[path] != paper}
    described = with_user_data(old.database, {old_id for old_id, _ in pairs}) if pairs else set()
    for old_id, new_id in sorted(pairs):
        if old_id in described:
            papers = [*old.papers_by_id([old_id]), *new.papers_by_id([new_id])]
            if len(papers) == 2:
                texts = (old.text(old_id, 0, papers[0].length), new.text(new_id, 0, papers[1].length))
                versions = [Version(paper.id, paper.metadata, text) for paper, text in zip(papers, texts, strict=True)]
                with new.database.transaction("user"):
                    inherit(new.database, *versions, is_replaced=old_id not in kept)
