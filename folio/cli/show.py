"""Prints in a terminal: answers and what they rest on, papers, the question log, and the progress of an ingest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from folio.answer_types import (
    CLOSEST,
    EXCERPTS,
    SUMMARY,
    Answer,
    Citation,
    Evidence,
    Quote,
    Section,
    Sentence,
    is_refusal,
)
from folio.bibliography.export import cited_pages, reference, stands_in
from folio.console import errors
from folio.deep.types import Age, EvidenceProfile
from folio.ingest.discovery import Outcome
from folio.papers.edits import value_text
from folio.papers.lists import By, unsure_fields
from folio.papers.metadata import FIELDS, ORIGIN_WORDS, Field
from folio.papers.model import Hit, Paper, PaperHit, SourceFile
from folio.papers.people import short_list
from folio.schema.answers import Timings, TraceJson, event_line, from_log
from folio.schema.papers import Count, FromOne, Sha256, Strict, With
from folio.shown_text import (
    ABOUT_EVIDENCE,
    AGE_AND_CONFIDENCE,
    AGREE,
    DIFFER,
    IN_PLACE,
    LEFT_OUT,
    MAY_NOT_ANSWER,
    OPEN,
    PROFILE_HEADINGS,
    REASONS_NOT_KEPT,
    REWORDED_SIGN,
    counted,
    disagrees,
    legend,
    marked_parts,
    name_line,
    number_mark,
    page_words,
    plain,
    plain_line,
    sentence_line,
    short_line,
    statement_lines,
    without_numbers,
)
from folio.store.query_log import LogCounts, LogEntry

if TYPE_CHECKING:
    from rich.console import Console

    from folio.schema.answers import StatsJson


# Headings that Folio prints itself, in lower case
_OUR_HEADINGS = frozenset(
    {
        *("summary", "analysis", *map(str.lower, EXCERPTS), "sources", "key references", "evidence", "pages"),
        *(LEFT_OUT.lower(), *map(str.lower, PROFILE_HEADINGS)),
    }
)


class Marks:
    """How citations are displayed: by the paper's name, or by number."""

    def __init__(self, *, numbered: bool = False) -> None:
        self.numbered = numbered
        self._numbers: dict[tuple[str, int], int] = {}  # (paper, page) -> number, for quotes that no sentence cites

    def take(self, sources: Iterable[Quote]) -> None:
        """Number the pages of these quotes as `show_sources` does."""
        pages = cited_pages(sources)
        self._numbers = {(page.paper, page.page): number for number, page in enumerate(pages, 1)}

    def of(self, quote: Quote) -> str:
        """A citation as displayed."""
        number = quote.number if isinstance(quote, Citation) else self._numbers.get((quote.paper.id, quote.page), 0)
        flag = quote.paper.flag
        return number_mark(number, flag.mark if flag else "") if self.numbered and number else quote.shown

    def clear(self, text: str) -> str:
        """Text of a paper or a model without anything that looks like a citation; its length stays the same."""
        return without_numbers(text) if self.numbered else text


NAMES = Marks()
LONGEST_FILE = 60  # characters of a file's name in a list


def show_question(console: Console, question: str) -> None:
    """Print a question above its answer, when there are several."""
    console.print(Text(plain_line(question), style="bold"))


def show_warning(console: Console, text: str) -> None:
    """Print a warning about a paper above the sentence that cites it."""
    console.print(Text(text, style="bold red"))


def show_sentence(
    console: Console, sentence: Sentence, before: Sentence | None = None, citation_marks: Marks = NAMES
) -> None:
    """Print one sentence with its cited pages.

    before: the previous sentence; a report's heading is printed when the section changes.
    """
    sentence = replace(sentence, text=citation_marks.clear(sentence.text))
    if before is None and sentence.short:
        _show_short(console, sentence, sentence.short, citation_marks)
    _show_headings(console, sentence.section, before.section if before else None)
    if before and before.section == sentence.section and sentence.section.heading in EXCERPTS:
        console.print()
    if sentence.instead_of:
        console.print(Text(IN_PLACE, style="dim"))
    reworded = sentence.outcome == "reworded"
    signs = ("• " if sentence.section == SUMMARY else "") + (f"{REWORDED_SIGN} " if reworded else "")
    lines = statement_lines(sentence.text)
    parts = marked_parts("\n".join(lines), sentence.text, sentence.marks)
    text = Text.assemble(*((part, "bold" if is_marked else "") for part, is_marked in parts))
    cited = dict.fromkeys(map(citation_marks.of, sentence.citations))  # each page once
    marks = Text(" ").join(Text(mark, style="cyan") for mark in cited)
    if len(lines) > 1:
        _hanging(console, signs or "  ", Text("\n").join([text, marks]))
    elif signs:
        _hanging(console, signs, text.append(" ").append_text(marks))
    else:
        console.print(text.append(" ").append_text(marks))
    for quote, spans in {each.quote: each.marks for each in sentence.citations}.items() if reworded else ():
        parts = marked_parts(plain_line(citation_marks.clear(quote)), quote, spans)
        words = Text.assemble("“", *((part, "bold" if is_marked else "") for part, is_marked in parts), "”")
        _hanging(console, " " * len(signs), Text.assemble(words, style="italic dim"))
    for other in sentence.against:
        quote = plain_line(citation_marks.clear(other.quote))
        parts = marked_parts(quote, other.quote, other.marks)
        line = Text(f"But {citation_marks.of(other)} {disagrees(other.differs)}: “", style="yellow")
        for part, is_marked in parts:
            line.append(part, "bold" if is_marked else "")
        console.print(line.append("”"))


def _show_short(console: Console, sentence: Sentence, short: tuple[int, int], citation_marks: Marks) -> None:
    """Print a short answer with its page."""
    answer = sentence_line(sentence.text[slice(*short)])
    on_page = (quote for quote in sentence.citations if stands_in(answer, [citation_marks.clear(quote.quote)]))
    source = next(on_page, sentence.citations[0])
    console.print(Text.assemble((answer, "bold"), " ", (citation_marks.of(source), "cyan")))
    console.print()


def show_legend(console: Console, sentences: Iterable[Sentence]) -> None:
    """Print the meaning of the sign before reworded statements, if there are any."""
    line = legend([sentence.verified_by for sentence in sentences if sentence.outcome == "reworded"])
    if line:
        console.print(Text(line, style="dim"))


def show_left_out(console: Console, answer: Answer, citation_marks: Marks = NAMES) -> None:
    """Print the statements that were left out of an answer, each with the reason."""
    console.print(f"\n{LEFT_OUT}", style="bold")
    for rejected in answer.left_out:
        _hanging(console, "• ", Text("\n").join(map(Text, statement_lines(citation_marks.clear(rejected.text)))))
        _hanging(console, "  ", Text(f"Reason: {plain_line(rejected.reason)}", style="dim"))
    if not answer.left_out:
        console.print(REASONS_NOT_KEPT if answer.dropped else "Nothing was left out.")


def _show_headings(console: Console, section: Section, before: Section | None) -> None:
    if section == before:
        return
    if before is not None:
        console.print()
    if section.heading and (before is None or section.heading != before.heading):
        console.print(Text(section.heading, style="bold"))
        if section.heading == CLOSEST.heading:
            console.print(Text(MAY_NOT_ANSWER, style="dim"))
    if section.subheading:
        console.print(Text(_subheading(section.subheading), style="bold italic"))


def _subheading(text: str) -> str:
    """A model's heading on one line, in quotation marks if it looks like a heading of Folio."""
    line = sentence_line(name_line(text))
    return f"“{line}”" if line.casefold().strip(" :.") in _OUR_HEADINGS else line


def show_sources(
    console: Console, citations: Iterable[Quote], shown: Iterable[str] = (), citation_marks: Marks = NAMES
) -> None:
    """Print the sources of an answer: paper, page and quotes, numbered for /verify.

    shown: the texts of the answer; a quote that is in one of them word for word is not printed again.
    """
    texts = tuple(shown)
    console.print("\nSources", style="bold")
    for number, source in enumerate(cited_pages(citations), 1):
        _item(console, f"{number}.", _heading(source.file, source.where, source.title, "; ".join(source.sections)))
        if source.notice:
            _indented(console, Text(source.notice, style="bold red"))
        if source.published:
            _indented(console, Text(source.published, style="dim"))
        for quote, support in source.quotes:
            if stands_in(quote, texts):
                continue
            line = Text(f"“{plain_line(citation_marks.clear(quote))}”", style="italic")
            if support < 1:
                line.append(f" · support {support:.2f}", style="dim not italic")
            _indented(console, line)


def show_references(console: Console, citations: Iterable[Quote]) -> None:
    """Print one line for each paper that a report cites, with the cited pages."""
    pages: dict[Paper, set[int]] = {}
    for citation in citations:
        pages.setdefault(citation.paper, set()).add(citation.page)
    console.print("\nKey references", style="bold")
    for paper, cited in pages.items():
        console.print(Text(reference(paper, sorted(cited))))


def show_evidence(console: Console, evidence: Sequence[Evidence], citation_marks: Marks = NAMES) -> None:
    """Print the answerer's evidence, in full and numbered."""
    console.print("\nEvidence", style="bold")
    for passage in evidence:
        _show_passage(console, citation_marks.clear(f"[{passage.number}]"), passage, scores(passage.hits[0]))
    if not evidence:
        console.print("None: no passages found.")


def show_raw(console: Console, reply: str) -> None:
    """Print what the model wrote, as it came; characters that would control the terminal are left out."""
    console.print("\nThe model's reply", style="bold")
    lines = reply.expandtabs().splitlines() or ["No model wrote a reply."]
    console.print(Text("\n".join("".join(filter(str.isprintable, line)) for line in lines)))


def scores(hit: Hit) -> str:
    """The score that ranks a passage, and the scores it is made from."""
    parts = [
        f"{name} {score:.2f}" for name, score in (("cosine", hit.dense), ("BM25", hit.lexical)) if score is not None
    ]
    return f"{hit.score:.2f} ({', '.join(parts)})" if parts else f"{hit.score:.2f}"


def show_hits(console: Console, hits: Sequence[Hit]) -> None:
    """Print passages in rank order, in full."""
    for rank, hit in enumerate(hits, 1):
        _show_passage(console, f"{rank}.", hit, f"{hit.score:.2f}")


def _show_passage(console: Console, number: str, passage: Hit | Evidence, score: str) -> None:
    """Print a passage in full under its paper and pages."""
    heading = _heading(passage.paper.file, passage.where, passage.paper.title, passage.section)
    heading.append(f" · {score}", style="dim")
    _item(console, number, heading)
    if passage.paper.flag:
        _indented(console, Text(passage.paper.flag.text, style="bold red"))
    _indented(console, Text(plain(passage.text.strip())))
    console.print()


def show_stats(console: Console, stats: StatsJson) -> None:
    """Print statistics of the index and the log as a table."""
    copies = f", copies: {stats.copies:,}" if stats.copies else ""
    fine = f"{stats.fine_chunks:,}, of {stats.mean_fine_chunk:,.0f} characters (mean)"
    typical = "" if stats.median_ms is None else f", answered in {stats.median_ms / 1000:.1f} s (median)"
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    for name, value in (
        ("papers", f"{stats.papers:,}{copies}"),
        ("pages", f"{stats.pages:,}, {stats.mean_pages:,.1f} a paper (mean; {stats.mean_length:,.0f} characters)"),
        ("passages", f"{stats.chunks:,}, of {stats.mean_chunk:,.0f} characters (mean)"),
        ("fine passages", fine if stats.fine_chunks else "none"),
        ("size on disk", f"{stats.bytes / 1e6:,.1f} MB"),
        ("questions", f"{stats.questions:,}{typical}"),
        ("not found", f"{stats.refused:,}"),
        ("confidence", "" if stats.median_confidence is None else f"{stats.median_confidence:.2f} (median)"),
        ("feedback", f"{stats.good:,} good, {stats.bad:,} bad"),
    ):
        table.add_row(name, value)
    console.print(table)


def _item(console: Console, number: str, heading: Text) -> None:
    """Print a numbered line. In a terminal, wrapped lines are indented, so that they do not look like new items."""
    if console.is_terminal:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row(number, heading)
        console.print(grid)
    else:
        console.print(Text(f"{number} ").append_text(heading))


def _hanging(console: Console, signs: str, text: Text) -> None:
    """Print text after some signs, with all lines indented alike: wrapped in a terminal, whole on a pipe."""
    if console.is_terminal:
        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(signs, text)
        console.print(grid)
        return
    first, *more = text.plain.split("\n")
    indented = (f"{' ' * len(signs)}{line}".rstrip() for line in more)
    console.print(Text("\n".join([f"{signs}{first}", *indented])))


def _indented(console: Console, text: Text) -> None:
    """Print text indented: wrapped in a terminal, line by line on a pipe."""
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, 3)))
    else:
        console.print(Text("\n".join(f"   {line}".rstrip() for line in text.plain.splitlines())))


def _heading(file: str, pages: str, title: str, section: str) -> Text:
    heading = Text()
    heading.append(name_line(file, LONGEST_FILE), style="bold")
    heading.append(f", {plain_line(pages)}", style="bold cyan")
    if section:
        heading.append(f", {name_line(section)}", style="cyan")
    if title:
        heading.append(f" · {name_line(title)}", style="dim")
    return heading


# Deep search

IsAbove = Callable[[Quote], bool]  # whether the answer above already shows a quote


def show_profile(console: Console, profile: EvidenceProfile, answer: Answer, citation_marks: Marks = NAMES) -> None:
    """Print the evidence profile of a deep answer: sections of a report, or one section after a plain answer.

    Quotes that the answer already shows are cited and not printed again; parts without content are left out.
    """
    texts = [sentence.text for sentence in answer.sentences]
    texts += [quote.quote for sentence in answer.sentences for quote in sentence.against]

    def is_above(quote: Quote) -> bool:
        return stands_in(quote.quote, texts)

    is_report = answer.style == "report"
    if not is_report:
        console.print(f"\n{ABOUT_EVIDENCE}", style="bold")
        console.print(Text("\n".join(_summary(profile))))
    _show_part(console, AGREE, _agreements(profile, is_above, citation_marks), is_report)
    _show_part(console, DIFFER, _differences(profile, is_above, citation_marks), is_report)
    if profile.compared_by and (profile.agreements or profile.differences):
        console.print(Text(f"{name_line(profile.compared_by)} chose which quotes belong together: read them.", "dim"))
    _show_part(console, OPEN, _side(profile.open_questions, is_above, citation_marks, "• ", "• "), is_report)
    if is_report:
        console.print(f"\n{AGE_AND_CONFIDENCE}", style="bold")
        console.print(Text("\n".join(_summary(profile))))


def _show_part(console: Console, heading: str, lines: Iterable[Text], is_report: bool) -> None:
    """Print a heading and the lines below it; nothing if there are no lines."""
    for number, line in enumerate(lines):
        if not number:
            console.print(Text(f"\n{heading}" if is_report else f"{heading}:", "bold" if is_report else ""))
        console.print(line)


def _summary(profile: EvidenceProfile) -> Iterator[str]:
    if confidence := profile.confidence:
        share = f"{confidence.value:.0%}"
        yield f"Confidence: {confidence.level}. In tests {share} of such answers showed what was asked for."
    basis = profile.basis
    left_out = f" {counted(basis.left_out, 'statement')} left out." if basis.left_out else ""
    yield (
        f"{counted(basis.statements, 'statement')} from {counted(basis.papers, 'paper')};"
        f" {basis.relevant} of {counted(basis.scored, 'passage')} relevant.{left_out}"
    )
    yield _age(profile.age)


def _age(age: Age) -> str:
    """The years in which the cited papers were published, on one line."""
    unknown = f"{counted(age.unknown, 'paper')} without a sure year" if age.unknown else ""
    if not age.years:
        return f"Age: {unknown}."
    first, last = age.years[0], age.years[-1]
    span = f"{last}" if first == last else f"{first} to {last}"
    return f"Age: {', '.join(filter(None, [f'papers of {span}', unknown]))}."


def _agreements(profile: EvidenceProfile, is_above: IsAbove, citation_marks: Marks) -> Iterator[Text]:
    for group in profile.agreements:
        yield from _side(group.quotes, is_above, citation_marks, "• ", "  ")


def _differences(profile: EvidenceProfile, is_above: IsAbove, citation_marks: Marks) -> Iterator[Text]:
    for group in profile.differences:
        # The answer may already have both sides: "But [Seal 2019, p. 3] says otherwise".
        if not all(is_above(quote) for quote in (*group.some, *group.others)):
            yield from _side(group.some, is_above, citation_marks, "• ", "  ")
            yield from _side(group.others, is_above, citation_marks, "  but ", "      ")


def _side(quotes: Iterable[Quote], is_above: IsAbove, citation_marks: Marks, first: str, then: str) -> Iterator[Text]:
    """A line for each quote. first, then: what the first line and the others begin with."""
    for index, quote in enumerate(quotes):
        lead = then if index else first
        mark = Text(citation_marks.of(quote), style="cyan")
        if is_above(quote):
            yield Text.assemble(lead, mark, " (quoted above)")
        else:
            yield Text.assemble(lead, (f"“{plain_line(citation_marks.clear(quote.quote))}”", "italic"), " ", mark)


# Papers

_UNSURE = "?"  # after a value that is not sure
_LONGEST_VALUE = 500  # characters of a field; JSON has all of them


def show_papers(console: Console, papers: Sequence[Paper], of: int, *, warnings: bool) -> None:
    """Print one line for each paper. of: number of papers in the index. warnings: also print each paper's warnings."""
    table = Table("key", "authors", "year", "title", "file", box=None, pad_edge=False, header_style="bold")
    if warnings:
        table.add_column("warnings", style="yellow")
    for column in table.columns:
        column.overflow = "fold"
    for paper in papers:
        unsure = unsure_fields(paper.metadata)
        values = {
            "authors": short_list([name_line(person.family, 40) for person in paper.metadata.authors.value]),
            "year": str(paper.year or ""),
            "title": name_line(paper.title),
        }
        if paper.flag:
            values["title"] = f"{paper.flag.words} · {values['title']}"
        marked = [f"{value}{_UNSURE}" if name in unsure else value for name, value in values.items()]
        problems = ["; ".join(map(plain_line, paper.problems))] if warnings else []
        table.add_row(*map(Text, [name_line(paper.key), *marked, name_line(paper.file), *problems]))
    if papers:
        console.print(table)
    total = counted(of, "paper")
    line = f"{total}." if len(papers) == of else f"{len(papers):,} of {total}."
    marks = f" {_UNSURE} means not sure." if any(unsure_fields(paper.metadata) for paper in papers) else ""
    console.print(f"{line}{marks}", style="dim")


def show_found(console: Console, hits: Sequence[PaperHit]) -> None:
    """Print the papers that a query found, best first: label, title, file, and why each was found."""
    for rank, hit in enumerate(hits, 1):
        paper, passage = hit.paper, hit.passage
        cited = paper.label or paper.cited_as
        name = [] if cited.startswith("“") else [Text(name_line(cited), style="bold cyan")]  # a short title
        title = [Text(name_line(paper.title), style="bold")] if paper.title else []
        flag = [Text(paper.flag.words, style="bold red")] if paper.flag else []
        console.print(Text(f"{rank}. ").append_text(Text("  ").join([*flag, *name, *title])))
        why = [f"its words: {name_line(', '.join(hit.words))}"] if hit.words else []
        if passage is not None:
            where = name_line(passage.section)
            why.append(f"in the text: {where + ', ' if where else ''}{passage.where}")
        elif not why:
            why.append("a similar subject")
        console.print(Text(f"   {name_line(paper.file)} · {hit.score:.2f} · {' · '.join(why)}", style="dim"))
    if not hits:
        console.print("No papers found.")


def show_counts(console: Console, by: By, counts: Sequence[tuple[str, int]]) -> None:
    """Print how many papers have each value."""
    table = Table(by, "papers", box=None, pad_edge=False, header_style="bold")
    table.columns[1].justify = "right"
    for value, number in counts:
        table.add_row(Text(name_line(value)) if value else Text("none", style="dim"), f"{number:,}")
    console.print(table)


def show_paper(console: Console, paper: Paper, files: Sequence[str], citation_key: str) -> None:
    """Print every field with its origin, the files, the sections and the warnings. files: names."""
    console.print(Text(name_line(paper.title or paper.file), style="bold"))
    for notice in paper.notices:
        console.print(Text(notice.text, style="bold red" if notice.is_grave else "yellow"))
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim")
    known = paper.metadata.known()
    for name in FIELDS:
        if name in known:
            table.add_row(name.replace("_", " "), Text(_value(known[name])), _origin(known[name]))
    if paper.metadata.citation_key.value != citation_key:
        table.add_row("citation key", Text(citation_key), "made by Folio")
    table.add_row("key", Text(name_line(paper.key)), "in citations")
    table.add_row("id", paper.id)
    table.add_row("files", Text(", ".join(map(name_line, files))))
    table.add_row("size", f"{paper.page_count:,} pages, {paper.chunks:,} passages")
    console.print(table)
    if paper.sections.headed:
        console.print("\nSections", style="bold")
    for section in paper.sections.headed:
        line = Text(f"{'  ' * min(section.level, 6)}{name_line(section.shown)}")
        pages = page_words(paper.pages.pages_of(section.start, section.end))
        kind = "" if section.kind == "other" else f"{section.kind}, "
        console.print(line.append(f" · {kind}{pages}", style="dim"))
    if paper.problems:
        console.print("\nWarnings", style="bold")
    for problem in paper.problems:
        console.print(Text(f"  {plain_line(problem)}", style="yellow"))


def show_edit(console: Console, before: Paper, after: Paper, names: Sequence[str]) -> None:
    """Print the old and the new value of the fields with these names that have changed."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    for name in names:
        old, new = getattr(before.metadata, name), getattr(after.metadata, name)
        if old != new:
            table.add_row(name.replace("_", " "), Text(f"{_with_origin(old)}  →  {_with_origin(new)}"))
    console.print(Text(name_line(after.file), style="bold"))
    if table.row_count:
        console.print(table)
    else:
        console.print("Nothing has changed.")


def _with_origin(field: Field[Any]) -> str:
    return f"{_value(field)} ({_origin(field)})" if field.origin else "(not known)"


def _value(field: Field[Any]) -> str:
    return short_line(value_text(field.value), _LONGEST_VALUE) or "(empty)"


def _origin(field: Field[Any]) -> str:
    needs_no_note = field.sure or field.origin == "cited works"  # whose words already say that it is a guess
    return ORIGIN_WORDS[field.origin] if needs_no_note else f"{ORIGIN_WORDS[field.origin]}, not sure"


# The question log

_LONGEST_QUESTION = 200  # characters in a list
_MARK_STYLES = {"good": "green", "bad": "red"}


class LoggedSourceJson(Strict):
    """A citation of a logged answer."""

    paper: Sha256
    file: str
    page: FromOne
    """Physical page of the quote, from 1."""
    quote: str


class LoggedJson(Strict):
    """A question of the log, as `folio log list --json` and `folio log export` print it."""

    number: FromOne
    """The number for `folio log show`."""
    asked: str
    """ISO time in UTC."""
    question: str
    understood_as: str
    """The question as it was searched: a follow-up has its references filled in."""
    answer: str
    refused: bool
    """Whether the papers had no answer."""
    sources: list[LoggedSourceJson]
    """The citations of the answer; empty for a refusal, and for an answer about the library itself."""
    chunks: list[Count]
    """Ids of the passages that were the evidence."""
    model: str
    """The model that answered."""
    confidence: float | None
    """Of the answerer, 0 to 1; null if it gives none."""
    timings_ms: Timings
    feedback: Literal["", "good", "bad"]
    """A person's rating of the answer; "" without one."""
    trace: TraceJson | None
    """How the evidence of a deep answer was found; null for other answers, and for another version of Folio."""
    scope: str
    """What was asked: "12 papers in Consensus, 2000 to 2015"; empty in entries of older versions."""


def entry_json(number: int, entry: LogEntry) -> LoggedJson:
    """A question of the log as JSON."""
    refused, trace = _is_refusal(entry), from_log(entry.trace)
    fields = With(entry, number=number, understood_as=entry.standalone_question, refused=refused, trace=trace)
    return LoggedJson.model_validate(fields)


def _is_refusal(entry: LogEntry) -> bool:
    """Whether the papers had no answer. An answer about the library itself has no sources either."""
    return not entry.sources and is_refusal(entry.answer)


def show_entries(console: Console, entries: Sequence[tuple[int, LogEntry]], counts: LogCounts) -> None:
    """Print one line for each question. counts: of the whole log."""
    table = Table("number", "asked (UTC)", "rated", "answer", "question", box=None, pad_edge=False, header_style="bold")
    table.columns[0].justify = "right"
    table.columns[4].overflow = "fold"
    for number, entry in entries:
        answer = "refused" if _is_refusal(entry) else f"{len(entry.sources)} cited"
        mark = Text(entry.feedback, style=_MARK_STYLES.get(entry.feedback, ""))
        question = Text(short_line(entry.question, _LONGEST_QUESTION))
        table.add_row(str(number), _time(entry.asked), mark, answer, question)
    if entries:
        console.print(table)
    rated = f"{counts.good:,} rated good, {counts.bad:,} rated bad"
    questions = f"{counted(counts.questions, 'question')} in the log"
    console.print(f"{len(entries):,} of {questions}; {rated}.", style="dim")


def show_entry(console: Console, number: int, entry: LogEntry) -> None:
    """Print a question with its answer, quotes, model, time and rating."""
    console.print(Text(plain_line(entry.question), style="bold"))
    if entry.standalone_question != entry.question:
        console.print(Text(f"Understood as: {plain_line(entry.standalone_question)}", style="dim"))
    for line in statement_lines(entry.answer):
        console.print(Text(f"  {line}"))
    for place, source in enumerate(entry.sources, 1):
        console.print(Text(f"{place}. {name_line(source.file)}, p. {source.page}", style="cyan"))
        console.print(Text(f"   “{plain_line(source.quote)}”"))
    if trace := from_log(entry.trace):
        _show_trace(console, trace)
    facts = [f"number {number}", f"asked {_time(entry.asked)} UTC", plain_line(entry.model)]
    if entry.scope:
        facts.insert(1, f"of {plain_line(entry.scope[0].lower() + entry.scope[1:])}")
    if "total" in entry.timings_ms:
        facts.append(f"{entry.timings_ms['total']:,.0f} ms")
    if entry.confidence is not None:
        facts.append(f"confidence {entry.confidence:.2f}")
    facts.append(f"rated {entry.feedback}" if entry.feedback else "not rated")
    console.print(Text(" · ".join(facts), style="dim"))


def _show_trace(console: Console, trace: TraceJson) -> None:
    scored = f"passages scored by {plain_line(trace.assessor)}"
    rounds, calls = counted(trace.rounds, "round"), counted(trace.calls, "call")
    console.print(Text(f"Searched in {rounds}, {calls} of a model, {trace.seconds:,.1f} s; {scored}:"))
    for event in trace.events:
        console.print(Text(f"  {event_line(event)}", style="dim"))
    if trace.left_out:
        console.print(Text(f"  Steps that the log leaves out: {trace.left_out}", style="dim"))


def _time(asked: str) -> str:
    """ "2026-01-02 03:04" for "2026-01-02T03:04:05+00:00"."""
    return plain_line(asked)[:16].replace("T", " ")


_READING = "Reading and embedding"


class IngestProgressBar:
    """A progress bar: bytes of PDF processed, papers, pages, chunks and time left. Silent on a pipe."""

    def __init__(self, files: int) -> None:
        self._progress: Progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeRemainingColumn(),
            console=errors(),
            transient=True,
            disable=not errors().is_terminal,
        )
        self._task: TaskID = self._progress.add_task("Hashing", total=files, counts="")
        self._sizes: dict[str, float] = {}
        self._counts: Counter[str] = Counter()
        self.added = 0
        self.scan = ""  # the page that OCR is reading: "page 3 of 9 of scan.pdf"

    def __enter__(self) -> IngestProgressBar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._progress.stop()

    def hashed(self, file: Path) -> None:
        self._progress.advance(self._task)

    def planned(self, files: Sequence[SourceFile]) -> None:
        self._sizes = {file.path: Path(file.path).stat().st_size for file in files if Path(file.path).exists()}
        total = sum(self._sizes.values())
        self._progress.reset(self._task, total=total, description=_READING, counts="")

    def scanned(self, file: SourceFile, pages: int, of: int) -> None:
        self.scan = f"page {pages} of {of} of {name_line(file.name)}" if pages < of else ""
        description = f"Reading by OCR: {self.scan}" if self.scan else _READING
        self._progress.update(self._task, description=description)

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None:
        self._counts["chunks"] += chunks
        share = self._sizes.get(file.path, 0) * chunks / of
        self._progress.update(self._task, advance=share, counts=self._text())

    def done(self, outcome: Outcome) -> None:
        self._counts["pages"] += outcome.pages
        if outcome.status in ("added", "replaced"):
            self.added += 1
        elif outcome.status == "failed":
            self._progress.advance(self._task, self._sizes.get(outcome.file.path, 0))
        self._progress.update(self._task, counts=self._text())

    def _text(self) -> str:
        return f"{self.added} papers, {self._counts['pages']} pages, {self._counts['chunks']} passages"
