"""The tables of a library in SQLite or PostgreSQL: statements, snapshots, transactions, and Folio's own errors.

Statements use only what both engines understand: named parameters (`:name`), ON CONFLICT, an explicit order. A list is
passed as one parameter: `IN (SELECT value FROM json_each(:ids))`.

There are two parts. The data made from PDFs can be made again at any time. The data that people and services added (the
user data) cannot, and is stored separately: in SQLite in another file, in PostgreSQL in another schema. In the
definitions of the tables, each engine replaces the words in braces by its own type names. Text is ordered by its bytes
in UTF-8, without U+0000.
"""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

from folio.errors import FolioError, StoreDamaged, StoreError, StoreProtected, command
from folio.text import one_line

# The data made from PDFs. Increment the version with every change: a library of another version is rebuilt, or
# converted (store/sqlite.py).
LIBRARY_VERSION = 16
LIBRARY = """
CREATE TABLE meta (key {text} PRIMARY KEY, value {text} NOT NULL){keyed};
CREATE TABLE papers (
    id {text} PRIMARY KEY,              -- SHA-256 of the file
    length {integer} NOT NULL,          -- characters of text
    starts {text} NOT NULL,             -- JSON: the offset of each physical page in the text
    labels {text} NOT NULL,             -- JSON: the label printed on each page
    problems {text} NOT NULL,           -- JSON: the problems of reading it
    sections {text} NOT NULL,           -- JSON: start, end, level, number, title and kind of each
    metadata {text} NOT NULL,           -- JSON: from the PDF (papers/metadata.py)
    added {text} NOT NULL,              -- ISO time in UTC
    passages {integer} NOT NULL,        -- their number
    text_crc {integer} NOT NULL,        -- CRC-32 of the text
    digest {bytes} NOT NULL,            -- of all columns above
    generation {integer} NOT NULL,
    -- Search keys from the metadata, for papers with the same label and versions of a paper (store/library.py)
    family {text}, title_start {text}, arxiv {text}, doi {text}, year {integer}
);
CREATE INDEX papers_generation ON papers(generation);
CREATE INDEX papers_family ON papers(family);
CREATE INDEX papers_title ON papers(title_start);
CREATE INDEX papers_arxiv ON papers(arxiv);
CREATE INDEX papers_doi ON papers(doi);
-- In a table of its own, because a list of papers does not need the long text
CREATE TABLE texts (paper {text} PRIMARY KEY REFERENCES papers(id) ON DELETE CASCADE, text {text} NOT NULL);
CREATE TABLE files (
    path {text} PRIMARY KEY, name {text} NOT NULL,
    paper {text} NOT NULL REFERENCES papers(id) ON DELETE CASCADE,
    place {integer} NOT NULL            -- in the order of adding
);
CREATE INDEX files_paper ON files(paper);
CREATE INDEX files_place ON files(place);
CREATE TABLE failures (
    path {text} PRIMARY KEY, name {text} NOT NULL, sha256 {text} NOT NULL, happened {text} NOT NULL,
    remedy {text} NOT NULL
);
CREATE TABLE chunks (
    id {integer} PRIMARY KEY,           -- chunk.chunk_id: the same number in FAISS and BM25
    paper {text} NOT NULL REFERENCES papers(id) ON DELETE CASCADE,
    start {integer} NOT NULL, "end" {integer} NOT NULL,
    text_hash {text} NOT NULL,          -- in hex
    generation {integer} NOT NULL,
    parent {integer} REFERENCES chunks(id) ON DELETE CASCADE -- of a fine passage: the passage that contains it
);
CREATE INDEX chunks_paper ON chunks(paper);
CREATE INDEX chunks_hash ON chunks(text_hash);
CREATE INDEX chunks_generation ON chunks(generation);
CREATE INDEX chunks_parent ON chunks(parent) WHERE parent IS NOT NULL;
CREATE TABLE vectors (
    chunk {integer} PRIMARY KEY REFERENCES chunks(id) ON DELETE CASCADE,
    data {bytes} NOT NULL               -- with a checksum (store/rows.py)
);
CREATE TABLE removed (chunk {integer} NOT NULL, generation {integer} NOT NULL);
CREATE INDEX removed_generation ON removed(generation);
-- Vectors of a paper that is still being embedded, so that a kill does not cost them
CREATE TABLE pending (text_hash {text} PRIMARY KEY, data {bytes} NOT NULL){keyed};
-- The vector of a whole paper (papers/metadata.py), and the hash of its text
CREATE TABLE paper_vectors (
    paper {text} PRIMARY KEY REFERENCES papers(id) ON DELETE CASCADE,
    text_hash {text} NOT NULL, data {bytes} NOT NULL
);
CREATE INDEX paper_vectors_hash ON paper_vectors(text_hash);
"""

# The user data of version 1. A table that exists is never changed: a new version adds tables (USER_ADDED).
USER = """
CREATE TABLE kept (key {text} PRIMARY KEY, value {text} NOT NULL){keyed};
-- Metadata of papers (papers/metadata.py) from sources other than their PDFs; a paper need not be in the library
CREATE TABLE metadata (
    paper {text} NOT NULL,              -- SHA-256 of its file
    source {text} NOT NULL,
    fields {text} NOT NULL,             -- JSON: field -> value, origin, whether it is certain
    updated {text} NOT NULL,            -- ISO time in UTC
    family {text}, title_start {text}, arxiv {text}, doi {text}, year {integer}, -- as in papers
    PRIMARY KEY (paper, source)
);
CREATE INDEX metadata_family ON metadata(family) WHERE family IS NOT NULL;
CREATE INDEX metadata_title ON metadata(title_start) WHERE title_start IS NOT NULL;
CREATE INDEX metadata_arxiv ON metadata(arxiv) WHERE arxiv IS NOT NULL;
CREATE INDEX metadata_doi ON metadata(doi) WHERE doi IS NOT NULL;
CREATE TABLE queries (                  -- the log of questions; no index depends on it
    id {integer} PRIMARY KEY,
    asked {text} NOT NULL,              -- ISO time in UTC
    question {text} NOT NULL, standalone_question {text} NOT NULL,
    chunks {text} NOT NULL,             -- JSON: ids of the chunks that the answer was made from
    answer {text} NOT NULL,
    sources {text} NOT NULL,            -- JSON: paper, file, page and quote of each citation
    timings_ms {text} NOT NULL,         -- JSON: milliseconds of each stage
    model {text} NOT NULL,
    feedback {text} NOT NULL,           -- "good", "bad" or ""
    confidence {real},                  -- from 0 to 1, NULL if the answerer gives none
    trace {text},                       -- JSON: the steps of a deep answer, NULL for others
    crc {integer} NOT NULL              -- CRC-32 of what was shown, which contains quotes
);
CREATE TABLE conversations (
    id {text} PRIMARY KEY, title {text} NOT NULL,
    begun {text} NOT NULL, updated {text} NOT NULL -- ISO times in UTC
);
CREATE TABLE turns (
    id {integer} PRIMARY KEY,
    conversation {text} NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    place {integer} NOT NULL,           -- in the conversation, from 1
    asked {text} NOT NULL,              -- ISO time in UTC
    reply {text} NOT NULL,              -- JSON: the reply that was shown
    memory {text} NOT NULL,             -- JSON: the answer, for follow-ups (store/conversations.py)
    query {integer} REFERENCES queries(id) ON DELETE SET NULL,
    crc {integer} NOT NULL,             -- CRC-32 of reply and memory, which contain quotes
    UNIQUE (conversation, place)
);
CREATE INDEX turns_query ON turns(query);
-- Works that services describe (works.py): papers of the library and others
CREATE TABLE works (
    id {text} PRIMARY KEY,              -- a hash of its first mark
    version_of {text} NOT NULL,         -- the preferred version of it, '' for none
    said {text} NOT NULL                -- JSON: source -> time and description (papers/work.py)
);
CREATE INDEX works_version ON works(version_of) WHERE version_of != '';
-- The marks by which works are recognised (Work.marks), from their descriptions
CREATE TABLE work_marks (mark {text} NOT NULL, work {text} NOT NULL, PRIMARY KEY (mark, work)){keyed};
CREATE INDEX work_marks_work ON work_marks(work);
CREATE TABLE citations (
    citing {text} NOT NULL,             -- a work
    cited {text} NOT NULL,              -- a mark, of a work in `works` or of an unknown one
    source {text} NOT NULL, said_at {text} NOT NULL, -- ISO time in UTC
    place {integer} NOT NULL,           -- in the order of storing
    PRIMARY KEY (citing, cited)
);
CREATE INDEX citations_cited ON citations(cited);
CREATE INDEX citations_place ON citations(place);
CREATE TABLE paper_works (
    paper {text} PRIMARY KEY,           -- SHA-256 of its file
    work {text} NOT NULL,
    found_by {text} NOT NULL,           -- the kind of mark that matched
    score {integer} NOT NULL            -- the quality of the match, 0 to 1000
);
CREATE INDEX paper_works_work ON paper_works(work);
CREATE TABLE notices (                  -- retractions, corrections and newer versions of works
    work {text} NOT NULL,
    kind {text} NOT NULL,
    dated {text} NOT NULL,              -- YYYY-MM-DD or less, '' if not known
    link {text} NOT NULL,               -- a DOI, an address or an arXiv id with its version, '' if not known
    source {text} NOT NULL, said_at {text} NOT NULL, -- ISO time in UTC
    PRIMARY KEY (work, kind, link, source)
);
"""
# Version of the user data -> the tables that it added, which an older file gets when it is opened (`added_since`)
USER_ADDED = {
    2: """
CREATE TABLE notes (
    id {text} PRIMARY KEY,
    colour {text} NOT NULL, text {text} NOT NULL, statement {text} NOT NULL, -- "" for none
    conversation {text} REFERENCES conversations(id) ON DELETE SET NULL, -- the statement's
    turn {integer},                     -- its place in the conversation
    created {text} NOT NULL, updated {text} NOT NULL, -- ISO times in UTC
    crc {integer} NOT NULL              -- CRC-32 of the columns that a person wrote
);
CREATE INDEX notes_conversation ON notes(conversation);
CREATE TABLE note_quotes (
    note {text} NOT NULL REFERENCES notes(id) ON DELETE CASCADE,
    place {integer} NOT NULL,           -- in the note, from 1
    paper {text} NOT NULL,              -- SHA-256 of its file; it need not be in the library
    start {integer} NOT NULL, "end" {integer} NOT NULL,
    quote {text} NOT NULL,
    before {text} NOT NULL, after {text} NOT NULL, -- the characters around it, to find it again (notes.py)
    page {integer} NOT NULL, label {text} NOT NULL,
    title {text} NOT NULL, file {text} NOT NULL, -- of the paper, for when it is removed
    state {text} NOT NULL,              -- "here", "moved" or "lost", in the text with this CRC-32
    text_crc {integer} NOT NULL,
    crc {integer} NOT NULL,             -- CRC-32 of all columns above but the first two
    PRIMARY KEY (note, place)
);
CREATE INDEX note_quotes_paper ON note_quotes(paper);
""",
    3: """
CREATE TABLE readings (                 -- when papers were last open in the reader; they need not be in the library
    paper {text} PRIMARY KEY,           -- SHA-256 of its file
    opened {text} NOT NULL,             -- ISO time in UTC
    page {integer} NOT NULL             -- physical, from 1
);
CREATE TABLE removals (                 -- papers that a person removed, and may bring back
    paper {text} PRIMARY KEY,           -- SHA-256 of its file
    title {text} NOT NULL,
    files {text} NOT NULL,              -- JSON: name, old and new path of each file
    removed {text} NOT NULL             -- ISO time in UTC
);
""",
    4: """
-- Conversations that stand above the others
CREATE TABLE pins (conversation {text} PRIMARY KEY REFERENCES conversations(id) ON DELETE CASCADE);
""",
    5: """
CREATE TABLE citation_names (           -- what papers were given, and keep; they need not be in the library
    kind {text} NOT NULL,               -- "key" for a citation key, "label" for a label that may need a letter
    name {text} NOT NULL,
    paper {text} NOT NULL,              -- SHA-256 of its file
    place {integer} NOT NULL,           -- of a key among its paper's, the last is in use; of a label among its papers
    PRIMARY KEY (kind, name, paper)
);
CREATE INDEX citation_names_paper ON citation_names(paper);
""",
    6: """
-- Conversations of which a server answers the latest question. Its turn is in `turns` all the while.
CREATE TABLE answering (
    conversation {text} PRIMARY KEY REFERENCES conversations(id) ON DELETE CASCADE,
    place {integer} NOT NULL,           -- of the turn
    server {text} NOT NULL,
    until {text} NOT NULL,              -- ISO time in UTC: if the server does not say so again, it was killed
    stops {integer} NOT NULL            -- 1: a person has stopped the answer
);
""",
    7: """
-- Notes that are annotations of Zotero, which are changed there
CREATE TABLE note_origins (
    note {text} PRIMARY KEY REFERENCES notes(id) ON DELETE CASCADE,
    item {text} NOT NULL,               -- the annotation in Zotero: "library/items/KEY"
    attachment {text} NOT NULL,         -- its PDF in Zotero
    shade {text} NOT NULL,              -- its colour there: "#ffd400", '' for none
    state {text} NOT NULL,              -- a hash of what Zotero had when the note was made
    crc {integer} NOT NULL              -- CRC-32 of all columns above
);
""",
    8: """
-- Evidence tables: papers by questions (tables.py). Their papers need not be in the library
CREATE TABLE evidence_tables (
    id {text} PRIMARY KEY,
    name {text} NOT NULL,
    scope {text} NOT NULL,              -- JSON: the filter of its papers
    follows {integer} NOT NULL,         -- 1: papers that are added later and fit get their rows
    resumes {integer} NOT NULL,         -- 1: filling was begun and not stopped: a server resumes it
    problem {text} NOT NULL,            -- JSON: why filling ended too early; '' for none
    changes {integer} NOT NULL,         -- grows with every change in the table
    shape {integer} NOT NULL,           -- its value at the last change of the table, its columns or its rows
    created {text} NOT NULL, updated {text} NOT NULL, -- ISO times in UTC
    crc {integer} NOT NULL              -- CRC-32 of what a person wrote
);
CREATE TABLE table_columns (
    id {text} PRIMARY KEY,
    table_id {text} NOT NULL REFERENCES evidence_tables(id) ON DELETE CASCADE,
    place {integer} NOT NULL,           -- in the table, from 1
    name {text} NOT NULL, question {text} NOT NULL, kind {text} NOT NULL, unit {text} NOT NULL,
    choices {text} NOT NULL,            -- JSON: a list
    crc {integer} NOT NULL              -- CRC-32 of what a person wrote
);
CREATE INDEX table_columns_table ON table_columns(table_id);
CREATE TABLE table_rows (
    table_id {text} NOT NULL REFERENCES evidence_tables(id) ON DELETE CASCADE,
    paper {text} NOT NULL,              -- SHA-256 of its file
    hidden {integer} NOT NULL,          -- 1: a person took it out; it does not come back by itself
    title {text} NOT NULL, file {text} NOT NULL, label {text} NOT NULL, year {integer}, -- for when it is removed
    crc {integer} NOT NULL,             -- CRC-32 of all columns above
    PRIMARY KEY (table_id, paper)
);
CREATE INDEX table_rows_paper ON table_rows(paper);
CREATE TABLE table_cells (              -- those that were asked or edited; the others wait
    column_id {text} NOT NULL REFERENCES table_columns(id) ON DELETE CASCADE,
    paper {text} NOT NULL,
    state {text} NOT NULL,              -- "waiting", "found", "not_found" or "failed"
    findings {text} NOT NULL,           -- JSON: quotes with their places, and their values
    edit {text} NOT NULL,               -- a person's text; '' for none
    error {text} NOT NULL,              -- JSON: why it failed; '' for none
    changed {integer} NOT NULL,         -- `changes` of the table at its last change
    crc {integer} NOT NULL,             -- CRC-32 of state, findings, edit and error
    PRIMARY KEY (column_id, paper)
);
CREATE INDEX table_cells_paper ON table_cells(paper);
-- What is being asked now, by servers and other programs
CREATE TABLE table_fills (
    table_id {text} NOT NULL REFERENCES evidence_tables(id) ON DELETE CASCADE,
    column_id {text} NOT NULL, paper {text} NOT NULL, -- of one cell; '' for all cells that wait
    server {text} NOT NULL,
    until {text} NOT NULL,              -- ISO time in UTC: if the server does not say so again, it was killed
    stops {integer} NOT NULL,           -- 1: a person has stopped it
    reading {text} NOT NULL,            -- the paper that is being asked; '' for none yet
    PRIMARY KEY (table_id, column_id, paper)
);
""",
    9: """
CREATE TABLE projects (
    id {text} PRIMARY KEY,
    name {text} NOT NULL, about {text} NOT NULL, -- a person's words
    created {text} NOT NULL, updated {text} NOT NULL, -- ISO times in UTC
    crc {integer} NOT NULL              -- CRC-32 of all columns above but the last time
);
CREATE TABLE project_members (          -- what a project has (projects.py)
    project {text} NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
    kind {text} NOT NULL,
    item {text} NOT NULL,               -- its id, which need not exist now; of a rule, its filter as JSON
    title {text} NOT NULL,              -- of a paper, for when it is removed
    added {text} NOT NULL,              -- ISO time in UTC
    crc {integer} NOT NULL,             -- CRC-32 of all columns above
    PRIMARY KEY (project, kind, item)
);
CREATE INDEX project_members_item ON project_members(kind, item);
CREATE TABLE query_scopes (             -- what questions of the log were asked of, in words
    query {integer} NOT NULL REFERENCES queries(id) ON DELETE CASCADE,
    scope {text} NOT NULL,
    crc {integer} NOT NULL,             -- CRC-32 of all columns above
    UNIQUE (query)
);
""",
    10: """
-- What a person asks of the wording of answers: "answer in two sentences"
CREATE TABLE instructions (
    id {text} PRIMARY KEY,
    name {text} NOT NULL, text {text} NOT NULL,
    created {text} NOT NULL, updated {text} NOT NULL, -- ISO times in UTC
    crc {integer} NOT NULL              -- CRC-32 of the columns that a person wrote
);
-- The instruction that a project's questions are asked with, if no other is chosen
CREATE TABLE project_instructions (
    project {text} PRIMARY KEY,
    instruction {text} NOT NULL         -- its id
);
""",
    11: """
-- Cited pages that a person opened from an answer of the log
CREATE TABLE opened_citations (
    query {integer} NOT NULL REFERENCES queries(id) ON DELETE CASCADE,
    paper {text} NOT NULL,              -- SHA-256 of its file
    page {integer} NOT NULL,            -- physical, from 1
    opened {text} NOT NULL,             -- ISO time in UTC, of the first time
    PRIMARY KEY (query, paper, page)
);
""",
}
USER_VERSION = max(USER_ADDED)

# Table -> the columns whose values identify the row that an insert replaces
KEYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("meta", "kept"), ("key",)),
    "failures": ("path",),
    "pending": ("text_hash",),
    "works": ("id",),
    **dict.fromkeys(("paper_vectors", "paper_works", "readings", "removals"), ("paper",)),
    "metadata": ("paper", "source"),
    "citations": ("citing", "cited"),
    "notices": ("work", "kind", "link", "source"),
    "conversations": ("id",),
    "answering": ("conversation",),
    "citation_names": ("kind", "name", "paper"),
    "table_rows": ("table_id", "paper"),
    "table_cells": ("column_id", "paper"),
    "table_fills": ("table_id", "column_id", "paper"),
    "project_members": ("project", "kind", "item"),
    "query_scopes": ("query",),
    "project_instructions": ("project",),
    "instructions": ("id",),
    "opened_citations": ("query", "paper", "page"),
}
TABLES = {"library": LIBRARY, "user": USER + "".join(USER_ADDED.values())}
NAMES = {part: re.findall(r"CREATE TABLE (\w+)", text) for part, text in TABLES.items()}
COLUMNS = {
    table: re.findall(r'"?(\w+)"? \{(?:text|integer|real|bytes)\}', re.sub(r"--[^\n]*", "", body))
    for table, body in re.findall(r"CREATE TABLE (\w+) (\(.*?)\)(?:\{keyed\})?;", "".join(TABLES.values()), re.S)
}
# Table -> the columns that identify each row
ROW_KEYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("papers", "chunks", "queries", "turns", "notes", "evidence_tables", "table_columns", "projects"), ("id",)
    ),
    "note_quotes": ("note", "place"),
    "note_origins": ("note",),
    "pins": ("conversation",),
    "texts": ("paper",),
    "files": ("path",),
    "vectors": ("chunk",),
    "removed": ("chunk", "generation"),
    "work_marks": ("mark", "work"),
    **KEYS,
}
# Part -> its table with values about the whole part
FIRST = {"library": "meta", "user": "kept"}


def statements(text: str, types: Mapping[str, str], schema: str = "") -> list[str]:
    """The statements that create tables. types: the engine's type names. schema: the schema to create them in."""
    text = re.sub(r"--[^\n]*", "", text)
    if schema:
        text = re.sub(r"CREATE (TABLE|INDEX) ", rf"CREATE \1 {schema}.", text)
    return [statement.strip().format_map(types) for statement in text.split(";") if statement.strip()]


def added_since(version: int) -> str:
    """The tables that the user data of an older version lacks."""
    return "".join(tables for number, tables in USER_ADDED.items() if number > version)


def first_rows(part: Literal["library", "user"]) -> dict[str, str]:
    """The content of the table `meta` or `kept` of a new library."""
    if part == "user":
        return {"version": str(USER_VERSION), "said": "0"}
    counts = dict.fromkeys(("generation", "chunks", "fine", "described"), "0")
    return {"version": str(LIBRARY_VERSION), "epoch": uuid.uuid4().hex, **counts}


T = TypeVar("T")
# "library": the data made from the PDFs. "user": the data that people and services added, here called user data.
Part = Literal["library", "user"]

INGEST = f"`{command('ingest')}`"
DAMAGED = (
    f"Run `{command('ingest --rebuild')}`: it sets the damaged file aside, keeps your questions, conversations and"
    " edits, and reads your PDFs again."
)
USER_DATA_CHANGED = (
    f"Run `{command('ingest --repair')}`: it restores unreadable parts from a copy of an earlier day, or deletes them."
)
# Seconds to wait for another process's transaction, which normally takes far less than one
BUSY_TIMEOUT_S = 30.0


class UserDataChanged(ValueError):
    """User data has changed since it was written, and a rebuild cannot restore it."""


class Database(ABC):
    """A connection. Raises StoreError and its subclasses, never an engine's own errors."""

    place: str  # its location, in words

    @property
    @abstractmethod
    def is_read_only(self) -> bool:
        """Whether it cannot be written."""

    def require_writable(self, what: str) -> None:
        """Raises StoreProtected if it cannot be written. what: is to be stored, as in "Notes"."""
        if self.is_read_only:
            raise StoreProtected(
                f"{what} cannot be kept here: the folder of the index cannot be written.",
                "Make it writable, and try again.",
            )

    @abstractmethod
    def identity(self) -> Hashable:
        """A value that changes when another library replaces this one; None while there is none."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def query(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """The rows of a query. `:name` in it takes the value of that name."""

    @abstractmethod
    def execute(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """Run a writing statement; returns the rows of its RETURNING clause."""

    @abstractmethod
    def execute_many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Run a writing statement once for each row of named values."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see the same state. Inside another snapshot or transaction, that one's state."""
        if self.in_snapshot:
            yield
            return
        self._begin_snapshot()
        try:
            yield
        finally:
            self._end_snapshot()

    @abstractmethod
    def _begin_snapshot(self) -> None: ...

    @abstractmethod
    def _end_snapshot(self) -> None: ...

    @property
    @abstractmethod
    def in_snapshot(self) -> bool:
        """Whether a snapshot or a transaction is open."""

    @abstractmethod
    def transaction(
        self, part: Part | Literal["both"] = "both", wait_s: float = BUSY_TIMEOUT_S
    ) -> AbstractContextManager[None]:
        """Commits everything written inside, or nothing. Each part has one transaction at a time.

        part: what may be changed; other transactions may change the other part meanwhile. Raises StoreBusy if another
        process's transaction takes longer than `wait_s` seconds.
        """

    def repeat(self, do: Callable[[], T]) -> T:
        """The result of `do`, which is done again if the connection to a server is lost meanwhile. It must be safe to
        do again, and begin every transaction that it needs; inside one, it is done once."""
        return do()

    @abstractmethod
    def purge(self) -> None:
        """Overwrite deleted data as far as the engine can, because questions may be private."""

    @abstractmethod
    def faults(self, part: Part) -> list[str]:
        """The faults in the structure of a part, one sentence each; reads all of it.

        Raises StoreError if it cannot be read now, which proves no fault.
        """

    def damaged(self, fault: str) -> StoreDamaged:
        """The error for damaged data. fault: a clause, "a vector is not of unit length"."""
        return StoreDamaged(f"The library {self.place} is damaged: {fault}.", DAMAGED)

    def unusable(self, reason: object, remedy: str = "") -> StoreError:
        """The error for a library that cannot be read or written now, which proves no damage."""
        return StoreError(
            f"The library {self.place} cannot be used now: {reason}.",
            remedy or "Run the same command again. If that does not help, check where it is kept.",
        )

    @contextmanager
    def rows_expected(self) -> Iterator[None]:
        """Turns errors of converting rows into StoreDamaged: a row that fails has changed since it was written."""
        try:
            yield
        except FolioError:
            raise
        except UserDataChanged as error:
            raise StoreDamaged(self.damaged(clause(error)).happened, USER_DATA_CHANGED) from error
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
            raise self.damaged(clause(error)) from error

    def read(self, make: Callable[..., T], sql: str, /, **values: object) -> list[T]:
        """make(*row) for each row of a query. Raises StoreDamaged if `make` raises."""
        rows = self.query(sql, **values)
        with self.rows_expected():
            return [make(*row) for row in rows]

    def insert(self, table: str, rows: Iterable[Mapping[str, object]], *, replace: bool = False) -> None:
        """Insert rows, all with the same columns. replace: replace rows with the same key (KEYS)."""
        listed = list(rows)
        if not listed:
            return
        names = list(listed[0])
        columns, values = ", ".join(f'"{name}"' for name in names), ", ".join(f":{name}" for name in names)
        sql = f"INSERT INTO {table} ({columns}) VALUES ({values})"
        if replace:
            changed = ", ".join(f'"{name}" = excluded."{name}"' for name in names if name not in KEYS[table])
            sql += f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {changed}"
        self.execute_many(sql, listed)


def clause(error: BaseException) -> str:
    """An error's text as a clause, without a full stop."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return one_line(str(error)).removesuffix(".") or type(error).__name__


def storable(text: str) -> str:
    """The text with U+FFFD for characters that no engine stores: lone surrogates and U+0000."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def findable(values: Mapping[str, object]) -> dict[str, object]:
    """The values of a query in their stored form, so that characters that no engine stores cause no error."""

    def stored(value: object) -> object:
        if isinstance(value, list):
            return [stored(each) for each in value]
        return storable(value) if isinstance(value, str) else value

    return {name: stored(value) for name, value in values.items()}


class _WithDatabase(Protocol):
    database: Database


P = ParamSpec("P")
W = TypeVar("W", bound=_WithDatabase)


def repeated(method: Callable[Concatenate[W, P], T]) -> Callable[Concatenate[W, P], T]:
    """A method whose work is safe to do again: see Database.repeat."""

    @wraps(method)
    def run(self: W, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.database.repeat(lambda: method(self, *args, **kwargs))

    return run


class _Closeable(Protocol):
    def close(self) -> None: ...


@contextmanager
def closed_on_error(opened: _Closeable) -> Iterator[None]:
    """Closes `opened` if the block raises; otherwise it stays open."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
