"""What the tools for other assistants take and give (folio/mcp). Another model reads all of it, so text of papers has
no control characters and nothing like markup of a prompt, and lists are short: a cursor gets what follows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from folio.answer.fencing import defused, harmless, harmless_line
from folio.answer_types import Disagreement, Outcome, Style
from folio.drafts.judging import Verdict
from folio.papers.label import sure_venue, sure_year
from folio.papers.model import Paper
from folio.papers.sections import Kind
from folio.schema.papers import Count, FromOne, PageRange, PaperSpan, Score, Strict
from folio.schema.web import FilterValue, FilterValues, PaperFields
from folio.store.instructions import MAX_NAME
from folio.store.note_places import MAX_QUOTE, Order, Place
from folio.store.notes import MAX_TEXT, Colour
from folio.table.cell import ColumnKind

MOST_AUTHORS, MOST_TAGS, MOST_LEFT_OUT = 10, 20, 10  # of a paper; of an answer
REF_LENGTH = 12  # characters of a paper's id that name it

_Text = Annotated[str, AfterValidator(harmless)]
_Line = Annotated[str, AfterValidator(harmless_line)]
_Citation = Annotated[str, Field(description="How to cite it."), AfterValidator(defused)]


# What tools take


class Arguments(Strict):
    """The arguments of a tool. A list may come as JSON text or as its only item: some clients send it so."""

    @model_validator(mode="before")
    @classmethod
    def _with_lists(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        lists = {name for name, field in cls.model_fields.items() if field.default_factory is list}
        return {name: _as_list(value) if name in lists else value for name, value in given.items()}


def _as_list(value: object) -> object:
    if not isinstance(value, str):
        return value
    with suppress(ValueError, RecursionError):
        if isinstance(parsed := json.loads(value), list):
            return parsed
    return [value] if value.strip() else []


class Listing(Arguments):
    cursor: Annotated[str, Field(max_length=100)] = ""
    """`next_cursor` of the reply before, to go on from there; all other arguments as before."""


Query = Annotated[str, Field(pattern=r"\S", max_length=2_000)]
PaperName = Annotated[FilterValue, Field(description="A paper: `paper` of an earlier result, its file, or its title.")]


class Within(PaperFields):
    """Where to search."""

    papers: FilterValues = Field(default_factory=list)
    """Only these papers: `paper` of earlier results, files, or words of titles."""


class NoArguments(Arguments):
    pass


class SearchPassages(Within, Listing):
    query: Query
    limit: Annotated[int, Field(ge=1, le=20)] = 5


class AskLibrary(Within, Arguments):
    question: Query
    deep: bool = False
    """Search in rounds, for questions that need several papers. Takes longer."""
    style: Style = "plain"
    """"report": a summary and an analysis under headings."""
    instruction: Annotated[str, Field(max_length=MAX_NAME)] = ""
    """An instruction of the user's for the wording, by its name, such as "In two sentences"; empty for none."""


class CheckClaim(Arguments):
    claim: Query
    """One sentence."""
    papers: FilterValues = Field(default_factory=list)
    """Check it against these papers, as a whole: `paper` of earlier results, files, or titles. Empty: search all."""


class SearchPapers(PaperFields, Listing):
    query: Annotated[str, Field(max_length=500)] = ""
    """Words to rank papers by; empty lists all that fit."""
    limit: Annotated[int, Field(ge=1, le=50)] = 10


class ReadPages(Listing):
    paper: PaperName
    first: Annotated[int, Field(ge=1, le=10**6)] = 1
    """The first page, physical, from 1."""
    last: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """The last page; null for `first` alone."""
    max_characters: Annotated[int, Field(ge=200, le=50_000)] = 8_000


class PaperOutline(Listing):
    paper: PaperName
    limit: Annotated[int, Field(ge=1, le=500)] = 60
    """Most sections."""


class Cite(Arguments):
    papers: Annotated[FilterValues, Field(min_length=1, max_length=20)] = Field(default_factory=list)
    """`paper` of earlier results, files, or titles."""
    format: Literal["formatted", "bibtex", "csl"] = "formatted"
    """A line to read, a BibTeX entry, or a CSL-JSON item."""


class ListNotes(Listing):
    paper: Annotated[str, Field(max_length=500)] = ""
    """Only notes on this paper."""
    query: Annotated[str, Field(max_length=500)] = ""
    """Words that are all in the note, its quotes or the title of its paper."""
    order: Order = "place"
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class AddNote(Arguments):
    paper: PaperName
    words: Annotated[str, Field(pattern=r"\S", max_length=MAX_QUOTE)]
    """Words of the paper, as on its page, which the note is on."""
    page: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """The page with the words, if others have them too."""
    text: Annotated[str, Field(max_length=MAX_TEXT)] = ""
    """The note itself."""
    colour: Colour = ""


TableName = Annotated[FilterValue, Field(description="A table: `table` of an earlier result, or its name.")]


class ListTables(Listing):
    limit: Annotated[int, Field(ge=1, le=50)] = 20


class ReadTable(Listing):
    table: TableName
    columns: FilterValues = Field(default_factory=list)
    """Only these columns, by their names."""
    papers: FilterValues = Field(default_factory=list)
    """Only the rows of these papers: `paper` of earlier results, files, or words of titles."""
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    """Most rows."""


class MakeTable(Within, Arguments):
    columns: Annotated[FilterValues, Field(min_length=1)] = Field(default_factory=list)
    """What to ask each paper: "Sample size", "Drug: Which drug was given?", "Dose [number, mg]", "Blinded [yes/no]",
    "Design [one of: RCT; cohort]"."""
    name: Annotated[str, Field(max_length=200)] = ""
    """Empty: named after its papers."""


class FillTable(Arguments):
    table: TableName


# What they give


class PaperRef(Strict):
    """A paper, as other tools take it."""

    paper: str
    """Names the paper for the other tools."""
    uri: str
    """Its resource, or that of the page."""
    file: _Line
    title: _Line


class PassageItem(PaperRef):
    pages: PageRange
    section: _Line
    citation: _Citation
    text: _Text
    span: PaperSpan
    score: Score
    notice: _Line
    """A retraction, correction or the like of the paper, in words; empty if none is known."""


class PartOfList(Strict):
    """A part of a list."""

    next_cursor: str | None
    """Gets what follows; null at the end."""


class Passages(PartOfList):
    query: _Line
    passages: list[PassageItem]
    """Best first."""
    notice: str
    """What limited the search; empty if nothing did."""


class CitedQuote(PaperRef):
    page: FromOne
    """Physical, from 1."""
    label: _Line
    """The number printed on the page."""
    section: _Line
    citation: _Citation
    quote: _Text
    """The paper's own words."""
    start: Count
    """Where the quote begins in the text of its page, in characters."""
    end: FromOne
    span: PaperSpan | None
    differs: Disagreement | Literal[""] = ""
    """How the quote disagrees with the statement; empty if it supports it."""
    notice: _Line


class CheckedStatement(Strict):
    text: _Text
    outcome: Outcome
    """"quoted": the paper's own words. "reworded": a model's, which its quotes support."""
    verified_by: str
    """The verifier that agreed with a reworded statement; empty if none ran."""
    section: _Line
    citations: list[CitedQuote]
    against: list[CitedQuote]
    """Quotes of other papers that disagree."""


class LeftOut(Strict):
    text: _Text
    reason: _Line


class CheckedAnswer(Strict):
    question: _Line
    """As it was understood."""
    refused: bool
    """Whether the papers have no answer."""
    refusal: _Line
    """That nothing was found, and in which papers; empty for an answer."""
    searched: _Line
    """Which papers were asked: "12 papers in Consensus, 2000 to 2015"."""
    remark: str
    """Folio's own words in place of an answer."""
    statements: list[CheckedStatement]
    left_out: list[LeftOut]
    """Statements of a model that the papers do not support: do not repeat them."""
    left_out_count: Count
    missing: list[_Line]
    """The parts of the question that the papers do not answer."""
    proposed_searches: list[_Line]
    """Searches for papers that are not here, if something is missing. Nothing was sent: the person may run
    `folio ask --online`, which sends them after a yes."""
    warnings: list[_Line]
    """Cited papers that were retracted or the like."""
    notice: _Text
    model_failed: bool
    models: dict[str, str]


class ClaimCheck(Strict):
    claim: _Line
    verdict: Verdict
    """"quoted": in the paper's own words; "supported": one place says all of it; "contradicted": the place says the
    opposite; "number differs": it says this with another number; "not found": no place says it, or not so much."""
    reason: _Line
    """Why it is not supported; empty if it is."""
    citations: list[CitedQuote]
    """The place that supports or contradicts it, or the nearest one."""
    against: list[CitedQuote]
    """Of a supported claim: places of other papers that disagree."""
    papers: list[PaperRef]
    """The papers that it was checked against; empty for the whole library."""
    verified_by: str
    """The model that agreed; empty if none ran."""


class PaperItem(PaperRef):
    authors: list[_Line]
    more_authors: Count
    """How many are left out after these."""
    year: int | None
    venue: _Line
    doi: _Line
    arxiv: _Line
    pages: Count
    tags: list[_Line]
    notice: _Line
    best_pages: PageRange | None
    """The pages of its passage that fits the query best."""
    best_section: _Line


class Papers(PartOfList):
    papers: list[PaperItem]
    notice: str


class PageOfPaper(Strict):
    page: FromOne
    """Physical, from 1."""
    label: _Line
    """The number printed on it."""
    text: _Text
    start: Count
    """Where this text begins on the page, in characters: above 0 where a page is continued."""


class PagesRead(PaperRef, PartOfList):
    page_count: Count
    pages: list[PageOfPaper]


class OutlineSection(Strict):
    level: FromOne
    number: _Line
    title: _Line
    kind: Kind
    pages: PageRange


class Outline(PaperRef, PartOfList):
    citation_key: _Line
    authors: list[_Line]
    more_authors: Count
    year: int | None
    venue: _Line
    doi: _Line
    arxiv: _Line
    abstract: _Text
    page_count: Count
    problems: list[_Line]
    """What was odd when its file was read."""
    notice: _Line
    sections: list[OutlineSection]


class PaperCitation(Strict):
    paper: str
    citation_key: _Line
    text: _Text


class Citations(Strict):
    format: Literal["formatted", "bibtex", "csl"]
    citations: list[PaperCitation]


class NotePlace(PaperRef):
    page: Count
    """Physical, from 1; 0 for the whole paper."""
    label: _Line
    quote: _Text
    place: Place


class NoteItem(Strict):
    id: str
    text: _Text
    """The person's own words."""
    statement: _Text
    """A statement of an answer that was kept."""
    colour: Colour
    quotes: list[NotePlace]
    created: str
    updated: str


class Notes(PartOfList):
    notes: list[NoteItem]
    count: Count
    """Of all notes that fit."""


class AddedNote(Strict):
    note: NoteItem


class TableItem(Strict):
    table: str
    """Names the table for the other tools."""
    name: _Line
    row_count: Count
    column_count: Count
    found: Count
    """Cells with an answer; edited ones count."""
    not_found: Count
    waiting: Count
    """Cells that were not asked yet."""
    failed: Count
    filling: bool
    """Whether it is being filled now."""
    problem: _Line
    """Why filling ended before all cells were asked; empty if it did not."""
    updated: str


class Tables(PartOfList):
    tables: list[TableItem]
    """The last changed one first."""
    count: Count


class TableColumnItem(Strict):
    name: _Line
    question: _Line
    """Empty: the name is asked for."""
    kind: ColumnKind
    unit: _Line
    choices: list[_Line]


class FindingItem(Strict):
    """Words of a paper that answer a column."""

    value: _Text
    """What to show first: "23 km", "yes", one of the choices, or a model's words; empty for the quote."""
    by_model: bool
    """Whether `value` is in a model's words, which its quote supports."""
    number: float | None
    """In the unit of the column; null if there is none."""
    quote: _Text
    """The paper's own words."""
    citation: _Citation
    page: FromOne
    """Physical, from 1."""
    label: _Line
    """The number printed on the page."""
    section: _Line
    start: Count
    """Where the quote begins in the text of its page, in characters."""
    end: FromOne
    lost: bool
    """Whether the text of the paper has changed, and does not have the quote any more."""


class CellItem(Strict):
    column: _Line
    outcome: Literal["found", "not found", "edited", "failed", "waiting"]
    """"not found": the paper does not say it, as far as was found. "edited": it has the person's own text."""
    edit: _Text
    """The person's text; empty for none."""
    findings: list[FindingItem]
    """Several: places that disagree, best first. Of an edited cell, what was found."""
    closest: FindingItem | None
    """Of a cell that was not found, the place that comes closest. It may not answer: do not take it for an answer."""
    error: _Line
    """Why it failed; empty unless it did."""


class TableRowItem(PaperRef):
    year: int | None
    removed: bool
    """Whether the paper is no longer in the library."""
    cells: list[CellItem]


class TableRead(TableItem, PartOfList):
    scope: _Line
    """Its papers in words."""
    columns: list[TableColumnItem]
    rows: list[TableRowItem]


class LibraryStatus(Strict):
    ready: bool
    """Whether there is a paper to ask."""
    papers: Count
    pages: Count
    passages: Count
    notes: Count
    unreadable: Count
    """Files that could not be read."""
    writable: bool
    """Whether notes can be added."""
    models: dict[str, str]
    """Those that embed, rerank and answer."""
    notices: list[str]
    """What is missing, and what would improve answers."""


def names_of(people: Iterable[object]) -> dict[str, Any]:
    """The fields of authors, in a paper's item."""
    names = list(map(str, people))
    return {"authors": names[:MOST_AUTHORS], "more_authors": max(0, len(names) - MOST_AUTHORS)}


def paper_fields(paper: Paper) -> dict[str, Any]:
    """The fields that describe a paper, in its item and its outline. What is not sure is left out."""
    return {
        **names_of(paper.authors),
        "year": sure_year(paper.metadata),
        "venue": sure_venue(paper.metadata),
        "doi": paper.metadata.doi.value,
        "arxiv": paper.arxiv,
        "notice": notice_of(paper),
    }


def notice_of(paper: Paper) -> str:
    """A retraction, a correction or the like, in words."""
    return paper.flag.text if paper.flag else ""
