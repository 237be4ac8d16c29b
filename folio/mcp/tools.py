"""The tools: each takes checked arguments, calls what the terminal calls, and gives a result. No protocol here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from folio.answer import instructions
from folio.answer.chat import log_entry, warm_up
from folio.answer.fencing import harmless_line
from folio.answer_types import Answer, Checking, Quote, Sentence, Thinking, shown_citation, warnings
from folio.app import App
from folio.bibliography.export import bibtex, csl_item, reference
from folio.errors import ModelError, NotKnown, StoreError, StoreMissing, UsageError
from folio.mcp import shown
from folio.mcp.cursors import next_cursor, start_of
from folio.papers.model import Hit, Paper, require_page
from folio.schema import mcp as schema
from folio.schema.answers import event_json, event_line, logged_trace
from folio.schema.papers import Strict, papers_notice
from folio.schema.web import PaperFields, paper_filter
from folio.search.filters import PaperFilter, SectionFilter, fitting_papers
from folio.search.names import aliases_in, file_names, paper_in, the_paper
from folio.search.pool import Reader, RetrieverPool
from folio.search.retriever import NOTHING_KNOWN, SearchResult
from folio.shown_text import counted, name_line, short_line
from folio.store import notes, tables
from folio.store.instructions import Instruction
from folio.store.library import Library
from folio.store.note_places import NoteFilter, PlacedNote, listed, placed, quote_of
from folio.store.query_log import LogEntry
from folio.store.tables import (
    CellState,
    Counts,
    EvidenceTable,
    Fill,
    StoredFinding,
    TableColumn,
    TableRow,
)  # fmt: skip
from folio.store.works import publishers_bibtex
from folio.system.files import unusable
from folio.table.columns import read_columns
from folio.table.filling import Filler, as_column, as_stored, ask_again
from folio.table.scope import new_table, scope_of
from folio.table.shown import ShownTable, shown_table
from folio.text import one_line

if TYPE_CHECKING:
    from folio.deep.types import DeepEvent

A = TypeVar("A", bound=schema.Arguments)
R = TypeVar("R", bound=Strict)

URI = "folio://papers"
# A search ranks this many passages, as the terminal's does, and more only for those who go on
FIRST_PASSAGES, MOST_PASSAGES = 20, 100
_LONGEST_PROGRESS = 200  # characters
_MOST_NAMED = 5  # columns, in an error


class Call(Protocol):
    """The request that a tool works on."""

    def check_cancelled(self) -> None:
        """Called often; raises to end the work."""
        ...

    def report(self, message: str) -> None:
        """Tell the client what is being done. Raises as `check_cancelled`."""
        ...


class Backend:
    """What the tools work on. Thread-safe: each call has a library of its own."""

    def __init__(self, app: App, retrievers: RetrieverPool | None = None, *, writes: bool) -> None:
        """retrievers: those of a server, to share. writes: whether notes can be added and questions are logged."""
        self.app = app
        self.writes = writes
        self._retrievers = retrievers or RetrieverPool(app.open_library, app.retriever, app.open_indexes)
        self._owns_retrievers = retrievers is None

    def close(self) -> None:
        if self._owns_retrievers:
            self._retrievers.close()

    @contextmanager
    def library(self) -> Iterator[Library]:
        """Raises StoreMissing before the first ingest."""
        with closing(self.app.open_library()) as library:
            yield library

    @contextmanager
    def reader(self, call: Call) -> Iterator[Reader]:
        """A retriever over the library. Raises StoreMissing, StoreMismatch, ModelError."""
        with self._retrievers.acquire() as reader, reader.retriever.cancellable(call.check_cancelled):
            yield reader


@dataclass(frozen=True)
class Tool(Generic[A, R]):
    """A tool, without the protocol."""

    name: str
    title: str
    description: str
    arguments: type[A]
    result: type[R]
    run: Callable[[Backend, A, Call], R]
    show: Callable[[R], str]  # the result as text, with the text of papers fenced
    writes: bool = False


def ref_of(paper: Paper) -> str:
    """What names a paper in results, and for tools."""
    return paper.id[: schema.REF_LENGTH]


def _ref(paper: Paper, page: int | None = None) -> dict[str, Any]:
    """The fields of PaperRef."""
    ref = ref_of(paper)
    uri = f"{URI}/{ref}" if page is None else f"{URI}/{ref}/pages/{page}"
    return {"paper": ref, "uri": uri, "file": paper.file, "title": paper.title or paper.file}


# Search


def search_passages(backend: Backend, wanted: schema.SearchPassages, call: Call) -> schema.Passages:
    """Passages without an answer."""
    start = start_of(wanted)
    with backend.reader(call) as reader:
        retriever = reader.retriever
        chosen = retriever.select(paper_filter(wanted, papers=wanted.papers))
        call.report("Searching")
        find = partial(retriever.find_typed, wanted.query, within=chosen)
        end = start + wanted.limit
        hits, notice = _found(find, end + 1, call)
    return schema.Passages(
        query=wanted.query,
        passages=list(map(_passage, hits[start:end])),
        notice=notice,
        next_cursor=next_cursor(wanted, end) if len(hits) > end else None,
    )


def _found(find: Callable[..., SearchResult], most: int, call: Call) -> tuple[list[Hit], str]:
    """The passages of a search, at least `most` if there are so many, in an order that does not depend on it."""
    result = find(top_k=FIRST_PASSAGES)
    hits = list(result.hits)
    if most <= len(hits) or len(hits) < FIRST_PASSAGES:
        return hits, result.notice
    call.check_cancelled()
    further = find(top_k=MOST_PASSAGES)
    known = {hit.chunk.id for hit in hits}
    return [*hits, *(hit for hit in further.hits if hit.chunk.id not in known)], further.notice


def _passage(hit: Hit) -> schema.PassageItem:
    first, _ = hit.pages
    return schema.PassageItem(
        **_ref(hit.paper, first),
        pages=hit.pages,
        section=hit.section,
        citation=shown_citation(hit.paper, first),
        text=hit.text,
        span=hit.span,
        score=hit.score,
        notice=schema.notice_of(hit.paper),
    )


def search_papers(backend: Backend, wanted: schema.SearchPapers, call: Call) -> schema.Papers:
    """Papers ranked for words; without words, those that fit."""
    start, fits = start_of(wanted), paper_filter(wanted)
    end = start + wanted.limit
    if not wanted.query.strip():
        with backend.library() as library, library.reading():
            papers = fitting_papers(library, fits)
        items, notice = [_paper(paper) for paper in papers[start : end + 1]], ""
    else:
        call.report("Searching")
        with backend.reader(call) as reader, reader.library.reading():
            items, notice = _ranked(reader, wanted, fits, start)
    more = next_cursor(wanted, end) if len(items) > wanted.limit else None
    return schema.Papers(papers=items[: wanted.limit], notice=notice, next_cursor=more)


def _ranked(
    reader: Reader, wanted: schema.SearchPapers, fits: PaperFilter, start: int
) -> tuple[list[schema.PaperItem], str]:
    retriever, among = reader.retriever, None if fits == PaperFilter() else fitting_papers(reader.library, fits)
    words = retriever.respelled(wanted.query).question
    sections = SectionFilter(fits.sections) if fits.sections else None
    hits = retriever.search_papers(words, wanted.limit + 1, start, among, sections=sections)
    if not any(hit.lexical for hit in hits) and not retriever.is_understood(words):
        return [], NOTHING_KNOWN
    notice = retriever.notice or papers_notice(retriever.papers_without_vector())
    return [_paper(hit.paper, hit.passage) for hit in hits], notice


def _paper(paper: Paper, best: Hit | None = None) -> schema.PaperItem:
    return schema.PaperItem(
        **_ref(paper),
        **schema.paper_fields(paper),
        pages=paper.page_count,
        tags=list(paper.metadata.tags.value)[: schema.MOST_TAGS],
        best_pages=best.pages if best else None,
        best_section=best.section if best else "",
    )


# Questions


def ask(backend: Backend, wanted: schema.AskLibrary, call: Call) -> schema.CheckedAnswer:
    """An answer whose statements are checked against the papers. Each question stands alone."""
    warm_up()
    at = datetime.now(UTC).isoformat(timespec="seconds")
    models = backend.app.models
    with backend.reader(call) as reader:
        chosen = reader.retriever.select(paper_filter(wanted, papers=wanted.papers))
        chat = backend.app.chat_over(
            reader.retriever,
            top_k=None,
            chosen=chosen,
            style=wanted.style,
            check_cancelled=call.check_cancelled,
            instruction=_instruction(reader.library, wanted.instruction),
        )
        search = models.deep_search(chat, check_cancelled=call.check_cancelled) if wanted.deep else None
        call.report("Searching")
        reply = chat.ask(
            wanted.question,
            lambda sentence: call.report(short_line(sentence.text, _LONGEST_PROGRESS)),
            lambda hits: call.report(f"Reading {counted(len(hits), 'passage')}"),
            partial(_report_progress, call),
            partial(search.find, on_event=partial(_report_event, call)) if search else None,
        )
        call.check_cancelled()
        not_logged = ""
        if backend.writes and backend.app.logs_questions:
            entry = log_entry(reply, at, chat.models["llm"])
            trace = search.trace if search else None
            not_logged = _log(backend, reader.library, replace(entry, trace=logged_trace(trace)) if trace else entry)
        answer, searches = reply.answer, tuple[str, ...]()
        if answer.missing:
            searches = backend.app.searches_for(answer.standalone_question, answer.missing, reader.retriever)
    notice = " ".join(filter(None, [answer.notice, not_logged]))
    return _answer(replace(answer, notice=notice), searches, chat.models)


def _instruction(library: Library, name: str) -> Instruction | None:
    """Raises NotKnown, which names those that there are."""
    return instructions.find(library.database, name) if name.strip() else None


def _log(backend: Backend, library: Library, entry: LogEntry) -> str:
    """Log a question, as the terminal does; returns why that failed, which does not affect the answer."""
    try:
        backend.app.query_log(library).add(entry)
    except (StoreError, OSError) as error:
        happened = (error if isinstance(error, StoreError) else unusable(error)).happened
        return f"The question could not be written to the log: {happened}"
    return ""


def _report_progress(call: Call, part: Checking | Thinking) -> None:
    call.report(f"Checking {counted(part.count, 'statement')}" if isinstance(part, Checking) else "The model thinks")


def _report_event(call: Call, event: DeepEvent) -> None:
    call.report(short_line(event_line(event_json(event)), _LONGEST_PROGRESS))


def _answer(answer: Answer, searches: Sequence[str], models: dict[str, str]) -> schema.CheckedAnswer:
    left_out = answer.left_out[: schema.MOST_LEFT_OUT]
    return schema.CheckedAnswer(
        question=answer.standalone_question,
        refused=answer.refused,
        refusal=answer.text if answer.refused else "",
        searched=answer.scope.line if answer.scope else "",
        remark=answer.remark,
        statements=list(map(_statement, answer.sentences)),
        left_out=[schema.LeftOut(text=each.text, reason=each.reason) for each in left_out],
        left_out_count=answer.dropped,
        missing=list(answer.missing),
        proposed_searches=list(searches),
        warnings=list(warnings(citation.paper for citation in answer.citations).values()),
        notice=answer.notice,
        model_failed=answer.model_failed,
        models=models,
    )


def _statement(sentence: Sentence) -> schema.CheckedStatement:
    return schema.CheckedStatement(
        text=sentence.text,
        outcome=sentence.outcome,
        verified_by=sentence.verified_by,
        section=str(sentence.section),
        citations=[_quote(cited) for cited in sentence.citations],
        against=[_quote(cited, cited.differs) for cited in sentence.against],
    )


def _quote(cited: Quote, differs: Any = "") -> schema.CitedQuote:
    start, end = cited.offsets
    return schema.CitedQuote(
        **_ref(cited.paper, cited.page),
        page=cited.page,
        label=cited.label,
        section=cited.section,
        citation=cited.shown,
        quote=cited.quote,
        start=start,
        end=end,
        span=cited.span,
        differs=differs,
        notice=schema.notice_of(cited.paper),
    )


def check_claim(backend: Backend, wanted: schema.CheckClaim, call: Call) -> schema.ClaimCheck:
    """What the papers say of a sentence, such as one of another assistant's draft."""
    with backend.reader(call) as reader:
        papers = reader.retriever.select(PaperFilter.parse(papers=wanted.papers)).papers or ()
        call.report("Checking the sentence")
        checker = backend.app.claim_checker(reader.library, reader.retriever, call.check_cancelled)
        checked = checker.check(wanted.claim, papers)
    return schema.ClaimCheck(
        claim=checked.claim,
        verdict=checked.verdict,
        reason=checked.reason,
        citations=[_quote(cited) for cited in checked.citations],
        against=[_quote(cited, cited.differs) for cited in checked.against],
        papers=[schema.PaperRef(**_ref(paper)) for paper in checked.papers],
        verified_by=checked.verified_by,
    )


# Papers


def read_pages(backend: Backend, wanted: schema.ReadPages, call: Call) -> schema.PagesRead:
    """The text of pages, from the library. The cursor is an offset in the text of the paper."""
    if wanted.last is not None and wanted.last < wanted.first:
        raise UsageError("The last page is before the first.", "Swap them.")
    offset = start_of(wanted)
    with backend.library() as library, library.reading():
        paper = paper_in(library, wanted.paper)
        last = min(wanted.last or wanted.first, paper.page_count)
        require_page(paper, wanted.first)
        begins, ends = paper.pages.bounds(wanted.first, paper.length)[0], paper.pages.bounds(last, paper.length)[1]
        start = max(begins, offset)
        end = min(ends, start + wanted.max_characters)
        text = library.text(paper.id, start, end) if start < end else ""
    pages = []
    for page in range(wanted.first, last + 1):
        first, after = paper.pages.bounds(page, paper.length)
        if (first >= start or after > start) and (first < end or (first == after == end)):
            part = text[max(0, first - start) : max(0, after - start)]
            pages.append(
                schema.PageOfPaper(page=page, label=paper.pages.label(page), text=part, start=max(0, start - first))
            )
    return schema.PagesRead(
        **_ref(paper, wanted.first),
        page_count=paper.page_count,
        pages=pages,
        next_cursor=next_cursor(wanted, end) if end < ends else None,
    )


def paper_outline(backend: Backend, wanted: schema.PaperOutline, call: Call) -> schema.Outline:
    """What a paper is, and its sections."""
    start = start_of(wanted)
    with backend.library() as library:
        paper = paper_in(library, wanted.paper)
        key = library.citation_key(paper)
    headed = paper.sections.headed
    end = start + wanted.limit
    return schema.Outline(
        **_ref(paper),
        **schema.paper_fields(paper),
        citation_key=key,
        abstract=paper.metadata.abstract.value if not start else "",
        page_count=paper.page_count,
        problems=list(paper.problems),
        sections=[
            schema.OutlineSection(
                level=section.level,
                number=section.number,
                title=section.title,
                kind=section.kind,
                pages=paper.pages.pages_of(section.start, section.end),
            )
            for section in headed[start:end]
        ],
        next_cursor=next_cursor(wanted, end) if len(headed) > end else None,
    )


def cite(backend: Backend, wanted: schema.Cite, call: Call) -> schema.Citations:
    """Papers as entries of a bibliography."""
    with backend.library() as library:
        with library.reading():
            every, files, aliases = library.papers(), file_names(library.files()), aliases_in(library)
            named = [the_paper(name, every, files, aliases) for name in wanted.papers]
        papers = {paper.id: paper for paper in named}
        keys = {paper.id: library.citation_key(paper) for paper in papers.values()}
        published = publishers_bibtex(library.database, list(papers))

    def entry(paper: Paper) -> str:
        if wanted.format == "bibtex":
            return bibtex(paper, keys[paper.id], published=published.get(paper.id, ""))
        if wanted.format == "csl":
            return json.dumps(csl_item(paper, keys[paper.id]), ensure_ascii=False)
        return reference(paper, ())

    return schema.Citations(
        format=wanted.format,
        citations=[
            schema.PaperCitation(paper=ref_of(paper), citation_key=keys[id], text=entry(paper))
            for id, paper in papers.items()
        ],
    )


# Notes


def list_notes(backend: Backend, wanted: schema.ListNotes, call: Call) -> schema.Notes:
    start = start_of(wanted)
    with backend.library() as library:
        paper = paper_in(library, wanted.paper).id if wanted.paper.strip() else ""
        every = listed(library, NoteFilter(paper, wanted.query), wanted.order)
    end = start + wanted.limit
    return schema.Notes(
        notes=list(map(_note, every[start:end])),
        count=len(every),
        next_cursor=next_cursor(wanted, end) if len(every) > end else None,
    )


def add_note(backend: Backend, wanted: schema.AddNote, call: Call) -> schema.AddedNote:
    with backend.library() as library:
        with library.reading():
            quote = quote_of(library, paper_in(library, wanted.paper), wanted.words, wanted.page)
        call.check_cancelled()  # once it is written, it stays
        note = notes.add(library.database, [quote], colour=wanted.colour, text=wanted.text)
        return schema.AddedNote(note=_note(placed(library, note.id)))


def _note(each: PlacedNote) -> schema.NoteItem:
    quotes = []
    for at in each.quotes:
        quote = at.quote
        ref = quote.paper[: schema.REF_LENGTH]
        uri = f"{URI}/{ref}/pages/{quote.page}" if quote.page else f"{URI}/{ref}"
        quotes.append(
            schema.NotePlace(
                paper=ref, uri=uri, file=quote.file, title=quote.title or quote.file, page=quote.page,
                label=quote.label, quote=quote.quote, place=at.place,
            )
        )  # fmt: skip
    note = each.note
    return schema.NoteItem(
        id=note.id,
        text=note.text,
        statement=note.statement,
        colour=note.colour,
        quotes=quotes,
        created=note.created,
        updated=note.updated,
    )


# Tables


def list_tables(backend: Backend, wanted: schema.ListTables, call: Call) -> schema.Tables:
    start = start_of(wanted)
    with backend.library() as library:
        every = tables.every(library.database)
    end = start + wanted.limit
    return schema.Tables(
        tables=[schema.TableItem(**_state(*each)) for each in every[start:end]],
        count=len(every),
        next_cursor=next_cursor(wanted, end) if len(every) > end else None,
    )


def read_table(backend: Backend, wanted: schema.ReadTable, call: Call) -> schema.TableRead:
    """Rows of a table, with what each cell says and where."""
    start = start_of(wanted)
    with backend.library() as library:
        named = fitting_papers(library, PaperFilter.parse(papers=wanted.papers)) if wanted.papers else []
        now = shown_table(library, _table(library, wanted.table))
    columns = _columns(now.table, wanted.columns)
    only = {paper.id for paper in named}
    rows = [row for row in now.table.rows if row.paper in only or not wanted.papers]
    end = start + wanted.limit
    return schema.TableRead(
        **_state(now.table, now.counts),
        scope=now.scope,
        columns=[schema.TableColumnItem.model_validate(_column(each)) for each in columns],
        rows=[_row(now, row, columns) for row in rows[start:end]],
        next_cursor=next_cursor(wanted, end) if len(rows) > end else None,
    )


def make_table(backend: Backend, wanted: schema.MakeTable, call: Call) -> schema.TableItem:
    """A new table, whose cells wait."""
    columns = read_columns("\n".join(map(one_line, wanted.columns)))
    fields = wanted.model_dump(include=set(PaperFields.model_fields))
    with backend.library() as library:
        scope = scope_of(library, fields, wanted.papers)
        call.check_cancelled()  # once it is written, it stays
        return _state_of(library, new_table(library, scope, list(map(as_stored, columns)), one_line(wanted.name)))


def fill_table(backend: Backend, wanted: schema.FillTable, call: Call) -> schema.TableItem:
    """Ask the cells that wait or failed. What was found until it is cancelled stays."""
    with backend.library() as library:
        id = _table(library, wanted.table)
        ask_again(library, id)
        waiting = tables.counts(library.database, [id])[id].waiting
        filler = Filler(backend.app.open_library, backend.app.cell_finder)
        filling = filler.begin(Fill(id))
        if filling is None:
            raise UsageError("This table is being filled by another program.", "Read it with `read_table` meanwhile.")
        done = count(1)
        filler.run(
            filling,
            lambda landed: call.report(f"{next(done):,} of {counted(waiting, 'cell')}"),
            call.check_cancelled,
        )
        return _state_of(library, id)


def _table(library: Library, name: str) -> str:
    """The id of the table with this name or id. Raises NotKnown, UsageError."""
    ids = tables.called(library.database, name)
    if not ids:
        raise NotKnown(f"No table is called “{name_line(name, 80)}”.", "`list_tables` lists them.")
    if len(ids) > 1:
        raise UsageError(f"{len(ids)} tables are called so.", "Give `table` of one, from `list_tables`.")
    return ids[0]


def _columns(table: EvidenceTable, names: Sequence[str]) -> list[TableColumn]:
    """The columns with these names, or all. Raises NotKnown."""
    wanted = {name.strip().casefold(): name for name in names}
    columns = [each for each in table.columns if not names or wanted.pop(each.name.casefold(), "")]
    if missing := [*wanted.values()]:
        known = "; ".join(name_line(each.name, 40) for each in table.columns[:_MOST_NAMED])
        raise NotKnown(f"The table has no column “{name_line(missing[0], 80)}”.", f"Its columns are: {known}.")
    return columns


def _state_of(library: Library, table: str) -> schema.TableItem:
    counts = tables.counts(library.database, [table])[table]
    return schema.TableItem(**_state(tables.read(library.database, table, since=2**53), counts))


def _state(table: EvidenceTable, counts: Counts) -> dict[str, Any]:
    """The fields of TableItem."""
    return {
        "table": table.id,
        "name": table.name,
        "row_count": counts.rows,
        "column_count": counts.columns,
        **{name: getattr(counts, name) for name in ("found", "not_found", "waiting", "failed")},
        "filling": any(not fill.column for fill in table.fills),
        "problem": " ".join(table.problem or ()),
        "updated": table.updated,
    }


def _column(column: TableColumn) -> dict[str, Any]:
    asked = as_column(column)
    values = {name: getattr(asked, name) for name in ("name", "question", "kind", "unit")}
    return {**values, "choices": list(asked.choices)}


def _row(now: ShownTable, row: TableRow, columns: Sequence[TableColumn]) -> schema.TableRowItem:
    ref = row.paper[: schema.REF_LENGTH]
    paper = now.placed.papers.get(row.paper)

    def finding(found: StoredFinding) -> schema.FindingItem:
        quote = found.quote
        return schema.FindingItem(
            value=found.value,
            by_model=found.by_model,
            number=found.number,
            quote=quote.quote,
            citation=shown_citation(paper, quote.page) if paper else f"[{row.label} p.{quote.label}]",
            page=quote.page,
            label=quote.label,
            section=found.section,
            start=quote.start - found.page_start,
            end=quote.end - found.page_start,
            lost=paper is not None and quote.state == "lost",
        )

    def cell(column: TableColumn) -> schema.CellItem:
        stored = now.cell(row, column)
        return schema.CellItem(
            column=column.name,
            outcome="edited" if stored.edit else _OUTCOMES[stored.state],
            edit=stored.edit,
            findings=list(map(finding, stored.findings)),
            closest=finding(stored.shown_closest) if stored.shown_closest else None,
            error=" ".join(stored.error or ()),
        )

    return schema.TableRowItem(
        paper=ref,
        uri=f"{URI}/{ref}",
        file=row.file,
        title=row.title or row.file,
        year=row.year,
        removed=paper is None,
        cells=list(map(cell, columns)),
    )


_OUTCOMES: dict[CellState, Literal["found", "not found", "failed", "waiting"]] = {
    "found": "found", "not_found": "not found", "failed": "failed", "waiting": "waiting",
}  # fmt: skip


# The library


def library_status(backend: Backend, wanted: schema.NoArguments, call: Call) -> schema.LibraryStatus:
    """What is in the library. Tells what is missing before the first ingest."""
    app, models, notices = backend.app.at_a_glance(), dict[str, str](), list[str]()
    counts, pages, passages, kept, writable = dict[str, int](), 0, 0, 0, False
    try:
        with backend.library() as library:
            counts, passages = library.counts(), library.chunk_count()
            pages = sum(paper.page_count for paper in library.papers())
            kept = len(notes.read(library.database))
            writable = backend.writes and not library.is_read_only
        with backend.reader(call) as reader:
            models = reader.retriever.models
            with suppress(ModelError):
                models = {**models, "llm": app.models.answerer(reader.retriever).name}
    except (StoreMissing, ModelError) as error:
        notices.append(f"{error.happened} {error.remedy}")
    return schema.LibraryStatus(
        ready=bool(passages),
        papers=counts.get("papers", 0),
        pages=pages,
        passages=passages,
        notes=kept,
        unreadable=counts.get("failures", 0),
        writable=writable,
        models=models,
        notices=[harmless_line(notice) for notice in [*notices, *app.models.better]],
    )


TOOLS: tuple[Tool[Any, Any], ...] = (
    Tool(
        "search_passages", "Search passages",
        "Find passages of the user's papers for a question or words. Gives their text with page and citation, the best"
        " first, without an answer.",
        schema.SearchPassages, schema.Passages, search_passages, shown.passages,
    ),
    Tool(
        "ask", "Ask the papers",
        "Answer a question from the user's papers alone. Every statement is checked and has the paper, the page and the"
        " words it rests on, with their offsets. Each question stands alone. Refuses what the papers do not answer.",
        schema.AskLibrary, schema.CheckedAnswer, ask, shown.answer,
    ),
    Tool(
        "check_claim", "Check a claim",
        "Check one sentence, such as one that you wrote, against the user's papers: quoted, supported (with the place),"
        " contradicted, number differs, or not found.",
        schema.CheckClaim, schema.ClaimCheck, check_claim, shown.claim,
    ),
    Tool(
        "search_papers", "Search papers",
        "List papers of the user's library: ranked for words in title, abstract, headings and text, or all that fit a"
        " filter.",
        schema.SearchPapers, schema.Papers, search_papers, shown.papers,
    ),
    Tool(
        "read_pages", "Read pages",
        "Read the text of one page or several pages of a paper.",
        schema.ReadPages, schema.PagesRead, read_pages, shown.pages,
    ),
    Tool(
        "paper_outline", "Outline of a paper",
        "A paper's authors, abstract, identifiers and sections with their pages.",
        schema.PaperOutline, schema.Outline, paper_outline, shown.outline,
    ),
    Tool(
        "cite", "Cite papers",
        "Papers as lines to read, BibTeX entries or CSL-JSON. Fields that are not sure are left out.",
        schema.Cite, schema.Citations, cite, shown.citations,
    ),
    Tool(
        "notes", "Notes",
        "The user's notes on places in papers.",
        schema.ListNotes, schema.Notes, list_notes, shown.notes,
    ),
    Tool(
        "add_note", "Add a note",
        "Keep a note on words of a paper, for the user. The words must stand in the paper.",
        schema.AddNote, schema.AddedNote, add_note, shown.added_note, writes=True,
    ),
    Tool(
        "list_tables", "Tables",
        "The user's evidence tables: papers by questions.",
        schema.ListTables, schema.Tables, list_tables, shown.tables,
    ),
    Tool(
        "read_table", "Read a table",
        "Rows of an evidence table: for each paper and column the paper's own words with their page, or that it was not"
        " found.",
        schema.ReadTable, schema.TableRead, read_table, shown.table,
    ),
    Tool(
        "make_table", "Make a table",
        "Make an evidence table that asks each paper the same questions. `fill_table` then fills it.",
        schema.MakeTable, schema.TableItem, make_table, shown.made_table, writes=True,
    ),
    Tool(
        "fill_table", "Fill a table",
        "Ask the cells of a table that wait or failed, paper by paper, which may take minutes. If it is cancelled, what"
        " was found stays, and another call goes on.",
        schema.FillTable, schema.TableItem, fill_table, shown.made_table, writes=True,
    ),
    Tool(
        "library_status", "Status of the library",
        "How many papers there are, which models are in use, and what is missing.",
        schema.NoArguments, schema.LibraryStatus, library_status, shown.status,
    ),
)  # fmt: skip
"""By name; those that write are offered only where that is allowed."""
