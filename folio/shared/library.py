"""A library that several computers write: claims on papers, and the PDFs for computers that do not have them.

A claim on a paper is a row of `jobs` with the id of its writer. Each writer locks its own row of `writers` in a
transaction that stays open. If another writer can lock that row, its owner has ended, and its jobs can be taken over.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psycopg

from folio.citation_label import CitationStyle
from folio.errors import StoreError, StoreMismatch, command
from folio.files import replace, sha256_file, sync
from folio.shared.postgres import PostgresDatabase
from folio.store import rows
from folio.store.fingerprint import differences
from folio.store.library import Library
from folio.types import NewPaper, SourceFile

# Bytes of a PDF in one row
_PART = 2**20


class SharedLibrary(Library):
    """`Library` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase, citation_style: CitationStyle) -> None:
        super().__init__(database, citation_style=citation_style)
        self._postgres = database
        self._writer = ""  # the id of this writer's row, once it has claimed a paper
        self._alive: psycopg.Connection | None = None  # holds the lock on that row

    def close(self) -> None:
        if self._alive is not None:
            with suppress(StoreError):
                self._execute("DELETE FROM jobs WHERE writer = :writer", writer=self._writer)
            with suppress(psycopg.Error):
                self._alive.execute("DELETE FROM writers WHERE id = %s", (self._writer,))
                self._alive.execute("COMMIT")
                self._alive.close()
        super().close()

    # Several writers

    def claim(self, file: SourceFile, *, is_known: bool = False) -> bool:
        """See Library."""
        self._register()
        with self.database.transaction("user"):
            sql = "INSERT INTO jobs (paper, writer) VALUES (:paper, :writer) ON CONFLICT DO NOTHING RETURNING paper"
            is_new = bool(self._execute(sql, paper=file.sha256, writer=self._writer))
            is_claimed = is_new or self._take_over(file.sha256)
        if is_claimed and not is_known and self._query("SELECT 1 FROM papers WHERE id = :paper", paper=file.sha256):
            self.release(file)
            return False
        return is_claimed

    def _register(self) -> None:
        """Make this writer's row and lock it, unless that was done and the connection is still open."""
        if self._alive is not None and not self._alive.closed:
            with suppress(psycopg.Error):
                self._alive.execute("SELECT 1")
                return
        self._alive = self._postgres.another_connection()
        try:
            while not self._is_registered(self._alive):
                pass
        except psycopg.Error as error:
            raise self._postgres.as_ours(error) from error

    def _is_registered(self, alive: psycopg.Connection) -> bool:
        """Make a row of `writers` and lock it; False if another writer deleted it before it was locked."""
        self._writer = uuid.uuid4().hex
        alive.execute("DELETE FROM writers WHERE id IN (SELECT id FROM writers FOR UPDATE SKIP LOCKED)")
        alive.execute("DELETE FROM jobs WHERE writer NOT IN (SELECT id FROM writers)")
        alive.execute("INSERT INTO writers VALUES (%s)", (self._writer,))
        alive.execute("BEGIN")
        locked = alive.execute("SELECT 1 FROM writers WHERE id = %s FOR UPDATE", (self._writer,)).fetchall()
        if not locked:
            alive.execute("ROLLBACK")
        return bool(locked)

    def _take_over(self, paper: str) -> bool:
        """Take over a job whose writer has ended; returns whether this writer has it. The caller has a transaction."""
        writers = self._query("SELECT writer FROM jobs WHERE paper = :paper FOR UPDATE", paper=paper)
        if not writers:  # released meanwhile
            return False
        ((writer,),) = writers
        if writer == self._writer:
            return True
        exists = self._query("SELECT 1 FROM writers WHERE id = :writer", writer=writer)
        lock = "SELECT 1 FROM writers WHERE id = :writer FOR UPDATE SKIP LOCKED"
        if exists and not self._query(lock, writer=writer):
            return False
        self._execute("UPDATE jobs SET writer = :writer WHERE paper = :paper", writer=self._writer, paper=paper)
        return True

    def release(self, file: SourceFile) -> None:
        """See Library."""
        with self.database.transaction("user"):
            sql = "DELETE FROM jobs WHERE paper = :paper AND writer = :writer"
            self._execute(sql, paper=file.sha256, writer=self._writer)

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
        if not self._query("SELECT 1 FROM jobs WHERE writer != :writer LIMIT 1", writer=self._writer):
            super().forget_pending()

    def _is_there(self, paper: NewPaper, file: SourceFile) -> bool:
        """See Library. The PDF is kept first."""
        self._keep_pdf(file)
        paths = self._read(rows.string, "SELECT path FROM files WHERE paper = :paper", paper=paper.id)
        return bool(paths) and file.path not in paths

    def clear(self) -> None:
        """Remove all papers and the fingerprint."""
        with self._writing():
            self._execute("DELETE FROM papers")
            self._execute("DELETE FROM failures")
            self._execute("DELETE FROM pending")
            self._execute("DELETE FROM meta WHERE key = 'fingerprint'")
            self._execute("UPDATE meta SET value = '0' WHERE key IN ('chunks', 'fine')")
            self._execute("UPDATE meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)

    # The PDFs

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
        """See Library. Also None if the stored PDF is incomplete."""
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

    def forget_pdfs(self) -> None:
        """Delete the PDFs of papers that are no longer in the library."""
        with self.database.transaction("user"):
            self._execute("DELETE FROM pdfs WHERE paper NOT IN (SELECT id FROM papers)")
