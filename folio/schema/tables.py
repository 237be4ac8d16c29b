"""Evidence tables as JSON models, for the web API and `folio table show --json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from folio.errors import UsageError
from folio.grounding.quantities import is_unit
from folio.schema.papers import Count, FromOne, PaperSpan, Sha256, Strict, With
from folio.schema.web import NOT_BLANK, TABLE, ErrorBody, FilterRequest, PaperIds, TableId
from folio.shown_text import short_line
from folio.store.table_places import PlacedTable
from folio.store.tables import MAX_COLUMNS, Counts, EvidenceTable, StoredFinding, TableCell, TableColumn
from folio.table.cell import ColumnKind
from folio.table.filling import as_column
from folio.table.scope import Scope
from folio.table.shown import ShownTable
from folio.table.suggested import SuggestedColumn
from folio.table.values import number_in
from folio.text import one_line

MAX_NAME, MAX_QUESTION, MAX_UNIT, MAX_CHOICES, MAX_EDIT = 200, 2_000, 50, 50, 10_000
ColumnId = Annotated[str, Field(pattern=TABLE, description="Returned with a new column.")]
ProjectId = Annotated[str, Field(max_length=100)]
Name = Annotated[str, Field(pattern=NOT_BLANK, max_length=MAX_NAME)]
ColumnQuestion = Annotated[str, Field(max_length=MAX_QUESTION)]
Unit = Annotated[str, Field(max_length=MAX_UNIT)]
Choices = Annotated[list[Annotated[str, Field(pattern=NOT_BLANK, max_length=MAX_NAME)]], Field(max_length=MAX_CHOICES)]
RowState = Literal["here", "removed"]
CellState = Literal["waiting", "running", "found", "not_found", "failed", "edited"]
Again = Literal["failed", "not_found", "stale"]


def _failed() -> list[Again]:
    return ["failed"]


# Requests


class NewColumn(Strict):
    """A question that is put to each paper."""

    name: Name
    """The heading."""
    question: ColumnQuestion = ""
    """Empty: the name is asked for."""
    kind: ColumnKind = "text"
    unit: Unit = ""
    """Of a column of numbers, which its cells are converted to for sorting; empty for any unit, or none."""
    choices: Choices = Field(default_factory=list)
    """Of a column of the kind "choice"."""


class ColumnChanges(Strict):
    """Changes of a column; null leaves a value as it is. With another question, kind, unit or choices its cells wait to
    be asked again, but edited ones stay."""

    name: Name | None = None
    question: ColumnQuestion | None = None
    kind: ColumnKind | None = None
    unit: Unit | None = None
    choices: Choices | None = None


class TableFilter(FilterRequest):
    """Papers: chosen ones, or those that fit; all without a field. A table asks whole papers, not sections."""

    section: Annotated[list[str], Field(max_length=0)] = Field(default_factory=list)


class NewTable(Strict):
    name: Annotated[str, Field(max_length=MAX_NAME)] = ""
    """Empty: named after its papers."""
    project: ProjectId = ""
    """The project that it belongs to; empty for none."""
    filter: TableFilter = TableFilter()
    follows: bool = True
    """Whether papers that are added later and fit get their rows. Chosen papers alone are never followed."""
    columns: Annotated[list[NewColumn], Field(max_length=MAX_COLUMNS)] = Field(default_factory=list)
    fill: bool = False
    """Begin to fill it at once."""


class TableChanges(Strict):
    """Changes of a table; null leaves a value as it is."""

    name: Name | None = None
    project: ProjectId | None = None
    follows: bool | None = None
    columns: Annotated[list[ColumnId], Field(max_length=MAX_COLUMNS)] | None = None
    """The ids of all its columns, in their new order."""


class NewRows(Strict):
    papers: Annotated[PaperIds, Field(min_length=1)]


class FillRequest(Strict):
    """What is asked besides the cells that wait. Edited cells are never asked."""

    again: list[Again] = Field(default_factory=_failed)
    """"failed": cells that failed. "not_found": those without an answer, for another model. "stale": those whose quotes
    are no longer in the text of their paper."""


class CellEdit(Strict):
    text: Annotated[str, Field(pattern=NOT_BLANK, max_length=MAX_EDIT)]
    before: Annotated[str, Field(max_length=MAX_EDIT)] | None = None
    """The `edit` that was shown. If the cell has another one nothing is changed (409). Null changes it anyway."""


# Replies and events


class TableStateJson(Strict):
    """What a table and its summary share."""

    id: TableId
    name: str
    project: str
    """Empty for none."""
    found: Count
    """The number of its cells in this state. Edited cells count as found."""
    not_found: Count
    waiting: Count
    """Cells that were not asked yet, also those that are being asked."""
    failed: Count
    filling: bool
    """Whether it is being filled, by this server or another program."""
    problem: ErrorBody | None
    """Why filling ended before all cells were asked, unless a person stopped it; else null."""
    updated: str
    """ISO time in UTC."""


class TableSummaryJson(TableStateJson):
    """A table in a list."""

    rows: Count
    """Their number."""
    columns: Count


class TableList(Strict):
    tables: list[TableSummaryJson]
    """The last changed one first."""


class ColumnJson(NewColumn):
    id: ColumnId


class RowJson(Strict):
    """A paper of a table. Of a removed paper, what was known of it last."""

    paper: Sha256
    key: str
    """Its citation key, as in the exported BibTeX."""
    label: str
    """Its name in citations: "Ongaro & Ousterhout 2014"."""
    title: str
    year: int | None
    file: str
    state: RowState


class FindingJson(Strict):
    """Words of a paper that answer a column's question."""

    quote: Annotated[str, Field(min_length=1)]
    """Verbatim, with the line breaks of the page."""
    page: FromOne
    """Physical page of the quote, from 1."""
    label: str
    """The label printed on the page, or its number."""
    section: str
    """The section of the quote, such as "§5.2 Leader election"; empty if unknown."""
    start: Count
    """Start of the quote in the text of its page, in characters."""
    end: FromOne
    span: PaperSpan
    """Start and end of the quote in the text of the paper."""
    value: str
    """What to show first: "23 km", "yes", one of the choices, or a model's words; empty for the quote."""
    number: float | None
    """Of a column of numbers, in the unit of the column; null if it cannot be converted."""
    unit: str
    """The unit of `number`; empty for none."""
    by_model: bool
    """Whether `value` is in a model's words."""


class CellJson(Strict):
    paper: Sha256
    column: ColumnId
    state: CellState
    """"edited": it has a person's text, whatever was found."""
    findings: list[FindingJson]
    """Several: places that disagree, best first. Of an edited cell, what was found."""
    closest: FindingJson | None
    """Of a cell that was not found, the place of the paper that comes closest. It may not answer. Null for none."""
    edit: str
    """The person's text; empty for none."""
    edit_number: float | None
    """Of an edited cell in a column of numbers, its number in the unit of the column; null if it cannot be read."""
    stale: bool
    """Whether the text of the paper has changed, and does not have one of the quotes any more."""
    error: ErrorBody | None
    """Why it failed; null unless it did."""
    changed: Count
    """Grows with every change in the table; 0 for a cell that was never asked."""


class TableJson(TableStateJson):
    scope: str
    """Its papers in words: "12 papers, tagged consensus"."""
    filter: TableFilter
    """Its papers, as they were chosen."""
    follows: bool
    """Whether papers that are added later and fit get their rows."""
    columns: list[ColumnJson]
    rows: list[RowJson]
    """By year, the latest first, then by label."""
    cells: list[CellJson]
    """One for each row and column, also those that wait."""
    changed: Count
    """The number of the table's last change, for `since`."""


class ChangedCells(Strict):
    """What changed in a table since a change of a known number."""

    cells: list[CellJson]
    """Those that changed, and those that are being asked by themselves."""
    running: list[Sha256]
    """The papers that are being asked now: their waiting cells are `running`, those of other papers are not."""
    reload: bool
    """Whether rows, columns or the table itself changed: then load the whole table."""
    changed: Count
    found: Count
    not_found: Count
    waiting: Count
    failed: Count
    filling: bool
    problem: ErrorBody | None


class SuggestedColumnJson(NewColumn):
    papers: Count
    """The number of papers with such a heading or caption."""


class SuggestedColumns(Strict):
    columns: list[SuggestedColumnJson]
    """Best first."""


# From what is stored


def column_of(new: NewColumn, id: str) -> TableColumn:
    """A column to be stored. Raises UsageError for a choice column without choices, or an unknown unit."""
    if new.kind == "choice" and len(set(new.choices)) < 2:
        raise UsageError("A column of choices has at least two.", "Give them.")
    if new.kind == "number" and new.unit.strip() and not is_unit(new.unit.strip()):
        raise UsageError(f"“{short_line(new.unit, 40)}” is an unknown unit.", "Use one such as mg, km/h, % or weeks.")
    choices = tuple(dict.fromkeys(one_line(choice) for choice in new.choices)) if new.kind == "choice" else ()
    unit = new.unit.strip() if new.kind == "number" else ""
    return TableColumn(id, one_line(new.name), new.question.strip(), new.kind, unit, choices)


def changed_column(column: TableColumn, changes: ColumnChanges) -> TableColumn:
    """Raises UsageError as column_of does."""
    given = {name: value for name, value in changes if value is not None}
    return column_of(NewColumn.model_validate({**column_json(column).model_dump(exclude={"id"}), **given}), column.id)


def column_json(column: TableColumn) -> ColumnJson:
    return ColumnJson.model_validate(With(column, choices=list(column.choices)))


def suggested_json(suggested: Iterable[SuggestedColumn]) -> SuggestedColumns:
    columns = (With(each.column, choices=list(each.column.choices), papers=each.papers) for each in suggested)
    return SuggestedColumns(columns=list(map(SuggestedColumnJson.model_validate, columns)))


def summary_json(table: EvidenceTable, counts: Counts, project: str = "") -> TableSummaryJson:
    """project: the id of the project that it belongs to; "" for none."""
    return TableSummaryJson(**_state(table, counts), project=project, rows=counts.rows, columns=counts.columns)


def table_json(shown: ShownTable, project: str = "") -> TableJson:
    """A table with all of its cells. project: see summary_json."""
    table = shown.table
    return TableJson(
        **_state(table, shown.counts),
        project=project,
        scope=shown.scope,
        filter=TableFilter.model_validate(dict(table.scope)),
        follows=table.follows and Scope.from_json(table.scope).can_grow,
        columns=list(map(column_json, table.columns)),
        rows=[
            RowJson.model_validate(
                With(
                    row,
                    key=shown.keys.get(row.paper, ""),
                    state="here" if row.paper in shown.placed.papers else "removed",
                )
            )
            for row in table.rows
        ],
        cells=[cell_json(shown.placed, column, row.paper) for row in table.rows for column in table.columns],
        changed=table.changes,
    )


def changed_cells(placed: PlacedTable, counts: Counts, since: int) -> ChangedCells:
    """What changed since. placed: with the cells that changed since."""
    table = placed.table
    asked = [(fill.column, fill.paper) for fill in table.fills if fill.column]
    state, papers = _state(table, counts), {row.paper for row in table.rows}
    columns = {column.id: column for column in table.columns}
    return ChangedCells(
        cells=[
            cell_json(placed, columns[column], paper)
            for column, paper in dict.fromkeys([*table.cells, *asked])
            if column in columns and paper in papers
        ],
        running=[fill.reading for fill in table.fills if not fill.column and fill.reading in papers],
        reload=table.shape > since,
        changed=table.changes,
        **{name: state[name] for name in ("found", "not_found", "waiting", "failed", "filling", "problem")},
    )


def cell_json(placed: PlacedTable, column: TableColumn, paper: str) -> CellJson:
    cell = placed.table.cells.get((column.id, paper), TableCell())
    state: CellState = "edited" if cell.edit else cell.state
    fills = placed.table.fills
    if any(fill.key[1:] == (column.id, paper) or (fill.reading == paper and cell.is_open) for fill in fills):
        state = "running"
    return CellJson(
        paper=paper,
        column=column.id,
        state=state,
        findings=[_finding_json(finding, column) for finding in cell.findings],
        closest=_finding_json(cell.shown_closest, column) if cell.shown_closest else None,
        edit=cell.edit,
        edit_number=number_in(as_column(column), cell.edit) if cell.edit and column.kind == "number" else None,
        stale=placed.is_stale(paper, cell),
        error=_error_body(cell.error),
        changed=cell.changed,
    )


def _finding_json(finding: StoredFinding, column: TableColumn) -> FindingJson:
    quote = finding.quote
    return FindingJson(
        quote=quote.quote,
        page=quote.page,
        label=quote.label,
        section=finding.section,
        start=quote.start - finding.page_start,
        end=quote.end - finding.page_start,
        span=(quote.start, quote.end),
        value=finding.value,
        number=finding.number,
        unit=column.unit if finding.number is not None else "",
        by_model=finding.by_model,
    )


def _state(table: EvidenceTable, counts: Counts) -> dict[str, Any]:
    """The fields of TableStateJson, without its project."""
    return {
        **{name: getattr(table, name) for name in ("id", "name", "updated")},
        **{name: getattr(counts, name) for name in ("found", "not_found", "waiting", "failed")},
        "filling": any(not fill.column for fill in table.fills),
        "problem": _error_body(table.problem),
    }


def _error_body(error: tuple[str, str] | None) -> ErrorBody | None:
    return ErrorBody(error=error[0], remedy=error[1]) if error else None
