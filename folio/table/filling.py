"""Fills tables cell by cell. Each cell is stored as soon as it is found, so that whoever is killed loses none.

What a program asks is held by it as long as it says so again (store/tables.py). A cell that was edited or asked
elsewhere meanwhile stays as it is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from secrets import token_urlsafe
from threading import Condition, Event, Thread
from typing import Protocol, get_args

from folio.answer_types import AnswerStopped
from folio.errors import FolioError, ModelError, StoreAway, StoreBusy, StoreError
from folio.papers.model import Paper
from folio.store import tables
from folio.store.library import Library
from folio.store.table_places import placed, stored_finding
from folio.store.tables import Fill, TableCell, TableColumn
from folio.table.cell import Cell, Column, ColumnKind
from folio.table.scope import add_later_papers

logger = logging.getLogger(__name__)

# Papers after another of which no cell could be asked, because of a model: then no further one is asked
MOST_FAILING = 3
_MOST_TRIES = 2  # of a cell whose paper or column changes while it is asked
_INTERNAL = ("This cell failed with an internal error.", "Ask it again. The terminal that Folio runs in shows details.")


class Finder(Protocol):
    """Finds the cells of one paper: table/finder.py."""

    def fill(
        self, paper: Paper, columns: Sequence[Column], check_cancelled: Callable[[], None]
    ) -> Iterator[tuple[int, Cell]]:
        """The index of a column and its cell, each as soon as it is found. Raises ModelError, and what
        `check_cancelled` raises."""
        ...


@dataclass(frozen=True, slots=True)
class Landed:
    """A cell that was asked."""

    paper: Paper
    column: TableColumn
    cell: TableCell


OnCell = Callable[[Landed], None]


@dataclass(eq=False)
class Filling:
    """What this program asks: all cells of a table that wait, or one."""

    fill: Fill
    server: str = field(default_factory=token_urlsafe)
    stopped: Event = field(default_factory=Event)


class Filler:
    """Thread-safe. Each filling opens the library for itself."""

    def __init__(self, open_library: Callable[[], Library], make_finder: Callable[[Library], Finder]) -> None:
        self._open_library = open_library
        self._make_finder = make_finder
        self._held: dict[str, Filling] = {}
        self._changed = Condition()
        self._keeper: Thread | None = None

    def begin(self, fill: Fill, *, resumes: bool = False) -> Filling | None:
        """Hold what is to be asked; None if another program asks it. `run` must be called next, or `leave`.

        resumes: see tables.begin. Raises NotKnown, StoreProtected, StoreMissing.
        """
        filling = Filling(fill)
        with closing(self._open_library()) as library:
            if not tables.begin(library.database, fill, filling.server, resumes=resumes):
                return None
        with self._changed:
            self._held[filling.server] = filling
            if self._keeper is None:
                self._keeper = Thread(target=self._keep, name="table-fills", daemon=True)
                self._keeper.start()
        return filling

    def run(
        self,
        filling: Filling,
        on_cell: OnCell = lambda landed: None,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        """Ask what was begun, and end it. Raises AnswerStopped if it was stopped, and what the callbacks raise."""

        def check() -> None:
            check_cancelled()
            if filling.stopped.is_set():
                raise AnswerStopped

        problem: tuple[str, str] | None = None
        try:
            problem = self._ask(filling, on_cell, check)
        except FolioError as error:
            if not isinstance(error, StoreBusy | StoreAway):  # these pass, and a server resumes the filling then
                problem = error.happened, error.remedy
            raise
        finally:
            self.leave(filling, problem)

    def leave(self, filling: Filling, problem: tuple[str, str] | None = None) -> None:
        """End a filling, as far as the library can be written."""
        with self._changed:
            self._held.pop(filling.server, None)
            self._changed.notify_all()
        with suppress(FolioError, OSError), closing(self._open_library()) as library:
            tables.end(library.database, filling.fill, filling.server, problem)

    def stop(self, table: str) -> None:
        """Stop filling a table, here or elsewhere. Cells that are asked by themselves go on. Raises NotKnown."""
        with closing(self._open_library()) as library:
            tables.stop(library.database, table)
        with self._changed:
            for filling in self._held.values():
                if filling.fill.table == table and not filling.fill.column:
                    filling.stopped.set()

    def _keep(self) -> None:
        """Say again and again what is held here; stop what was stopped, deleted or taken over elsewhere."""
        library: Library | None = None
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: not self._held, tables.RENEW_S)
                    if not self._held:
                        self._keeper = None
                        return
                    held = dict(self._held)
                try:
                    library = library or self._open_library()
                    renewed = tables.renew(library.database, held)
                except (FolioError, OSError) as error:  # it is said again soon
                    logger.debug("Fillings could not be held: %s", error)
                    if library is not None:
                        library.close()
                        library = None
                    continue
                for server, filling in held.items():
                    if server not in renewed:
                        filling.stopped.set()
        finally:
            if library is not None:
                library.close()

    def _ask(self, filling: Filling, on_cell: OnCell, check: Callable[[], None]) -> tuple[str, str] | None:
        """Ask paper by paper. Returns why cells were left, if a model cannot be used."""
        queue, failing = _Queue(filling.fill), 0
        with _Opened(self._open_library, self._make_finder) as opened:
            while True:
                check()
                library, finder = opened.current()
                found = queue.next(library)
                if found is None:
                    return None
                problem = _Asking(library, finder, filling, on_cell, check, queue).ask(*found)
                failing = failing + 1 if problem else 0
                if problem and failing >= MOST_FAILING:
                    return problem


class _Opened:
    """The library, and a finder over it; both are made again when another library replaces it."""

    def __init__(self, open_library: Callable[[], Library], make_finder: Callable[[Library], Finder]) -> None:
        self._open_library, self._make_finder = open_library, make_finder
        self._library: Library | None = None
        self._finder: Finder | None = None
        self._state: object = None

    def current(self) -> tuple[Library, Finder]:
        """Raises StoreMissing, StoreMismatch, ModelError."""
        if self._library is not None and (self._library.identity(), self._library.fingerprint()) != self._state:
            self._close()
        if self._library is None or self._finder is None:
            self._library = self._open_library()
            self._state = self._library.identity(), self._library.fingerprint()
            self._finder = self._make_finder(self._library)
        return self._library, self._finder

    def _close(self) -> None:
        if self._library is not None:
            self._library.close()
        self._library = self._finder = None

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


class _Queue:
    """The papers of which cells are to be asked, in the order in which the table is shown."""

    def __init__(self, fill: Fill) -> None:
        self._fill = fill
        self._papers: list[str] = []
        self._state: object = None  # of the library and of the rows and columns, for which that list is made
        self._tries: dict[tuple[TableColumn, str], int] = {}

    def tried(self, column: TableColumn, paper: str, *, is_done: bool = False) -> None:
        """Count a try. is_done: the cell is not asked again."""
        tries = self._tries.get((column, paper), 0)
        self._tries[column, paper] = _MOST_TRIES if is_done else tries + 1

    def next(self, library: Library) -> tuple[Paper, list[TableColumn]] | None:
        """The next paper, and the columns that wait for it; None if none is left. Raises NotKnown."""
        state = library.state(), tables.shape(library.database, self._fill.table)
        if state != self._state:
            self._papers = self._listed(library)
            self._state = library.state(), tables.shape(library.database, self._fill.table)
        while True:
            for paper in library.papers_by_id(self._papers[:1]):
                if columns := self._open(tables.cells_of_paper(library.database, self._fill.table, paper.id), paper.id):
                    return paper, columns
            del self._papers[:1]
            if not self._papers:
                self._papers = self._listed(library)
                if not self._papers:
                    return None

    def _listed(self, library: Library) -> list[str]:
        if chosen := self._fill.paper:
            columns = self._open(tables.cells_of_paper(library.database, self._fill.table, chosen), chosen)
            return [paper.id for paper in library.papers_by_id([chosen]) if columns]
        add_later_papers(library, [self._fill.table])
        table = placed(library, self._fill.table)
        return [
            row.paper
            for row in table.table.rows
            if row.paper in table.papers
            and self._open(
                {column: table.table.cells.get((column.id, row.paper), TableCell()) for column in table.table.columns},
                row.paper,
            )
        ]

    def _open(self, cells: Mapping[TableColumn, TableCell], paper: str) -> list[TableColumn]:
        """The columns of a paper's cells that are to be asked."""
        return [
            column
            for column, cell in cells.items()
            if self._tries.get((column, paper), 0) < _MOST_TRIES
            and (column.id == self._fill.column if self._fill.column else cell.is_open)
        ]


@dataclass
class _Asking:
    """Asks the cells of one paper."""

    library: Library
    finder: Finder
    filling: Filling
    on_cell: OnCell
    check: Callable[[], None]
    queue: _Queue

    def ask(self, paper: Paper, columns: Sequence[TableColumn]) -> tuple[str, str] | None:
        """Returns the error of a model, if no cell could be asked because of it."""
        tables.set_reading(self.library.database, self.filling.fill, self.filling.server, paper.id)
        left = dict(enumerate(columns))
        for column in columns:
            self.queue.tried(column, paper.id)
        with closing(self._found(paper, columns)) as found:
            for place, result in found:
                for column in [left.pop(place)] if place is not None else list(left.values()):
                    cell = self._stored(paper, result)
                    if cell is not None and self._land(paper, column, cell):
                        self.queue.tried(column, paper.id, is_done=True)
                self.check()
                if isinstance(result, _ModelFailed) and len(left) == len(columns):
                    return result
        return None

    def _found(
        self, paper: Paper, columns: Sequence[TableColumn]
    ) -> Generator[tuple[int | None, Cell | tuple[str, str]]]:
        """The cells; and an error last, without a place, if the others failed. Raises AnswerStopped, StoreError."""
        try:
            yield from self.finder.fill(paper, [as_column(each) for each in columns], self.check)
        except (AnswerStopped, StoreError):
            raise
        except ModelError as error:
            yield None, _ModelFailed((error.happened, error.remedy))
        except FolioError as error:
            yield None, (error.happened, error.remedy)
        except Exception:
            logger.exception("Cells of paper %s failed.", paper.id[:12])
            yield None, _INTERNAL

    def _land(self, paper: Paper, column: TableColumn, cell: TableCell) -> bool:
        """Whether the cell was stored."""
        fill, server = self.filling.fill, self.filling.server
        if not tables.land(self.library.database, fill, server, column, paper.id, cell):
            return False
        self.on_cell(Landed(paper, column, cell))
        return True

    def _stored(self, paper: Paper, cell: Cell | tuple[str, str]) -> TableCell | None:
        """The cell as it is stored; None if the text of its paper has changed meanwhile. cell: or why it failed."""
        if isinstance(cell, tuple):
            return TableCell("failed", error=(cell[0], cell[1]))
        with self.library.reading():
            text = self.library.text(paper.id, 0, paper.length)
        closest = (cell.closest,) if cell.closest and not cell.findings else ()
        quotes = [*(finding.quote for finding in cell.findings), *closest]
        if any(quote.paper.id != paper.id or text[quote.start : quote.end] != quote.quote for quote in quotes):
            return None
        findings = tuple(
            stored_finding(paper, text, each.quote.span, each.value, each.number, by_model=each.by_model)
            for each in cell.findings
        )
        near = [stored_finding(paper, text, quote.span, "", None, by_model=False) for quote in closest]
        return TableCell("found" if findings else "not_found", findings, closest=next(iter(near), None))


class _ModelFailed(tuple[str, str]):
    """What happened to a model, and what to do."""


def ask_again(library: Library, table: str, again: Collection[str] = ("failed",)) -> None:
    """Let the cells in these states wait again; "stale" for those with a lost quote. Raises NotKnown."""
    now = placed(library, table)
    cells = [
        (column, paper)
        for (column, paper), cell in now.table.cells.items()
        if cell.state in again or ("stale" in again and now.is_stale(paper, cell))
    ]
    tables.ask_again(library.database, table, cells)


def as_stored(column: Column) -> TableColumn:
    """A new column to be stored."""
    return TableColumn(tables.new_id(), column.name, column.question, column.kind, column.unit, column.choices)


def as_column(column: TableColumn) -> Column:
    """What a stored column asks."""
    kind: ColumnKind = column.kind if column.kind in get_args(ColumnKind) else "text"  # type: ignore[assignment]
    return Column(column.name, column.question, kind, column.unit, column.choices)
