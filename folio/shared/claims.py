"""Which of several computers adds a paper to a shared library.

A claim on a paper is a row of `jobs` with the id of its writer. Each writer locks its own row of `writers` in a
transaction that stays open. If another writer can lock that row, its owner has ended, and its jobs can be taken over.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

import psycopg

from folio.errors import StoreError
from folio.papers.model import SourceFile
from folio.shared.postgres import PostgresDatabase
from folio.store.database import Database, repeated


class SharedClaims:
    """`Claims` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database: Database = database
        self._postgres = database
        self.writer = ""  # the id of this writer's row, once it has claimed a paper
        self._alive: psycopg.Connection | None = None  # holds the lock on that row

    def close(self) -> None:
        """Give up all claims."""
        if self._alive is not None:
            with suppress(StoreError):
                self.database.execute("DELETE FROM jobs WHERE writer = :writer", writer=self.writer)
            with suppress(psycopg.Error):
                self._alive.execute("DELETE FROM writers WHERE id = %s", (self.writer,))
                self._alive.execute("COMMIT")
                self._alive.close()

    @repeated
    def claim(self, file: SourceFile, *, is_known: bool = False) -> bool:
        self._register()
        with self.database.transaction("user"):
            sql = "INSERT INTO jobs (paper, writer) VALUES (:paper, :writer) ON CONFLICT DO NOTHING RETURNING paper"
            is_new = bool(self.database.execute(sql, paper=file.sha256, writer=self.writer))
            is_claimed = is_new or self._take_over(file.sha256)
        has_paper = "SELECT 1 FROM papers WHERE id = :paper"
        if is_claimed and not is_known and self.database.query(has_paper, paper=file.sha256):
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
        self.writer = uuid.uuid4().hex
        alive.execute("DELETE FROM writers WHERE id IN (SELECT id FROM writers FOR UPDATE SKIP LOCKED)")
        alive.execute("DELETE FROM jobs WHERE writer NOT IN (SELECT id FROM writers)")
        alive.execute("INSERT INTO writers VALUES (%s)", (self.writer,))
        alive.execute("BEGIN")
        locked = alive.execute("SELECT 1 FROM writers WHERE id = %s FOR UPDATE", (self.writer,)).fetchall()
        if not locked:
            alive.execute("ROLLBACK")
        return bool(locked)

    def _take_over(self, paper: str) -> bool:
        """Take over a job whose writer has ended; returns whether this writer has it. The caller has a transaction."""
        writers = self.database.query("SELECT writer FROM jobs WHERE paper = :paper FOR UPDATE", paper=paper)
        if not writers:  # released meanwhile
            return False
        ((writer,),) = writers
        if writer == self.writer:
            return True
        exists = self.database.query("SELECT 1 FROM writers WHERE id = :writer", writer=writer)
        lock = "SELECT 1 FROM writers WHERE id = :writer FOR UPDATE SKIP LOCKED"
        if exists and not self.database.query(lock, writer=writer):
            return False
        self.database.execute("UPDATE jobs SET writer = :writer WHERE paper = :paper", writer=self.writer, paper=paper)
        return True

    @repeated
    def release(self, file: SourceFile) -> None:
        with self.database.transaction("user"):
            sql = "DELETE FROM jobs WHERE paper = :paper AND writer = :writer"
            self.database.execute(sql, paper=file.sha256, writer=self.writer)
